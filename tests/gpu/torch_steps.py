#!/usr/bin/env python3
"""A step of PyTorch on two ranks of one GPU, with DistributedDataParallel and with elasticrun.torch in turns,
in buckets of the same size: whether the reduction overlaps with the backward pass as well.

    torch_steps.py [ROUNDS]
"""
import os
import re
import statistics
import subprocess
import sys

from on_gpu import BACKEND, LIBRARIES, on_gpu  # first: it says where the others are
from job import BIN
from torch_changes import ENVIRONMENT, HERE, PYTHON

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 2
STEP = os.path.join(HERE, "../bench/torch_step.py")
DEVICE = "cuda" if BACKEND == "nccl" else "cpu"
SIZES = [(10, "float32", 20), (100, "float32", 6), *[(10, "bfloat16", 20)][: BACKEND == "nccl"]]  # millions, steps


def step(mode: str, millions: int, kind: str, steps: int) -> float:
    """ms"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ELASTICRUN_")}
    done = subprocess.run(
        [os.path.join(BIN, "elasticrun"), "--quiet", "--label", "none", "-H", "localhost:2", "--policy",
         "fixed", "--backend", BACKEND,
         *on_gpu([PYTHON, STEP, mode, str(millions), str(steps), DEVICE, kind])],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        env=environment | ENVIRONMENT | LIBRARIES)
    found = re.search(r"ms ([\d.]+)", done.stdout)
    if not found:
        sys.exit(f"{mode}, {millions} million: no figure ({done.returncode})\n{done.stdout}{done.stderr}")
    return float(found[1])


def main() -> None:
    for millions, kind, steps in SIZES:
        times: dict[str, list[float]] = {"ddp": [], "elastic": []}
        for _ in range(ROUNDS):
            for mode, values in times.items():
                values.append(step(mode, millions, kind, steps))
        ddp, ours = (statistics.median(values) for values in times.values())
        print(f"{millions} million of {kind}: DDP {ddp:.1f} ms, elasticrun.torch {ours:.1f} ms, "
              f"ratio {ours / ddp:.2f}", flush=True)


if __name__ == "__main__":
    main()
