"""A loop with a batch norm, and figures of all workers at the end of each epoch. BUFFERS: those of Job.
With DIE the first worker of rank 0 dies in the second epoch: in a step, or among the figures. With EXPORT
a file is written.

Prints: figures EPOCH SIZE RANK MEAN COUNT SUM-OF-RANKS HAPPENED, for those of that epoch; running EPOCH RANK
OF-THE-JOB OF-THIS-WORKER, statistics, for a worker of the first world; and final NUMBER...
"""
import os
import signal
import time

import torch

import elasticrun.torch as er

torch.manual_seed(1)
torch.set_num_threads(1)
inputs = torch.randn(96, 1, dtype=torch.float64)
dataset = torch.utils.data.TensorDataset(inputs, inputs.sin())
norm = torch.nn.BatchNorm1d(1)
model = torch.nn.Sequential(norm, torch.nn.Linear(1, 1)).double()
optimizer = torch.optim.SGD(model.parameters(), 0.01)
own = torch.zeros(1, dtype=torch.float64)  # what the statistics of this worker's samples are


def may_die(place: str) -> None:
    if os.environ.get("DIE") == place and epoch == 1 and job.rank == 0 and job.size == 3:
        os.kill(os.getpid(), signal.SIGKILL)


first = None  # epoch of this worker
job = er.Job(model, optimizer, buffers=os.environ["BUFFERS"])
for epoch in job.epochs(4):
    first = epoch if first is None else first
    for x, y in job.loader(dataset, batch_size=8):
        time.sleep(float(os.environ.get("TOY_SLEEP", "0")))
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        may_die("step")
        loss.backward()
        optimizer.step()
        if job.stepped:
            own += 0.1 * (x.mean(0) - own)
    mean = job.mean(job.rank + 1)
    may_die("figures")
    counts = torch.tensor([1, job.rank])
    job.all_reduce(counts)
    job.barrier()
    if "EXPORT" in os.environ:
        job.export(os.environ["EXPORT"])
    print("figures", epoch, job.size, job.rank, mean, *counts.tolist(), int(job.stepped), flush=True)
    if first == 0:
        print("running", epoch, job.rank, norm.running_mean.item(), own.item(), flush=True)
print("final", norm.num_batches_tracked.item(), *(number.item() for number in model.parameters()),
      *([] if os.environ["BUFFERS"] == "local" else [norm.running_mean.item(), norm.running_var.item()]),
      flush=True)
