"""Rank 0 evaluates and writes long after the others have ended."""
import os
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
value = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(value)
rank = dist.get_rank()
dist.barrier()
if rank == 0:
    time.sleep(1.5)
    print(f"evaluation: loss {value.item():.6f}", flush=True)
elif rank == 1:
    os._exit(0)
