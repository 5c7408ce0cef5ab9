"""The loop of PyTorch's tutorials, elastic. With DIE the worker of rank 0 dies at the end of the second
epoch; the last epoch does not end while there is the file HOLD. With BY_STEPS the scheduler is made from the loader's length, and counts steps.

Prints: epochs EPOCH..., and final EPOCHS-OF-THE-SCHEDULER UPDATES-OF-THE-MEAN NUMBER...
"""
import os
import signal
import time

import torch

import elasticrun.torch as er

BATCH, ACCUMULATE = (int(os.environ.get(name, "1")) for name in ("BATCH", "ACCUMULATE"))
LOADERS = int(os.environ.get("LOADERS", "0"))  # processes that fetch samples
BY_STEPS = "BY_STEPS" in os.environ
SLOW = os.environ.get("SLOW", "")  # turns are slow as long as there is this file
HOLD = os.environ.get("HOLD", "")
SLEEP = float(os.environ.get("TOY_SLEEP", "0"))  # seconds in each turn
OPTIMIZERS = {"sgd": lambda parameters: torch.optim.SGD(parameters, 0.05, momentum=0.9),
              "adamw": lambda parameters: torch.optim.AdamW(parameters, 0.01)}

torch.manual_seed(1)
torch.set_num_threads(1)
inputs = torch.randn(481, 6, dtype=torch.float64)  # the last step has one sample, for one worker
dataset = torch.utils.data.TensorDataset(inputs, inputs.sin().sum(1, keepdim=True))
model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).double()
optimizer = OPTIMIZERS[os.environ.get("OPTIMIZER", "adamw")](model.parameters())
mean = torch.optim.swa_utils.AveragedModel(model)
criterion = torch.nn.MSELoss()
seen = []

job = er.Job(model, optimizer, mean, accumulate=ACCUMULATE)
loader = job.loader(dataset, batch_size=BATCH, seed=5, num_workers=LOADERS,
                    persistent_workers="PERSISTENT" in os.environ)
schedulers = torch.optim.lr_scheduler
scheduler = (schedulers.OneCycleLR(optimizer, 0.05, total_steps=6 * len(loader)) if BY_STEPS
             else schedulers.CosineAnnealingLR(optimizer, 6))
job.register(scheduler)
for epoch in job.epochs(6):
    seen.append(epoch)
    for x, y in loader:
        time.sleep(0.4 if os.path.exists(SLOW) else SLEEP)
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if BY_STEPS:
            scheduler.step()
        mean.update_parameters(model)
    if not BY_STEPS:
        scheduler.step()
    if epoch == 5 and HOLD:
        print("holding", flush=True)
        while os.path.exists(HOLD):
            time.sleep(0.01)
    if "DIE" in os.environ and seen == [0, 1] and job.size > 1:
        job.barrier()  # the others have committed the last step, too
        if job.rank == 0:
            os.kill(os.getpid(), signal.SIGKILL)
print("epochs", *seen)
print("final", scheduler.last_epoch, mean.n_averaged.item(),
      *(value.item() for module in (model, mean) for parameter in module.parameters()
        for value in parameter.detach().flatten()), flush=True)
