"""Learns again in one process, without elasticrun, what the workers of lineage.py have learned:
replay.py FOLDER, in the environment of the workers. In each step that happened it computes what
the workers have computed, with their samples and the states of their generators.

Prints a line of JSON: `steps`; `repeated`, how often workers began a step again; `discarded`, what
the most unlucky worker computed in vain; `empty` and `uneven`, steps with such shares; `ends`,
workers that came to the end; `final`, what they have learned; and `apart`, how far that is from
what is learned here. Ends with code 1 and a line that says what is wrong when a sample was not used
once in each epoch, a repeated step drew other random numbers, or counters differ.
"""
import base64
import json
import math
import os
import sys
from collections import defaultdict
from typing import Any

import torch
from lineage import Parts, Samples, option

Line = dict[str, Any]
TOLERANCE = 1e-9  # of a loss: but for the order of sums the weights are the same


def require(condition: bool, text: str) -> None:
    if not condition:
        sys.exit(text)


def read(folder: str) -> list[list[Line]]:
    """The lines of each worker, but for one that it was killed in."""
    found = []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="ascii") as file:
            found.append([json.loads(line) for line in file if line.endswith("\n")])
    return found


def same_numbers(lines: list[Line]) -> tuple[int, int]:
    """Checks the random numbers of steps that one worker began several times; returns how often
    that was, and the number of steps that had no effect here."""
    attempts: dict[int, dict[int, list[Line]]] = defaultdict(lambda: defaultdict(list))
    applied = set()
    for line in lines:
        if "piece" in line:
            attempts[line["piece"]][line["generation"]].append(line)
        elif "applied" in line:
            applied.add((line["applied"], line["generation"]))
    repeated = 0
    for step, by_generation in attempts.items():
        first, *others = by_generation.values()
        repeated += len(others)
        for other in others:
            for one, again in zip(first, other):
                for key in ("torch", "python"):
                    require(one[key] == again[key], f"step {step} drew other numbers: {key}")
                if one["samples"] != again["samples"]:
                    break  # afterwards the generators are elsewhere
                require(one["loss"] == again["loss"], f"step {step} computed other numbers")
    begun = {(step, generation) for step, found in attempts.items() for generation in found}
    return repeated, len(begun - applied)


def steps_of(workers: list[list[Line]]) -> list[list[Line]]:
    """The pieces of each step that happened, by rank: those of its newest world that applied it."""
    newest: dict[int, int] = {}
    for line in (line for lines in workers for line in lines if "applied" in line):
        newest[line["applied"]] = max(newest.get(line["applied"], 0), line["generation"])
    require(sorted(newest) == list(range(len(newest))), f"steps {sorted(newest)}")
    found: list[list[Line]] = [[] for _ in newest]
    for line in (line for lines in workers for line in lines if "piece" in line):
        if newest.get(line["piece"]) == line["generation"]:
            found[line["piece"]].append(line)
    return [sorted(pieces, key=lambda line: line["rank"]) for pieces in found]


def shares(pieces: list[Line]) -> list[int]:
    """Samples of each rank."""
    count = [0] * pieces[0]["size"]
    for piece in pieces:
        count[piece["rank"]] += 0 if piece["borrowed"] else len(piece["samples"])
    return count


class Replay:
    def __init__(self) -> None:
        self.parts, self.samples = Parts(), Samples()
        self.parameters = list(self.parts.model.parameters())

    def step(self, number: int, pieces: list[Line]) -> None:
        pieces = [piece for piece in pieces if not piece["borrowed"]]
        total = sum(len(piece["samples"]) for piece in pieces)
        buffers = list(self.parts.model.buffers())
        before = [buffer.clone() for buffer in buffers]
        statistics = [torch.zeros_like(buffer, dtype=torch.float64) for buffer in buffers]
        gradients = [torch.zeros_like(parameter) for parameter in self.parameters]
        for piece in pieces:
            weight = len(piece["samples"]) / total
            for buffer, value in zip(buffers, before):
                buffer.copy_(value)
            for gradient, computed in zip(gradients, self.compute(number, piece)):
                gradient += weight * computed
            for mean, buffer in zip(statistics, buffers):
                mean += weight * buffer
        for buffer, mean in zip(buffers, statistics):
            buffer.copy_(mean if buffer.is_floating_point() else mean.round())
        for parameter, gradient in zip(self.parameters, gradients):
            parameter.grad = gradient
        self.parts.step()

    def compute(self, number: int, piece: Line) -> tuple[torch.Tensor, ...]:
        data = bytearray(base64.b64decode(piece["torch"]))
        torch.set_rng_state(torch.frombuffer(data, dtype=torch.uint8))
        indices = piece["samples"]
        loss = self.parts.loss(self.samples.inputs[indices], self.samples.outputs[indices])
        require(abs(loss.item() - piece["loss"]) < TOLERANCE * (1 + loss.item()),
                f"step {number}, rank {piece['rank']}: loss {piece['loss']}, not {loss.item()}")
        return torch.autograd.grad(self.parts.scaler.scale(loss), self.parameters)


def main(folder: str) -> None:
    workers = read(folder)
    repeats = [same_numbers(lines) for lines in workers]
    steps = steps_of(workers)
    replay = Replay()
    epochs: dict[int, list[int]] = defaultdict(list)
    for number, pieces in enumerate(steps):
        epoch = pieces[0]["epoch"]
        if epochs and epoch not in epochs:
            replay.parts.end_epoch()
        for piece in pieces:
            require(piece["epoch"] == epoch, f"step {number} in several epochs")
            epochs[epoch] += [] if piece["borrowed"] else piece["samples"]
        replay.step(number, pieces)
    replay.parts.end_epoch()
    require(list(epochs) == list(range(int(option("EPOCHS", 10)))), f"epochs {list(epochs)}")
    for epoch, used in epochs.items():
        require(sorted(used) == list(range(len(replay.samples))),
                f"epoch {epoch}: not each sample once: {sorted(used)}")
    expected, apart = replay.parts.result(), 0.0
    ends = [line["final"] for lines in workers for line in lines if "final" in line]
    require(bool(ends), "nobody has come to the end")
    for end in ends:
        require(end["counters"] == expected["counters"],
                f"counters {end['counters']}, not {expected['counters']}")
        require(end["numbers"] == ends[0]["numbers"], "the workers differ")
        for one, other in zip(end["numbers"], expected["numbers"]):
            apart = max(apart, abs(one - other) if math.isfinite(one) else math.inf)
    by_rank = [shares(pieces) for pieces in steps]
    print(json.dumps({
        "steps": len(steps), "repeated": sum(repeated for repeated, _ in repeats),
        "discarded": max(discarded for _, discarded in repeats),
        "empty": sum(0 in share for share in by_rank),
        "uneven": sum(max(share) - min(share) > 1 for share in by_rank),
        "ends": len(ends), "apart": apart, "final": ends[0]}))


if __name__ == "__main__":
    main(sys.argv[1])
