"""The time of a step of a model whose gradients are reduced over the workers: with DistributedDataParallel
or with elasticrun.torch, in buckets of the same size. Rank 0 prints milliseconds, the median.

    torch_step.py ddp|elastic MILLIONS_OF_PARAMETERS STEPS [cpu|cuda [float32|bfloat16]]
"""
import statistics
import sys
import time
from collections.abc import Iterator

import torch

WIDTH = 1000  # a layer has a million parameters
BATCH = 16
WARM_UP = 3


def plain(model: torch.nn.Module, steps: int) -> Iterator[tuple[torch.Tensor, torch.nn.Module, bool]]:
    torch.distributed.init_process_group("nccl" if device == "cuda" else "gloo")
    wrapped = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=25)
    for _ in range(steps):
        yield torch.ones(BATCH, WIDTH), wrapped, torch.distributed.get_rank() == 0
    torch.distributed.destroy_process_group()


def elastic(model: torch.nn.Module, optimizer: torch.optim.Optimizer,
            steps: int) -> Iterator[tuple[torch.Tensor, torch.nn.Module, bool]]:
    import elasticrun.torch as er
    job = er.Job(model, optimizer, bucket_mb=25)
    data = torch.utils.data.TensorDataset(torch.ones(1, WIDTH).expand(2 * BATCH * steps, WIDTH))
    for _ in job.epochs(1):
        for x, in job.loader(data, batch_size=BATCH):
            yield x, model, job.rank == 0


mode, layers, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) + WARM_UP
device, kind = [*sys.argv[4:], *("cpu", "float32")[len(sys.argv) - 4:]]
torch.set_num_threads(1)
model = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(layers)))
model.to(device, getattr(torch, kind))
optimizer = torch.optim.SGD(model.parameters(), 1e-9)
turns = plain(model, steps) if mode == "ddp" else elastic(model, optimizer, steps)
times, first = [], False
begun = time.monotonic()
for x, called, first in turns:
    optimizer.zero_grad()
    called(x.to(device, getattr(torch, kind))).sum().backward()
    optimizer.step()
    if device == "cuda":
        torch.cuda.synchronize()
    times.append(time.monotonic() - begun)
    begun = time.monotonic()
if first:
    print(f"ms {1e3 * statistics.median(times[WARM_UP:]):.3f}")
