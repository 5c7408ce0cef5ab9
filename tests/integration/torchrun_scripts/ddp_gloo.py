"""DDP on CPUs, as in the first page of the tutorial: init_process_group("gloo") and nothing else."""
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
torch.manual_seed(0)
x = torch.randn(256, 10)
dataset = TensorDataset(x, x @ torch.randn(10, 1))
model = DDP(torch.nn.Linear(10, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.05)
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=16, sampler=sampler)
for epoch in range(4):
    sampler.set_epoch(epoch)
    for data, target in loader:
        opt.zero_grad()
        loss = torch.nn.functional.mse_loss(model(data), target)
        loss.backward()
        opt.step()
    total = loss.detach().clone()
    dist.all_reduce(total)
    if dist.get_rank() == 0:
        print(f"epoch {epoch} loss {total.item() / dist.get_world_size():.6f}", flush=True)
dist.destroy_process_group()
