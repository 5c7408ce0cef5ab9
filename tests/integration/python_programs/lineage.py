"""A training whose numbers depend on who computes what, and which writes down who did: with NOISE a
model with batch norm and dropout, a schedule, a scaler that skips steps, an averaged model.

In the folder RECORD each worker has a file of lines in JSON. `piece`: a turn of the loop, with the
states of the generators before it; `applied`: a step that happened; `final`: what was learned.
replay.py learns the same from them, without elasticrun.
"""
import base64
import itertools
import json
import os
import random
import signal
import socket
import stat
import time
from typing import Any

import torch

WORLD = 3  # workers of a whole world


def option(name: str, usual: float = 0) -> float:
    return float(os.environ.get(name, usual))


class Samples(torch.utils.data.Dataset):
    """Each comes with its index."""

    def __init__(self) -> None:
        chance = torch.Generator().manual_seed(2)
        self.inputs = torch.randn(int(option("SAMPLES", 193)), 2, 6, generator=chance).double()
        self.outputs = self.inputs.sin().sum((1, 2))

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> tuple[int, torch.Tensor, torch.Tensor]:
        return index, self.inputs[index], self.outputs[index]


class Count:
    """Of steps that happened."""

    def __init__(self) -> None:
        self.steps = 0

    def step(self) -> None:
        self.steps += 1

    def state_dict(self) -> dict[str, int]:
        return {"steps": self.steps}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.steps = state["steps"]


class Scaler:
    """A GradScaler for the CPU: the scale grows until gradients overflow, and then falls."""

    def __init__(self) -> None:
        self._scale, self._good, self._skipped = 1.0, 0, 0
        self._overflow = False

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        return loss * (self._scale if self._scale < 16 else float("inf"))

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"]]
        self._overflow = not all(gradient.isfinite().all() for gradient in gradients)
        for gradient in gradients:
            gradient /= self._scale

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        if not self._overflow:
            optimizer.step()

    def update(self) -> None:
        self._good = 0 if self._overflow else self._good + 1
        self._skipped += self._overflow
        self._scale *= 0.25 if self._overflow else 2 if self._good % 5 == 0 else 1

    def state_dict(self) -> dict[str, float]:
        return {"scale": self._scale, "good": self._good, "skipped": self._skipped}

    def load_state_dict(self, state: dict[str, float]) -> None:
        self._scale, self._good, self._skipped = state["scale"], state["good"], state["skipped"]


def scaler_of_torch() -> Any:
    """The same with torch's own, which is for CPUs, too, since 2.3."""
    class Overflowing(torch.amp.GradScaler):
        def scale(self, outputs: torch.Tensor) -> torch.Tensor:
            return super().scale(outputs) * (1 if self.get_scale() < 16 else float("inf"))
    return Overflowing("cpu", init_scale=1, growth_factor=2, backoff_factor=0.25, growth_interval=5)


class Parts:
    """All that learns, and what a step does with it."""

    def __init__(self) -> None:
        torch.manual_seed(1)
        torch.set_num_threads(1)
        nn = torch.nn
        noise = [nn.BatchNorm1d(4), nn.Dropout(0.3)] if option("NOISE") else []
        self.model = nn.Sequential(nn.Conv1d(2, 4, 3), *noise, nn.Tanh(), nn.Flatten(),
                                   nn.Linear(16, 1)).double()
        parameters = self.model.parameters()
        if os.environ.get("OPTIMIZER") == "adamw":
            self.optimizer = torch.optim.AdamW(parameters, 0.01)
        else:
            self.optimizer = torch.optim.SGD(parameters, 0.02, momentum=0.9)
        per_step = os.environ.get("SCHEDULE") == "step"  # this one changes the momentum, too
        self.schedule = (torch.optim.lr_scheduler.OneCycleLR(self.optimizer, 0.02, 1000)
                         if per_step else
                         torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 6))
        self.scaler = scaler_of_torch() if os.environ.get("SCALER") == "torch" else Scaler()
        self.count = Count()
        self.mean = torch.optim.swa_utils.AveragedModel(self.model)
        self.objects = [self.schedule, self.scaler, self.mean, self.count]
        self.after_step = [self.schedule] if per_step else []
        self.after_epoch = [] if per_step else [self.schedule]

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.mse_loss(self.model(x)[:, 0], y)

    def step(self) -> None:
        """After the backward pass."""
        self.scaler.unscale_(self.optimizer)
        if option("CLIP"):
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), option("CLIP"))
        self.scaler.step(self.optimizer)
        self.scaler.update()
        for schedule in self.after_step:
            schedule.step()
        self.mean.update_parameters(self.model)
        self.count.step()

    def end_epoch(self) -> None:
        for schedule in self.after_epoch:
            schedule.step()

    def result(self) -> dict[str, list[float]]:
        tensors = itertools.chain(self.model.state_dict().values(), self.mean.state_dict().values())
        rates = [group["lr"] for group in self.optimizer.param_groups]
        return {"counters": [self.schedule.last_epoch, *self.scaler.state_dict().values(),
                             self.mean.n_averaged.item(), self.count.steps],
                "numbers": rates + [float(v) for tensor in tensors for v in tensor.flatten()]}


def break_connections() -> None:
    """All of this process to other workers end, as when a network fails for a moment."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if stat.S_ISSOCK(os.stat(f"/proc/self/fd/{name}").st_mode):
                with socket.socket(fileno=os.dup(int(name))) as one:
                    if one.family != socket.AF_UNIX and one.getpeername():
                        one.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it listens, or has just been closed


def train() -> None:
    import elasticrun.torch as er  # pylint: disable=import-outside-toplevel

    parts, samples = Parts(), Samples()
    batch, loaders = int(option("BATCH", 24)), int(option("LOADERS"))
    prefetch = {"prefetch_factor": 4} if loaders else {}
    epochs, deaths, breaks = int(option("EPOCHS", 10)), option("DEATHS"), option("BREAKS")
    folder = os.environ["RECORD"]
    file = os.open(os.path.join(folder, str(os.getpid())), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    at = 0  # the step under way

    def record(**line: Any) -> None:
        os.write(file, (json.dumps(line) + "\n").encode())

    def reach(place: str) -> None:
        """Once there is a file `trouble`, one worker of a whole world may fail here, so that others
        can go on: it dies, if fewer than DEATHS have, or its connections break, as likely as BREAKS
        says."""
        seed = f"{os.environ.get('SEED')} {job.generation}"
        victim, chance = random.Random(seed).randrange(WORLD), random.Random(f"{seed} {at}")
        if job.size < WORLD or (job.rank, place) != (victim, chance.choice(PLACES)):
            return
        if not os.path.exists("trouble"):
            return
        if chance.random() < 0.2 and len(os.listdir(folder)) < WORLD + deaths:
            os.kill(os.getpid(), signal.SIGKILL)
        if chance.random() < breaks:
            break_connections()

    def applied() -> None:
        reach("committed")
        record(applied=at, generation=job.generation)

    job = er.Job(parts.model, parts.optimizer, *parts.objects,
                 accumulate=int(option("ACCUMULATE", 1)))
    job.on_commit(applied)
    for epoch in job.epochs(epochs):
        for indices, x, y in job.loader(samples, batch_size=batch, seed=5, num_workers=loaders,
                                        **prefetch):
            at = parts.count.steps
            piece = {"epoch": epoch, "generation": job.generation, "rank": job.rank,
                     "size": job.size, "samples": indices.tolist(),
                     "borrowed": not job._step.samples,  # pylint: disable=protected-access
                     "python": random.random(),
                     "torch": base64.b64encode(bytes(torch.get_rng_state())).decode()}
            # Rank 0 is slow, and a world that waits for a newcomer lets it come.
            time.sleep(option("SLOW") * len(indices) * (8 if job.rank == 0 else 1) +
                       option("WAIT") * (job.size < WORLD))
            parts.optimizer.zero_grad()
            loss = parts.loss(x, y)
            record(piece=at, loss=loss.item(), **piece)
            reach("computed")
            parts.scaler.scale(loss).backward()
            reach("reduced")
            parts.step()
            reach("stepped")
        reach("epoch")
        parts.end_epoch()
    record(final=parts.result())


PLACES = ("computed", "reduced", "committed", "stepped", "epoch")

if __name__ == "__main__":
    train()
