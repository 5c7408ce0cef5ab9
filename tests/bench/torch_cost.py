"""The processor time that the training thread needs for a step of a model with many small gradients: a
plain loop of PyTorch, the same with one bare collective of as many bytes, with DistributedDataParallel,
or with elasticrun.torch. Rank 0 prints microseconds, the median.

    torch_cost.py plain|collective|ddp|elastic GRADIENTS STEPS
"""
import statistics
import sys
import time
from collections.abc import Iterator

import torch

WIDTH = 8
BATCH = 4
WARM_UP = 20


def plain(data: torch.utils.data.Dataset, model: torch.nn.Module,
          _: torch.optim.Optimizer) -> Iterator[tuple[torch.Tensor, torch.nn.Module, bool]]:
    for x, in torch.utils.data.DataLoader(data, batch_size=BATCH):
        yield x, model, True


def ddp(data: torch.utils.data.Dataset, model: torch.nn.Module,
        optimizer: torch.optim.Optimizer) -> Iterator[tuple[torch.Tensor, torch.nn.Module, bool]]:
    torch.distributed.init_process_group("gloo")
    wrapped = torch.nn.parallel.DistributedDataParallel(model)
    for x, _, _ in plain(data, model, optimizer):
        yield x, wrapped, torch.distributed.get_rank() == 0
    torch.distributed.destroy_process_group()


def collective(data: torch.utils.data.Dataset, model: torch.nn.Module,
               optimizer: torch.optim.Optimizer) -> Iterator[tuple[torch.Tensor, torch.nn.Module, bool]]:
    torch.distributed.init_process_group("gloo")
    numbers = torch.zeros(sum(p.numel() for p in model.parameters()))
    for x, _, _ in plain(data, model, optimizer):
        yield x, model, torch.distributed.get_rank() == 0
        torch.distributed.all_reduce(numbers)
    torch.distributed.destroy_process_group()


def elastic(data: torch.utils.data.Dataset, model: torch.nn.Module,
            optimizer: torch.optim.Optimizer) -> Iterator[tuple[torch.Tensor, torch.nn.Module, bool]]:
    import elasticrun.torch as er
    job = er.Job(model, optimizer)
    for _ in job.epochs(1):
        for x, in job.loader(data, batch_size=BATCH):
            yield x, model, job.rank == 0


def main() -> None:
    how, gradients, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) + WARM_UP
    workers = 2 if how == "elastic" else 1  # between which the samples are divided
    torch.set_num_threads(1)
    model = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(gradients)))
    optimizer = torch.optim.SGD(model.parameters(), 1e-9)
    data = torch.utils.data.TensorDataset(torch.ones(workers * BATCH * steps, WIDTH))
    times, first = [], False
    begun = time.thread_time_ns()
    loops = {"plain": plain, "collective": collective, "ddp": ddp, "elastic": elastic}
    for x, called, first in loops[how](data, model, optimizer):
        optimizer.zero_grad()
        called(x).sum().backward()
        optimizer.step()
        now = time.thread_time_ns()
        times.append(now - begun)
        begun = now
    if first:
        print(f"us {statistics.median(times[WARM_UP:]) / 1e3:.1f}")


main()  # what it holds must be gone before the interpreter ends, or PyTorch 2.15 may abort
