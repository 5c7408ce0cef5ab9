"""Reads every variable by hand, and names rank and size itself."""
import os

import torch
import torch.distributed as dist

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
assert os.environ["MASTER_ADDR"] and int(os.environ["MASTER_PORT"]) > 0
assert 0 <= int(os.environ["LOCAL_RANK"]) < int(os.environ["LOCAL_WORLD_SIZE"]) <= size
assert 0 <= int(os.environ["GROUP_RANK"]) and os.environ["ROLE_RANK"] == str(rank)
assert os.environ["ROLE_WORLD_SIZE"] == str(size) and os.environ["ROLE_NAME"] == "default"
dist.init_process_group("gloo", init_method="env://", rank=rank, world_size=size)
weights = torch.zeros(4)
target = torch.arange(4.0)
for step in range(6):
    gradient = 2 * (weights - target) * (rank + 1)
    dist.all_reduce(gradient)
    weights -= 0.1 * gradient / size
    if rank == 0:
        print(f"step {step} loss {(weights - target).square().sum().item():.6f}", flush=True)
dist.destroy_process_group()
