#!/usr/bin/python3
"""Learns to sort digits with a small transformer:
elasticrun --np 1:4 worker/examples/torch/transformer.py [EPOCHS [LINES]].
A line of its text is '518403>013458'. Mixed precision, accumulation of gradients, clipping and
a schedule by steps are written as for one process."""
import os
import sys

import torch
from torch import nn

import elasticrun.torch as er

DIGITS, MARK, WIDTH, WARM_UP = 6, 10, 32, 50
GradScaler = getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)  # its old name, to torch 2.2


def text(lines: int, seed: int) -> torch.utils.data.TensorDataset:
    generator = torch.Generator().manual_seed(seed)
    digits = torch.randint(10, (lines, DIGITS), generator=generator)
    line = torch.cat([digits, torch.full((lines, 1), MARK), digits.sort().values], 1)
    return torch.utils.data.TensorDataset(line)


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, 0.0, batch_first=True,
                                           norm_first=True)
        self.symbols, self.places = nn.Embedding(MARK + 1, WIDTH), nn.Embedding(2 * DIGITS, WIDTH)
        self.layers, self.head = nn.TransformerEncoder(layer, 2), nn.Linear(WIDTH, MARK)

    def forward(self, line: torch.Tensor) -> torch.Tensor:
        length = line.shape[1]
        later = torch.ones(length, length, dtype=torch.bool, device=line.device).triu(1)
        place = torch.arange(length, device=line.device)
        return self.head(self.layers(self.symbols(line) + self.places(place), later))[:, DIGITS:]


epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 6
training, test = text(int(sys.argv[2]) if len(sys.argv) > 2 else 4000, 1), text(1000, 2)
device, kind = torch.device("cpu"), torch.bfloat16
if torch.cuda.is_available():
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    kind = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
torch.manual_seed(1)
model = Transformer().to(device)
optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
schedule = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda step: min((step + 1) / WARM_UP, (WARM_UP / (step + 1)) ** 0.5))
scaler = GradScaler(enabled=kind == torch.float16)  # the gradients of bfloat16 need none

job = er.Job(model, optimizer, schedule, scaler, accumulate=2)
for epoch in job.epochs(epochs):
    for (line,) in job.loader(training, batch_size=32):
        line = line.to(device)
        optimizer.zero_grad()
        with torch.autocast(device.type, kind):
            guess = model(line[:, :-1])
            loss = nn.functional.cross_entropy(guess.flatten(0, 1), line[:, DIGITS + 1:].flatten())
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
    if job.rank == 0:
        line = test[:][0].to(device)
        with torch.no_grad():
            right = (model(line[:, :-1]).argmax(2) == line[:, DIGITS + 1:]).all(1)
        print(f"epoch {epoch + 1}: {right.float().mean().item():.1%} of the test lines, "
              f"step {schedule.last_epoch}, {job.size} workers", flush=True)
