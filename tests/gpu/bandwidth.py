#!/usr/bin/env python3
"""The rate of an all-reduce of GPU memory before and after a job's changes: a kill, a shrink, a growth.
On one GPU, where ranks meet over sockets and take turns, only the ratios mean something.

    bandwidth.py [BYTES]
"""
import os
import re
import signal
import sys
import tempfile

from on_gpu import BACKEND, LIBRARIES, on_gpu  # first: it says where the others are
from job import BIN, Job, kill, replace_file, until

SIZE = sys.argv[1] if len(sys.argv) > 1 else "64M"
MEMORY = ["--gpu"] if BACKEND == "nccl" else []
ROUNDS = 3  # measured in each world


def rates(out: str, world: int) -> list[float]:
    """busbw in GB/s of each round of that world."""
    part = out.partition(f"world {world}:")[2].partition("\nworld ")[0]
    return [float(line.split()[3]) for line in part.splitlines()
            if re.fullmatch(r"[ \d.]+", line) and len(line.split()) == 4]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        hosts = os.path.join(folder, "hosts")
        replace_file(hosts, "localhost slots=4\n")
        program = [os.path.join(BIN, "allreduce_bench"), *MEMORY, "--from", SIZE, "--to", SIZE,
                   "--repeats", "3", "--rounds", "100000"]
        with Job(["--hosts", hosts, "--unit", "slot", "--policy", "fixed", "--backend", BACKEND,
                  "--label", "none"], on_gpu(program), env=LIBRARIES) as job:
            seen: list[tuple[str, int, float]] = []

            def measured(what: str, size: int, after: int) -> None:
                number = job.wait_for("world_formed", after, 60, size=size)["generation"]
                found = until(f"rates of world {number}",
                              lambda: found if len(found := rates(job.out(), number)) > ROUNDS
                              else None, 60)
                seen.append((what, size, max(found)))
                print(f"  {what:<24} {size} ranks  busbw {max(found):7.3f} GB/s  "
                      f"{max(found) / seen[0][2]:5.2f} of the first", flush=True)
            measured("at first", 4, 0)
            after = job.now()
            kill(sorted(job.workers().items())[-1][1])
            measured("after a kill", 4, after)
            for what, slots in (("after a planned shrink", 3), ("after a planned growth", 4)):
                after = job.now()
                replace_file(hosts, f"localhost slots={slots}\n")
                measured(what, slots, after)
            job.process.send_signal(signal.SIGTERM)
            job.wait(30)
    assert min(rate for _, size, rate in seen if size == 4) > 0.5 * seen[0][2], "slower than at first"


if __name__ == "__main__":
    main()
