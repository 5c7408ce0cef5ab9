"""Calls after leave() (HOW). Each worker gets Misuse, or ends the loops and prints its state."""
import os

import torch
import elasticrun.torch as er

HOW = os.environ["HOW"]
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), 0.1)
scaler = torch.cuda.amp.GradScaler(enabled=False)
data = torch.utils.data.TensorDataset(torch.randn(64, 4))
job = er.Job(model, opt, *([scaler] if HOW == "scaler" else []))
CALLS = {"all_reduce": lambda: job.all_reduce(torch.ones(1)), "mean": lambda: job.mean(1.0),
         "barrier": job.barrier, "step": opt.step, "scaler": lambda: scaler.step(opt)}
try:
    for epoch in job.epochs(3):
        for x, in job.loader(data, batch_size=8):
            model(x).mean().backward()
            opt.step()
            if job.step == 5:
                job.leave()
                if HOW in ("step", "scaler"):
                    model(x).mean().backward()
                    CALLS[HOW]()
                if HOW != "turn":
                    break
        if HOW != "break":
            CALLS[HOW]()
        if job.step == 5:
            break
except er.Misuse as error:
    print("refused", error, flush=True)
path = f"left-{os.environ['ELASTICRUN_WORKER']}.pt"
job.export(path)
if job.rank == 0:
    found = torch.load(path)
    print("export", found["epoch"], found["step"], torch.equal(found["model"]["weight"], model.weight))
print("final", *model.weight.flatten().tolist(), job.step, flush=True)
