"""What torch_trainer.py does, with elasticrun.torch: a step of compute, gradients reduced, one line.

    torch_elastic.py LOG_DIR STEP_US GRADIENT_KB [SGD|Adam]
"""
import os
import sys
import time

import torch

import elasticrun.torch as er


class Endless(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 1 << 40

    def __getitem__(self, _: int) -> torch.Tensor:
        return torch.ones(1)


log_dir, step_us, gradient_kb = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
optimizer_kind = getattr(torch.optim, (sys.argv[4:] or ["SGD"])[0])
torch.set_num_threads(1)
model = torch.nn.Linear(1, gradient_kb * 1000 // 4, bias=False)
optimizer = optimizer_kind(model.parameters(), 1e-6)
job = er.Job(model, optimizer)
data = Endless()
log = os.open(os.path.join(log_dir, str(os.getpid())), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
number = 0
for epoch in job.epochs(1):
    begun = time.monotonic_ns()
    for x in job.loader(data, batch_size=1):
        time.sleep(step_us / 1e6)
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        if job.stepped:
            number += 1
            os.write(log, f"{time.monotonic_ns()} {begun} {job.generation} {job.rank} {job.size} "
                          f"{number}\n".encode())
        begun = time.monotonic_ns()
