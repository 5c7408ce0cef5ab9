"""Small models beside each other in one job, each of which gives tensors other memory in its own way.
ROWS names those that take part (see moving_parameters.py and moving_buffers.py); all by default. The
last epoch does not end while there is the file HOLD. Alone it also trains in plain torch, with the same
batches.

Prints for each row: final ROW NUMBER..., and alone: plain ROW NUMBER...
"""
import os
import time

import torch

import elasticrun.torch as er
import moving_buffers  # pylint: disable=unused-import  # which adds its own
from moving_parameters import FOLLOWED

EPOCHS = 6
ROWS = os.environ.get("ROWS", ",".join(FOLLOWED)).split(",")
HOLD = os.environ.get("HOLD", "")
SLOW = os.environ.get("SLOW", "")  # turns are slow as long as there is this file
SLEEP = float(os.environ.get("TOY_SLEEP", "0"))  # seconds in each turn
ALONE = "ELASTICRUN_SOCKET" not in os.environ

torch.set_num_threads(1)
torch.manual_seed(1)
inputs = torch.randn(40, 4, dtype=torch.float64)
dataset = torch.utils.data.TensorDataset(inputs, inputs.sin().sum(1, keepdim=True))


class Training:
    """What a program does, with a job or without."""

    def __init__(self):
        torch.manual_seed(2)
        self.rows = {name: FOLLOWED[name]() for name in ROWS}
        self.model = torch.nn.ModuleDict({name: row.model.double() for name, row in self.rows.items()})
        self.opt = torch.optim.SGD(self.model.parameters(), 0.01, momentum=0.5)

    def each(self, name):
        for row in self.rows.values():
            getattr(row, name)(self.opt)

    def step(self, x, y):
        self.opt.zero_grad()
        sum(torch.nn.functional.mse_loss(model(x), y) for model in self.model.values()).backward()
        self.each("after_backward")
        self.opt.step()

    def print(self, word):
        for name, model in self.model.items():
            print(word, name, *(value.item() for tensor in model.state_dict().values()
                                for value in tensor.double().flatten()), flush=True)


elastic = Training()
job = er.Job(elastic.model, elastic.opt)
elastic.each("after_job")
epochs = []
for epoch in job.epochs(EPOCHS):
    batches = []
    for x, y in job.loader(dataset, batch_size=10, seed=5):
        time.sleep(1 if os.path.exists(SLOW) else SLEEP)
        batches.append((x, y))
        elastic.step(x, y)
        if job.stepped:
            elastic.each("after_step")
    if epoch in (1, 3):
        elastic.each("after_epoch")
    while epoch == EPOCHS - 1 and HOLD and os.path.exists(HOLD):
        time.sleep(0.01)
    epochs.append(batches)
elastic.print("final")
if ALONE:
    plain = Training()
    plain.each("after_job")
    for epoch, batches in enumerate(epochs):
        for x, y in batches:
            plain.step(x, y)
            plain.each("after_step")
        if epoch in (1, 3):
            plain.each("after_epoch")
    plain.print("plain")
    for name, row in plain.rows.items():
        theirs = [t.stride() for t in row.model.parameters()]
        ours = [t.stride() for t in elastic.rows[name].model.parameters()]
        assert ours == theirs, (name, ours, theirs)
