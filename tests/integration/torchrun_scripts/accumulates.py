"""Gradient accumulation with no_sync, a scheduler, clipping, and a line from every rank."""
import argparse
import contextlib
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

parser = argparse.ArgumentParser()
parser.add_argument("--accumulate", type=int, default=2)
parser.add_argument("--steps", type=int, default=6)
options = parser.parse_args()

dist.init_process_group("gloo")
torch.manual_seed(7)
model = DDP(torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.Tanh(), torch.nn.Linear(12, 1)))
opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
schedule = torch.optim.lr_scheduler.StepLR(opt, 2, 0.5)
draw = torch.Generator().manual_seed(int(os.environ["RANK"]))
for step in range(options.steps):
    opt.zero_grad()
    for micro in range(options.accumulate):
        last = micro == options.accumulate - 1
        with contextlib.nullcontext() if last else model.no_sync():
            x = torch.randn(8, 6, generator=draw)
            loss = (model(x).squeeze() - x[:, 0]).square().mean() / options.accumulate
            loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    schedule.step()
sys.stdout.write(f"rank {dist.get_rank()} loss {loss.item():.6f}\n")  # one write: lines stay whole
dist.destroy_process_group()
