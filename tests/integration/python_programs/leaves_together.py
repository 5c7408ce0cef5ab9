#!/usr/bin/env python3
"""All workers leave after the same step; each prints its rank, its step and its weight."""
import torch

import elasticrun.torch as er

STEPS = 30
torch.manual_seed(1)
model = torch.nn.Linear(20, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
inputs = torch.randn(4000, 20)
data = torch.utils.data.TensorDataset(inputs, inputs.sum(1, keepdim=True))
job = er.Job(model, optimizer)
for epoch in job.epochs(1000):
    for some, wanted in job.loader(data, 4):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(some), wanted).backward()
        optimizer.step()
        if job.step == STEPS:
            job.leave()
            break
    if job.step == STEPS:
        break
print(f"rank={job.rank} step={job.step} weight={model.weight.detach()[0, 0].item():.7f}", flush=True)
