"""What becomes of a model's buffers, such as the running statistics of a batch norm, which the forward
pass changes before it is known whether the step happens."""
from __future__ import annotations

from typing import Optional

import torch

from .. import Job as Core
from .._library import Misuse
from ._gradients import flat

REDUCED = (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int32, torch.int64)


class Local:
    """Each worker keeps its own. As an object of the job it carries those of one worker to newcomers:
    what is registered would be compared, and arrays of a source come in parts from several workers."""

    def __init__(self, named: list[tuple[str, torch.Tensor]]) -> None:
        self._names = [name for name, _ in named]
        self._flats = [flat(buffer) for _, buffer in named]
        self._committed = [row.clone() for row in self._flats]
        self._touched = False  # by samples that do not count

    def begin(self) -> None:
        """Before a step: what a step that did not happen has left is put back."""
        if self._touched:
            for row, committed in zip(self._flats, self._committed):
                row.copy_(committed)
        self._touched = True

    def commit(self, borrowed: bool) -> None:
        """After a step; `borrowed`: its samples here did not count."""
        if not borrowed:
            for row, committed in zip(self._flats, self._committed):
                committed.copy_(row)
            self._touched = False

    def state_dict(self) -> dict[str, torch.Tensor]:
        return dict(zip(self._names, self._committed))

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        for name, row, committed in zip(self._names, self._flats, self._committed):
            committed.copy_(state[name])
            row.copy_(committed)
        self._touched = False


def register(core: Core, model: torch.nn.Module, how: str) -> Optional[Local]:
    """`how`, mean: of all workers, over the samples. rank0: those of the first worker with samples, as
    the library does it with integers; floats are given to it as such, bit by bit. local: see Local."""
    named = list(model.named_buffers())
    if how == "local":
        return Local(named)
    for name, buffer in named:
        row = flat(buffer)
        if how == "rank0" and buffer.is_floating_point():
            if row.numel() * row.element_size() % 4 or row.storage_offset() * row.element_size() % 4:
                raise Misuse(f"Job: '{name}' has an odd number of 16-bit floats; take buffers='mean'")
            row = row.view(torch.int32)
        if buffer.dtype in REDUCED:
            core.buffers(described(name, buffer), row)
        else:
            core.state(described(name, buffer), row.view(torch.uint8))  # DLPack has no bool
    return None


def described(name: str, tensor: torch.Tensor) -> str:
    return f"{name} {str(tensor.dtype)[len('torch.'):]} {list(tensor.shape)}"
