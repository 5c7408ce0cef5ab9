"""The check of the arguments of Job()."""
from __future__ import annotations

import torch

from .._library import Misuse


def check(model: torch.nn.Module, optimizer: torch.optim.Optimizer, accumulate: int,
          buffers: str) -> None:
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise Misuse("Job(model, optimizer, ...): the second argument is a "
                     f"{type(optimizer).__name__}")
    if accumulate < 1:
        raise Misuse(f"Job: accumulate is {accumulate}; it is at least 1")
    if buffers not in ("mean", "rank0", "local"):
        raise Misuse(f"Job: buffers={buffers!r}; it is 'mean', 'rank0' or 'local'")
    if isinstance(model, torch.nn.parallel.DistributedDataParallel):
        raise Misuse("Job: the model is wrapped in DistributedDataParallel; give the model itself, and "
                     "leave out init_process_group")
    if any(isinstance(module, torch.nn.SyncBatchNorm) for module in model.modules()):
        raise Misuse("Job: SyncBatchNorm needs a process group, and a job has none; leave out "
                     "convert_sync_batchnorm: with buffers='mean' all get the same statistics")
    known = {id(p) for p in model.parameters()}
    if any(id(p) not in known for group in optimizer.param_groups for p in group["params"]):
        raise Misuse("Job: the optimizer has a parameter that is not the model's; give the modules in "
                     "one torch.nn.ModuleList")
    for name, parameter in model.named_parameters():
        if type(parameter.data).__name__ == "DTensor":
            raise Misuse(f"Job: '{name}' is sharded (FSDP, DTensor); a worker holds the whole model")
