"""The processor time that the training thread needs for a step of a model with many small gradients: a
plain loop of PyTorch, or the same with elasticrun.torch. Rank 0 prints microseconds, the median.

    torch_cost.py plain|elastic GRADIENTS STEPS
"""
import statistics
import sys
import time
from collections.abc import Iterator

import torch

WIDTH = 8
BATCH = 4
WARM_UP = 20


def plain(data: torch.utils.data.Dataset, _: torch.nn.Module,
          __: torch.optim.Optimizer) -> Iterator[tuple[torch.Tensor, bool]]:
    for x, in torch.utils.data.DataLoader(data, batch_size=BATCH):
        yield x, True


def elastic(data: torch.utils.data.Dataset, model: torch.nn.Module,
            optimizer: torch.optim.Optimizer) -> Iterator[tuple[torch.Tensor, bool]]:
    import elasticrun.torch as er
    job = er.Job(model, optimizer)
    for _ in job.epochs(1):
        for x, in job.loader(data, batch_size=BATCH):
            yield x, job.rank == 0


how, gradients, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) + WARM_UP
workers = 1 if how == "plain" else 2
torch.set_num_threads(1)
model = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(gradients)))
optimizer = torch.optim.SGD(model.parameters(), 1e-9)
data = torch.utils.data.TensorDataset(torch.ones(workers * BATCH * steps, WIDTH))
times, first = [], False
begun = time.thread_time_ns()
for x, first in (plain if how == "plain" else elastic)(data, model, optimizer):
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
    now = time.thread_time_ns()
    times.append(now - begun)
    begun = now
if first:
    print(f"us {statistics.median(times[WARM_UP:]) / 1e3:.1f}")
