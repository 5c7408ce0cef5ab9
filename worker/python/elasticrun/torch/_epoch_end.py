"""What all workers do together at the end of an epoch, such as the figures of a validation. It is part
of that step: when the world breaks there, WorldChanged is raised, and values stay this worker's own."""
from __future__ import annotations

import os
from typing import Any, Callable

import torch

from .. import Job as Core
from .._library import Misuse, WorldChanged

SUMMED = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def all_reduce(core: Core, tensor: torch.Tensor) -> None:
    """Sums over the world, in place; integers as float64."""
    if not isinstance(tensor, torch.Tensor) or tensor.is_complex():
        raise Misuse("job.all_reduce: takes a tensor of real numbers; job.mean takes numbers as well")
    kind = tensor.dtype if tensor.dtype in SUMMED else torch.float64
    row = tensor.detach().to(kind).reshape(-1).clone()  # a sum that breaks leaves anything
    core.all_reduce(row)
    tensor.detach().copy_(row.reshape(tensor.shape))


def mean(core: Core, value: Any) -> Any:
    """Over the workers: of a number a float, of a tensor one like it."""
    if not isinstance(value, torch.Tensor):
        return mean(core, torch.tensor(float(value), dtype=torch.float64)).item()
    if not value.is_floating_point():
        raise Misuse(f"job.mean: a tensor of {value.dtype} has no mean of its type; give tensor.float()")
    sums = value.detach().to(torch.promote_types(value.dtype, torch.float32), copy=True)
    all_reduce(core, sums)
    return (sums / core.size).to(value.dtype)


def export(path: str, content: dict[str, Any]) -> None:
    """A file that is whole or not there."""
    beside = f"{path}.{os.getpid()}.tmp"
    try:
        torch.save(content, beside)
        os.replace(beside, path)
    finally:
        if os.path.exists(beside):
            os.unlink(beside)


class EpochEnd:
    """The part of a Job that acts between the loop over the loader and the next epoch."""

    def mean(self, value: Any) -> Any:
        """At the end of an epoch: the mean over the workers of a number or a tensor of each. All make the
        same calls. When a worker dies there the value stays as it is, `stepped` is false, and the epoch
        is repeated."""
        return self._together("mean", value, mean, value)

    def all_reduce(self, tensor: torch.Tensor) -> None:
        """The same for the sum, in place."""
        self._together("all_reduce", None, all_reduce, tensor)

    def barrier(self) -> None:
        """At the end of an epoch: returns when all workers have called it, or one has died."""
        self._together("barrier", None, Core.barrier)

    def export(self, path: str) -> None:
        """At the end of an epoch, after the last one, or after leave(): rank 0 writes a file for
        torch.load with the state_dicts of `model`, `optimizer` and `objects`, and the numbers of
        `epoch`s and `step`s. At the end of an epoch writes nothing if `stepped` is false, because the
        loop repeats it."""
        ended = self._left or self._over
        if not ended:
            self._at_end("export")
        if self.rank == 0 and (self.stepped or ended):
            step = self._step
            epoch = (step.epochs_done or step.epoch) if step is not None else 0
            export(path, {
                "model": self._model.state_dict(), "optimizer": self._optimizer.state_dict(),
                "objects": self._objects.state_dicts(),
                "epoch": self._epochs if self._over else epoch, "step": self.step})

    def _at_end(self, what: str) -> None:
        self._refuse_after_leave(f"job.{what}")
        self._gradients.kept.raise_one()
        self._break_at_end()
        if not self._is_at_end():
            raise Misuse(f"job.{what}: only at the end of an epoch, after the loop over job.loader and "
                         "inside the loop over job.epochs")

    def _together(self, what: str, otherwise: Any, function: Callable[..., Any], *arguments: Any) -> Any:
        self._at_end(what)
        try:
            return function(self._core, *arguments)
        except WorldChanged:
            self.stepped = False
            return otherwise
