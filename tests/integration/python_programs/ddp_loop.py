"""The trainer of PyTorch's tutorial for DistributedDataParallel and torchrun, on processors. elastic_loop.py
is the same with elasticrun.torch."""
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, TensorDataset
from torch.utils.data.distributed import DistributedSampler


SLOW = os.environ.get("SLOW", "")  # steps are slow as long as there is this file


class Trainer:
    def __init__(self, model: torch.nn.Module, data: Dataset, optimizer: torch.optim.Optimizer) -> None:
        self.model, self.optimizer = model, optimizer
        dist.init_process_group("gloo")
        self.rank = dist.get_rank()
        self.loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
        self.model = DDP(self.model)

    def run_batch(self, source: torch.Tensor, targets: torch.Tensor) -> None:
        if os.path.exists(SLOW):
            time.sleep(0.1)
        self.optimizer.zero_grad()
        output = self.model(source)
        loss = F.mse_loss(output, targets)
        loss.backward()
        self.optimizer.step()

    def run_epoch(self, epoch: int) -> None:
        self.loader.sampler.set_epoch(epoch)
        for source, targets in self.loader:
            self.run_batch(source, targets)

    def save_checkpoint(self, epoch: int) -> None:
        print(f"epoch {epoch} is saved", flush=True)

    def train(self, epochs: int) -> None:
        for epoch in range(epochs):
            self.run_epoch(epoch)
            if self.rank == 0:
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
    dist.destroy_process_group()


main()
