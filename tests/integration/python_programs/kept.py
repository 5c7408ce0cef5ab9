"""A failure that the backward pass finds (momentum differs between the workers), and the next
call of the program (HOW)."""
import os

import torch
import elasticrun.torch as er

HOW = os.environ["HOW"]
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
scaler = torch.cuda.amp.GradScaler(enabled=False)
data = torch.utils.data.TensorDataset(torch.randn(32, 4))
job = er.Job(model, opt, scaler)
for epoch in job.epochs(2):
    for x, in job.loader(data, batch_size=4):
        if HOW == "idle" or job.step < 3:  # in step 3 rank 1 has no backward pass
            if job.step != 3 or job.rank != 1:
                model(x).mean().backward()
            scaler.step(opt)
            scaler.update()
            continue
        opt.param_groups[0]["momentum"] = 0.9 - 0.1 * job.rank
        model(x).mean().backward()
        if HOW == "step":
            scaler.step(opt)
        elif HOW == "update":
            scaler.update()
        elif HOW == "caught":
            try:
                scaler.step(opt)
            except er.Misuse as error:
                print("caught", error, flush=True)
            continue
        elif HOW == "leave":
            job.leave()
        break
    if HOW == "all_reduce":
        job.all_reduce(torch.ones(1))
    if HOW not in ("epoch", "idle"):
        break
print("final", *model.weight.flatten().tolist(), job.step, flush=True)
