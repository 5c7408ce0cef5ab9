"""ddp_loop.py with elasticrun.torch."""
import os
import sys
import time

import torch
import torch.nn.functional as F
from torch.utils.data import Dataset, TensorDataset

import elasticrun.torch as er


SLOW = os.environ.get("SLOW", "")  # steps are slow as long as there is this file


class Trainer:
    def __init__(self, model: torch.nn.Module, data: Dataset, optimizer: torch.optim.Optimizer) -> None:
        self.model, self.optimizer = model, optimizer
        self.job = er.Job(model, optimizer)
        self.loader = self.job.loader(data, batch_size=8)

    def run_batch(self, source: torch.Tensor, targets: torch.Tensor) -> None:
        if os.path.exists(SLOW):
            time.sleep(0.1)
        self.optimizer.zero_grad()
        output = self.model(source)
        loss = F.mse_loss(output, targets)
        loss.backward()
        self.optimizer.step()

    def run_epoch(self, epoch: int) -> None:
        for source, targets in self.loader:
            self.run_batch(source, targets)

    def save_checkpoint(self, epoch: int) -> None:
        print(f"epoch {epoch} is saved", flush=True)

    def train(self, epochs: int) -> None:
        for epoch in self.job.epochs(epochs):
            self.run_epoch(epoch)
            if self.job.rank == 0:
                self.save_checkpoint(epoch)


def main() -> None:  # PyTorch 2.15 may abort where DDP's model lives until the interpreter ends
    torch.manual_seed(1)
    torch.set_num_threads(1)
    inputs = torch.randn(512, 20, dtype=torch.float64)
    network = torch.nn.Linear(20, 1).double()
    trainer = Trainer(network, TensorDataset(inputs, inputs.sum(1, keepdim=True)),
                      torch.optim.SGD(network.parameters(), lr=1e-3))
    trainer.train(int(sys.argv[1]))
    print("final", *network.weight.flatten().tolist(), flush=True)


main()
