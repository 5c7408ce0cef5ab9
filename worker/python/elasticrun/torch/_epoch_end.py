"""What all workers do together at the end of an epoch, such as the figures of a validation. It is part
of that step: when the world breaks there, WorldChanged is raised, and values stay this worker's own."""
from __future__ import annotations

import os
from typing import Any

import torch

from .. import Job as Core
from .._library import Misuse

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
