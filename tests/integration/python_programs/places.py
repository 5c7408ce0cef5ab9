"""Raises an exception at the place that PLACE names, in the second epoch where that can be."""
import os
import sys

import torch

import elasticrun.torch as er

PLACE = os.environ["PLACE"]


def reach(place: str) -> None:
    if place == PLACE == "exit":
        sys.exit(0)
    if place == PLACE:
        raise ArithmeticError("raised in " + place)


class Data(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, number: int) -> torch.Tensor:
        reach("data")
        return torch.full((2,), float(number))


torch.set_num_threads(1)
reach("begin")
data = Data()
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 1e-5)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: reach("schedule") or 1.0)
job = er.Job(model, optimizer, schedule)
job.on_commit(lambda: reach("commit"))
for epoch in job.epochs(2):
    for x in job.loader(data, batch_size=8, num_workers=1 if "LOADERS" in os.environ else 0):
        reach("loop")
        reach("exit")
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.register_hook(lambda gradient: reach("backward"))
        loss.backward()
        optimizer.step()
    if epoch == 1:
        reach("epoch")
    schedule.step()
reach("end")
