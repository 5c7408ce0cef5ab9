"""Takes NCCL where there is a GPU, and Gloo elsewhere; the device comes from LOCAL_RANK."""
import os

import torch
import torch.distributed as dist


def main() -> None:
    cuda = torch.cuda.is_available()
    dist.init_process_group(backend="nccl" if cuda else "gloo")
    local_rank = int(os.environ["LOCAL_RANK"])
    if cuda:
        torch.cuda.set_device(local_rank)
    device = torch.device("cuda", local_rank) if cuda else torch.device("cpu")
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    model = torch.nn.parallel.DistributedDataParallel(
        model.to(device), device_ids=[local_rank] if cuda else None)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    data = torch.Generator().manual_seed(100 + dist.get_rank())
    for step in range(10):
        x = torch.randn(32, 8, generator=data).to(device)
        y = (x.sum(1) > 0).long()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        mean = loss.detach()
        dist.all_reduce(mean)
        if dist.get_rank() == 0 and step % 3 == 0:
            print(f"step {step} loss {mean.item() / dist.get_world_size():.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
