"""The loop of PyTorch's tutorials, elastic. Prints: final EPOCHS-OF-THE-SCHEDULER NUMBER..."""
import os
import time

import torch

import elasticrun.torch as er

torch.manual_seed(1)
torch.set_num_threads(1)
inputs = torch.randn(480, 6, dtype=torch.float64)
dataset = torch.utils.data.TensorDataset(inputs, inputs.sin().sum(1, keepdim=True))
model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).double()
optimizer = {"sgd": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9),
             "adamw": lambda p: torch.optim.AdamW(p, 0.01)}[os.environ.get("OPTIMIZER", "adamw")]
optimizer = optimizer(model.parameters())
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 6)
criterion = torch.nn.MSELoss()
SLEEP = float(os.environ.get("TOY_SLEEP", "0"))

job = er.Job(model, optimizer, scheduler, accumulate=int(os.environ.get("ACCUMULATE", "1")))
for epoch in job.epochs(6):
    for x, y in job.loader(dataset, batch_size=int(os.environ.get("BATCH", "8")), seed=5):
        time.sleep(SLEEP)
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    scheduler.step()
print("final", scheduler.last_epoch, *(value.item() for p in model.parameters()
                                       for value in p.detach().flatten()), flush=True)
