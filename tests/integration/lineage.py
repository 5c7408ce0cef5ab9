#!/usr/bin/env python3
"""Proves from the records of a run that every sample was used exactly once.

    lineage.py PREFIX... [--samples N] [--epochs E] [--same-as OTHER [--tolerance X]]

Reads PREFIX.<host>.<pid> as worker/examples/fashion/record.hpp describes them. Several prefixes are
those of jobs that went on from each other's saves, in their order: what a job repeats replaces what
the jobs before it have made of these steps. The final lineage of
a step is the highest generation in which any worker applied it; the weights are made of what all
ranks of that generation computed for the step. Collecting only what was applied would not do: a
worker may die after the reduction that carried its gradient to the others, before its own commit.

Prints a summary, or the first violation with exit code 1; exit code 2: the records cannot be read.
"""
import argparse
import array
import glob
import sys
from collections import defaultdict


class Violation(Exception):
    """What is wrong with the run, in one line."""


def require(condition, text):
    if not condition:
        raise Violation(text)


class Share:
    """What one process recorded of one step of one generation."""

    def __init__(self, epoch, size, batch):
        self.epoch, self.size, self.batch = epoch, size, batch
        self.computed = []
        self.applied = None  # indices, once it has committed the step


class Run:
    GENERATIONS = 10**9  # more than a job has: those of the next job come after them

    def __init__(self, *prefixes):
        self.shares = defaultdict(dict)  # (step, generation) -> rank -> (file, Share)
        self.finished = {}               # file -> (steps, generation, hash)
        self.last = {}                   # file -> the last (generation, step) it knows
        self.committed = {}              # file -> the last step it applied
        for number, prefix in enumerate(prefixes):
            files = sorted(f for f in glob.glob(glob.escape(prefix) + ".*.*")
                           if f.rpartition(".")[2].isdigit())
            if not files:
                raise OSError(
                    f"no record is called {prefix}.*; run the program with --record {prefix}")
            for name in files:
                self.read(name, number * self.GENERATIONS)

    def read(self, name, before):
        with open(name, encoding="ascii") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith("\n"):
                    break  # the process was killed while it wrote; ignore the unfinished line
                try:
                    self.take(name, line.split(), before)
                except (ValueError, IndexError) as error:
                    print(f"{name}:{number}: not a record: {error}", file=sys.stderr)
                    sys.exit(2)

    def take(self, name, fields, before):
        require(name not in self.finished, f"{name} goes on after its end")
        if fields[0] == "finished":
            self.finished[name] = (int(fields[1]), before + int(fields[2]), fields[3])
            return
        kind, numbers = fields[0], [int(field) for field in fields[1:]]
        step, generation, epoch, rank, size, batch = numbers[:6]
        generation += before
        where = f"step {step}, generation {generation}, rank {rank}"
        if kind not in ("computed", "applied"):
            raise ValueError(kind)
        require(0 <= rank < size, f"{where}: no such rank in a world of {size}")
        require((generation, step) >= self.last.get(name, (0, 0)),
                f"{where}: {name} went backwards")
        self.last[name] = (generation, step)
        owner, share = self.shares[step, generation].setdefault(
            rank, (name, Share(epoch, size, batch)))
        require(owner == name, f"{where}: two processes, {owner} and {name}, have this rank")
        require((share.epoch, share.size, share.batch) == (epoch, size, batch),
                f"{where}: epoch, size or batch changed inside the step")
        if kind == "computed":
            require(share.applied is None, f"{where}: computed after it was committed")
            share.computed += numbers[6:]
        else:
            require(step > self.committed.get(name, -1),
                    f"{where}: {name} has committed this step before")
            self.committed[name] = step
            share.applied = numbers[6:]
            require(share.applied == share.computed,
                    f"{where}: committed other samples than it computed")


def final_lineage(run):
    """step -> generation: the highest one in which any worker applied it."""
    final = {}
    for (step, generation), ranks in run.shares.items():
        if any(share.applied is not None for _, share in ranks.values()):
            final[step] = max(final.get(step, 0), generation)
    require(final, "nobody committed a step")
    missing = next((s for s in range(max(final) + 1) if s not in final), None)
    require(missing is None, f"step {missing} was never committed, but step {max(final)} was")
    return final


def check_step(run, step, generation):
    """Returns the epoch, the samples and the number of ranks that left no record of this step."""
    ranks = run.shares[step, generation]
    kinds = {(share.epoch, share.size, share.batch) for _, share in ranks.values()}
    where = f"step {step}, generation {generation}"
    require(len(kinds) == 1, f"{where}: ranks disagree on (epoch, size, batch): {sorted(kinds)}")
    epoch, size, batch = kinds.pop()
    samples = [index for _, share in ranks.values() for index in share.computed]
    absent = sorted(set(range(size)) - set(ranks))
    require(len(samples) == batch,
            f"{where}: {len(samples)} samples were computed of a global batch of {batch}; "
            f"ranks without a record: {absent or 'none'}")
    return epoch, samples, len(absent)


def check(run, samples, epochs):
    final = final_lineage(run)
    used, steps, absent = defaultdict(set), [], 0
    for step in sorted(final):
        epoch, indices, unheard = check_step(run, step, final[step])
        require(not steps or epoch in (steps[-1][0], steps[-1][0] + 1),
                f"step {step}: epoch {epoch} follows epoch {steps[-1][0] if steps else None}")
        for index in indices:
            require(index not in used[epoch],
                    f"step {step}: sample {index} is used for the second time in epoch {epoch}")
            used[epoch].add(index)
        steps.append((epoch, frozenset(indices)))
        absent += unheard
    count = samples or 1 + max(max(indices) for indices in used.values())
    for epoch, indices in sorted(used.items()):
        require(max(indices) < count, f"epoch {epoch}: there is no sample {max(indices)}")
        unused = [index for index in range(count) if index not in indices]
        require(not unused, f"epoch {epoch}: {len(unused)} of {count} samples were not used, "
                            f"the first is {unused[:1]}")
    require(not epochs or sorted(used) == list(range(epochs)),
            f"{epochs} epochs were to be trained, but they are {sorted(used)}")
    check_generations(run, final)
    check_end(run, max(final) + 1)
    return final, steps, count, absent


def check_generations(run, final):
    """Generations follow each other, and a worker whose committed step was discarded is gone."""
    for (step, generation), ranks in run.shares.items():
        for rank, (name, share) in ranks.items():
            # A job that goes on from a save repeats what the others had made since.
            job, repeated_in = generation // run.GENERATIONS, final[step] // run.GENERATIONS
            lost = share.applied is not None and generation != final[step] and job == repeated_in
            require(not lost or run.last[name][0] == generation,
                    f"step {step} was committed in generation {generation} by rank {rank} ({name}),"
                    f" which lives on, and was repeated in generation {final[step]}")
    before = 0
    for step in sorted(final):
        require(final[step] >= before,
                f"step {step} of generation {final[step]} follows one of generation {before}")
        before = final[step]


def check_end(run, steps):
    """All workers that finished in the final world have the same weights."""
    if not run.finished:
        return
    last = max(generation for _, generation, _ in run.finished.values())
    ends = {(n, h) for n, generation, h in run.finished.values() if generation == last}
    require(len({h for _, h in ends}) == 1,
            f"the members of the final world have different weights: {sorted(h for _, h in ends)}")
    says = max(n for n, _ in ends)
    require(says == steps, f"{steps} steps are in the lineage, but the final world says {says}")


def weights(prefix, kind):
    values = array.array(kind)
    with open(prefix + ".weights", "rb") as file:
        values.frombytes(file.read())
    return values


def compare(prefix, steps, other_prefix, tolerance, kind):
    other = check(Run(other_prefix), 0, 0)[1]
    require(len(steps) == len(other), f"{len(steps)} steps, but {len(other)} in {other_prefix}")
    for step, (here, there) in enumerate(zip(steps, other)):
        require(here == there, f"step {step} has other samples than in {other_prefix}")
    mine, theirs = weights(prefix, kind), weights(other_prefix, kind)
    require(len(mine) == len(theirs), "the weights have different sizes")
    differences = [abs(a - b) for a, b in zip(mine, theirs)]
    # Not "max > tolerance": a weight that is no number must not pass.
    require(all(difference <= tolerance for difference in differences),
            f"weights differ by {max(differences):.3g} from {other_prefix}, more than {tolerance}")
    return max(differences)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prefix", nargs="+")
    parser.add_argument("--samples", type=int, default=0, help="in one epoch; default as seen")
    parser.add_argument("--epochs", type=int, default=0, help="that were to be trained")
    parser.add_argument("--same-as", metavar="PREFIX", help="a run with the same steps")
    parser.add_argument("--tolerance", type=float, default=0, help="of weights, with --same-as")
    parser.add_argument("--precision", choices=("float", "double"), default="float",
                        help="of weights, with --same-as")
    options = parser.parse_args()
    try:
        run = Run(*options.prefix)
        final, steps, count, absent = check(run, options.samples, options.epochs)
        if options.same_as:
            worst = compare(options.prefix[-1], steps, options.same_as, options.tolerance,
                            options.precision[0])
            print(f"same samples in each step as {options.same_as}, weights differ by {worst:.3g}")
    except Violation as violation:
        print(f"VIOLATION: {violation}")
        return 1
    except OSError as error:
        print(f"lineage.py: {error}", file=sys.stderr)
        return 2
    sizes = [next(iter(run.shares[place].values()))[1].size for place in final.items()]
    repeated = sum(1 for step, generation in run.shares if generation != final.get(step))
    print(f"{len(steps)} steps in {steps[-1][0] + 1} epochs of {count} samples, each used once; "
          f"{len(set(final.values()))} generations, sizes {min(sizes)} to {max(sizes)}, "
          f"{len(run.last)} processes, {repeated} discarded steps, {absent} shares unrecorded")
    return 0


if __name__ == "__main__":
    sys.exit(main())
