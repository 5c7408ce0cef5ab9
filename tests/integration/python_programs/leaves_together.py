#!/usr/bin/env python3
"""All workers leave at the same place; each prints its rank, its step and its weight.

    leaves_together.py step|end|alone   after a step, after a mean at the end of an epoch, at its end
"""
import sys
import time

import torch

import elasticrun.torch as er

PLACE = sys.argv[1]
STEPS = 30
torch.manual_seed(1)
model = torch.nn.Linear(20, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
inputs = torch.randn(4000 if PLACE == "step" else STEPS * 4 * 3, 20)
data = torch.utils.data.TensorDataset(inputs, inputs.sum(1, keepdim=True))
job = er.Job(model, optimizer)
for epoch in job.epochs(1000):
    for some, wanted in job.loader(data, 4):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(some), wanted).backward()
        optimizer.step()
        if PLACE == "step" and job.step == STEPS:
            job.leave()
            break
    if PLACE == "alone":
        time.sleep(0.2 * job.rank)  # a slow validation
    if PLACE == "end":
        job.mean(1.0)
    if PLACE != "step" and job.stepped:
        job.leave()
    if PLACE == "step" or job.stepped:
        break
print(f"rank={job.rank} step={job.step} weight={model.weight.detach()[0, 0].item():.7f}", flush=True)
