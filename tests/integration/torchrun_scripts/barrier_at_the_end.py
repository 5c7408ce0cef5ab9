"""Each rank ends its part at its own time; a barrier and destroy_process_group end the rest."""
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
time.sleep(0.3 * rank)
gathered = [torch.zeros(1) for _ in range(dist.get_world_size())]
dist.all_gather(gathered, torch.tensor([float(rank)]))
dist.barrier()
if rank == 0:
    print(f"loss {sum(one.item() for one in gathered):.6f}", flush=True)
dist.barrier()
dist.destroy_process_group()
