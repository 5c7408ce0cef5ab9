"""Elastic training for PyTorch: a plain loop whose world grows and shrinks, and which goes on from the
memory of the survivors when a worker dies.

    job = er.Job(model, opt, sched)                        # in place of init_process_group and DDP
    for epoch in job.epochs(90):                           # a newcomer begins where the world is
        for x, y in job.loader(dataset, batch_size=32):    # in place of sampler and DataLoader
            opt.zero_grad(); criterion(model(x), y).backward(); opt.step()
        sched.step()

`elasticrun-python(3)` says how it is used.
"""
from .._library import Evicted, Failed, Misuse, version
from ._job import Job

__all__ = ["Evicted", "Failed", "Job", "Misuse", "version"]
