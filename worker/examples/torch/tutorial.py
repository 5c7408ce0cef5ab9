#!/usr/bin/python3
"""The trainer of PyTorch's tutorial for DistributedDataParallel, elastic:
elasticrun --np 1:4 worker/examples/torch/tutorial.py [EPOCHS]. Comments say what stood there."""
import sys

import torch
import torch.nn.functional as F
from torch.utils.data import Dataset

import elasticrun.torch as er


class Points(Dataset):
    """Points of a plane with some noise."""

    def __init__(self, size: int) -> None:
        generator = torch.Generator().manual_seed(3)
        self.x = torch.randn(size, 20, generator=generator)
        self.y = self.x.sum(1, keepdim=True) + 0.1 * torch.randn(size, 1, generator=generator)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> "tuple[torch.Tensor, torch.Tensor]":
        return self.x[index], self.y[index]


class Trainer:
    def __init__(self, model: torch.nn.Module, data: Dataset,
                 optimizer: torch.optim.Optimizer) -> None:
        self.model, self.data, self.optimizer = model, data, optimizer  # DDP(model, [rank])
        self.job = er.Job(model, optimizer)  # init_process_group("nccl"), load_snapshot(path)

    def run_batch(self, source: torch.Tensor, targets: torch.Tensor) -> float:
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.model(source), targets)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def train(self, epochs: int) -> None:
        for epoch in self.job.epochs(epochs):  # range(self.epochs_run, epochs)
            loss = 0.0  # sampler.set_epoch(epoch)
            for source, targets in self.job.loader(self.data, batch_size=32):  # DataLoader
                loss = self.run_batch(source, targets)
            if self.job.rank == 0:  # save_snapshot(epoch): with --save elasticrun does that
                print(f"epoch {epoch + 1}: loss {loss:.4f}, {self.job.size} workers", flush=True)


torch.manual_seed(1)
network = torch.nn.Linear(20, 1)
Trainer(network, Points(2048), torch.optim.SGD(network.parameters(), 1e-2)).train(
    int(sys.argv[1]) if len(sys.argv) > 1 else 5)  # destroy_process_group()
