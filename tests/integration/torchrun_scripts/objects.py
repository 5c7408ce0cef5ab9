"""Python objects, subgroups and a store of its own, as evaluation scripts use them."""
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
evens = dist.new_group(list(range(0, size, 2)))
results = [None] * size
dist.all_gather_object(results, {"rank": rank, "hits": rank * 10 + 1})
plan = [{"threshold": 0.5}] if rank == 0 else [None]
dist.broadcast_object_list(plan, src=0)
total = torch.tensor([float(rank)])
if rank % 2 == 0:
    dist.all_reduce(total, group=evens)
dist.monitored_barrier()
if rank == 0:
    print(f"hits {sum(one['hits'] for one in results)} plan {plan[0]} loss {total.item():.6f}",
          flush=True)
