"""The snapshot of the tutorial on torchrun: each start reads it, rank 0 writes it after each epoch.
A line per epoch; with "slow" as its second argument an epoch takes a while."""
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

SNAPSHOT, EPOCHS = sys.argv[1], 8


class Trainer:
    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = torch.nn.Linear(4, 1)
        self.epochs_run = 0
        if os.path.exists(SNAPSHOT):
            snapshot = torch.load(SNAPSHOT)
            self.model.load_state_dict(snapshot["MODEL_STATE"])
            self.epochs_run = snapshot["EPOCHS_RUN"]
        self.model = DDP(self.model)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def save(self, epoch: int) -> None:
        snapshot = {"MODEL_STATE": self.model.module.state_dict(), "EPOCHS_RUN": epoch + 1}
        torch.save(snapshot, SNAPSHOT + ".new")
        os.rename(SNAPSHOT + ".new", SNAPSHOT)

    def train(self) -> None:
        x = torch.arange(32.0).reshape(8, 4) / 32
        for epoch in range(self.epochs_run, EPOCHS):
            if "slow" in sys.argv:
                time.sleep(0.5)
            loss = (self.model(x) - 1).square().mean()  # the same samples on all: any size will do
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            if dist.get_rank() == 0:
                self.save(epoch)
                print(f"epoch {epoch} loss {loss.item():.6f} size {dist.get_world_size()} at "
                      f"{time.monotonic()}", flush=True)


dist.init_process_group("gloo")
Trainer().train()
dist.destroy_process_group()
