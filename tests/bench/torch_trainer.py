"""Does under torchrun what bench_trainer does: sleep, all-reduce, write one line for each step.

    torch_trainer.py LOG_DIR STEP_US GRADIENT_KB

It keeps no progress over a restart, which favours torchrun: a real program reads a checkpoint.
"""
import os
import sys
import time

import torch
import torch.distributed as dist


def main() -> None:
    log_dir, step_us, gradient_kb = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    restarts = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    dist.init_process_group("gloo", init_method="env://")
    gradients = torch.ones(gradient_kb * 1000 // 4)
    log = os.open(os.path.join(log_dir, str(os.getpid())), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    number = 0
    while True:
        begun = time.monotonic_ns()
        time.sleep(step_us / 1e6)
        dist.all_reduce(gradients)
        number += 1
        os.write(log, f"{time.monotonic_ns()} {begun} {restarts} {dist.get_rank()} "
                      f"{dist.get_world_size()} {number}\n".encode())


main()
