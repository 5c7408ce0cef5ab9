#!/usr/bin/python3
"""Learns Fashion-MNIST with a small convolutional network: elasticrun --np 1:4 worker/examples/torch/fashion.py
[EPOCHS [SAMPLES]]. The data are Debian's package dataset-fashion-mnist."""
import gzip
import os
import sys

import torch
from torch import nn

import elasticrun.torch as er

FOLDER = os.environ.get("FASHION_MNIST", "/usr/share/datasets/fashion-mnist")


def read(name: str, header: int) -> torch.Tensor:
    with gzip.open(os.path.join(FOLDER, name)) as file:
        return torch.frombuffer(bytearray(file.read()[header:]), dtype=torch.uint8)


def dataset(part: str) -> torch.utils.data.TensorDataset:
    images = read(f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28).float() / 255
    return torch.utils.data.TensorDataset(images, read(f"{part}-labels-idx1-ubyte.gz", 8).long())


epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
training, test = dataset("train"), dataset("t10k")
if len(sys.argv) > 2:
    training = torch.utils.data.Subset(training, range(int(sys.argv[2])))
torch.manual_seed(1)  # all workers begin with the weights of rank 0, or with those of the world
model = nn.Sequential(nn.Conv2d(1, 16, 5, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 5, stride=2),
                      nn.ReLU(), nn.Flatten(), nn.Linear(32 * 4 * 4, 10))
optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
criterion = nn.CrossEntropyLoss()

job = er.Job(model, optimizer, schedule)
for epoch in job.epochs(epochs):
    for images, labels in job.loader(training, batch_size=64):
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()
    schedule.step()
    if job.rank == 0:
        with torch.no_grad():
            right = (model(test[:][0]).argmax(1) == test[:][1]).float().mean().item()
        print(f"epoch {epoch + 1}: {right:.1%} of the test images, {job.size} workers", flush=True)
