"""A rate that depends on how the program finds it (HOW)."""
import os
import time

import torch
import elasticrun.torch as er

HOW = os.environ["HOW"]
torch.manual_seed(0)
torch.set_num_threads(1)

def make_group() -> None:
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0,
                                         world_size=1)


if HOW == "group":
    make_group()
model = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1 if HOW == "patience" else 0)
x = torch.randn(64, 4)
data = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
job = er.Job(model, opt, *([sched] if HOW in ("plateau", "patience") else []))
counter = 0
for epoch in job.epochs(int(os.environ.get("EPOCHS", "3"))):
    for a, b in job.loader(data, batch_size=8):
        if HOW in ("counter", "step"):
            opt.param_groups[0]["lr"] = 0.1 / (1 + (counter if HOW == "counter" else job.step) / 20)
        elif HOW == "momentum":
            opt.param_groups[0]["momentum"] = 0.9 - 0.1 * job.rank
        opt.zero_grad()
        torch.nn.functional.mse_loss(model(a), b).backward()
        opt.step()
        counter += job.stepped
        if job.step == 16:
            print("step 16", flush=True)
        if HOW == "late group" and job.stepped and counter == 3:
            make_group()
        if os.path.exists(os.environ.get("SLOW", "")):
            time.sleep(0.2)
    if HOW in ("plateau", "patience"):
        sched.step(1 / (epoch + 1) if job.rank == 0 else 1.0)
print("final", *model.weight.flatten().tolist(), job.step, flush=True)
