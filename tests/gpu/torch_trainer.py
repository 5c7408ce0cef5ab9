"""Learns Fashion-MNIST with elasticrun.torch on the GPU, or on the CPU where there is none; says where it
has ended. Steps are slow as long as there is the file SLOW.

    torch_trainer.py EPOCHS
"""
import gzip
import os
import sys
import time

import torch
from torch import nn

import elasticrun.torch as er

FOLDER = os.environ.get("GPU_DATA", "/usr/share/datasets/fashion-mnist")
SAMPLES, BATCH = 2560, 128


def read(name: str, header: int) -> torch.Tensor:
    with gzip.open(os.path.join(FOLDER, name)) as file:
        return torch.frombuffer(bytearray(file.read()[header:]), dtype=torch.uint8)


device = torch.device("cpu")
if torch.cuda.is_available():
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())
    torch.cuda.set_device(device)
images = read("train-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28)[:SAMPLES].double() / 255
labels = read("train-labels-idx1-ubyte.gz", 8)[:SAMPLES].long()
torch.manual_seed(1)
model = nn.Sequential(nn.Conv2d(1, 8, 5, stride=2), nn.GroupNorm(2, 8), nn.ReLU(), nn.Flatten(),
                      nn.Linear(8 * 12 * 12, 64), nn.ReLU(), nn.Linear(64, 10)).double().to(device)
epochs = int(sys.argv[1])
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
data = torch.utils.data.TensorDataset(images, labels)
job = er.Job(model, optimizer, schedule)
for epoch in job.epochs(epochs):
    for x, y in job.loader(data, batch_size=BATCH):
        if os.path.exists(os.environ.get("SLOW", "")):
            time.sleep(0.25)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
    schedule.step()
    mean = job.mean(loss.detach())
    if job.rank == 0:
        print(f"epoch {epoch + 1}: loss {mean.item():.4f} on {job.size} ranks", flush=True)
print("final", *(number.item() for p in model.parameters() for number in (p.sum(), p.norm())), flush=True)
