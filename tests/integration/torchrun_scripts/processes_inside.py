"""Data loaders with processes of their own, and torch.multiprocessing beside the process group."""
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, i: int) -> torch.Tensor:
        return torch.tensor([float(i), float(i * i)])


def count(results: mp.SimpleQueue, first: int) -> None:
    results.put(sum(range(first, first + 100)))


def main() -> None:
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    slope = torch.zeros(1, requires_grad=True)
    for epoch in range(2):
        for batch in DataLoader(Squares(), batch_size=16, num_workers=2):
            loss = (slope * batch[:, 0] - batch[:, 1]).square().mean()
            loss.backward()
            dist.all_reduce(slope.grad)
            with torch.no_grad():
                slope -= 1e-4 * slope.grad / dist.get_world_size()
            slope.grad.zero_()
        if dist.get_rank() == 0:
            print(f"epoch {epoch} loss {loss.item():.6f}", flush=True)
    context = mp.get_context("spawn")
    results = context.SimpleQueue()
    children = [context.Process(target=count, args=(results, 100 * i)) for i in range(2)]
    for child in children:
        child.start()
    counted = torch.tensor([sum(results.get() for _ in children)])
    for child in children:
        child.join()
    dist.all_reduce(counted)
    if dist.get_rank() == 0:
        print(f"counted {counted.item()}", flush=True)


if __name__ == "__main__":
    main()
