"""Fails in its first run, with @record; the error is shown by the launcher, the second run passes."""
import os

import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record


@record
def main() -> None:
    dist.init_process_group("gloo")
    restarts = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    if restarts == 0 and dist.get_rank() == dist.get_world_size() - 1:
        raise ValueError("the last rank fails in its first run")
    dist.barrier()
    if dist.get_rank() == 0:
        print(f"restarts {restarts} of {os.environ['TORCHELASTIC_MAX_RESTARTS']}", flush=True)


if __name__ == "__main__":
    main()
