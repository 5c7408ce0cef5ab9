#!/usr/bin/env python3
"""Makes twenty changes of a job on one GPU, kill -9 among them, and shows what each kind costs.

Several ranks share the GPU: each has a host id of its own for NCCL, which refuses two ranks of one
host on one GPU. At the end the weights equal those of a calm run, each sample was used once,
workers that were never killed or released have kept their pids, and the GPU's memory is as it was
before.

    changes.py [CHANGES [EPOCHS]]          ELASTICRUN_BIN has the programs; GPU_EXAMPLE another one
"""
import array
import math
import os
import signal
import statistics
import subprocess
import sys
import time
from typing import Any

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from job import BIN, kill, until  # noqa: E402
from training import Training  # noqa: E402

EXAMPLE = os.environ.get("GPU_EXAMPLE", os.path.join(BIN, "fashion_cuda"))
CHANGES = int(sys.argv[1]) if len(sys.argv) > 1 else 20
EPOCHS = int(sys.argv[2]) if len(sys.argv) > 2 else 150
# In float32 the other order of sums alone, with four shares instead of one, moves weights by 5e-3.
PRECISE = ["--precision", "double"]
# Set where the test runs from a bundle (scripts/gpu-bundle).
DATA = ["--data", os.environ["GPU_DATA"]] if "GPU_DATA" in os.environ else []
LIBRARIES = {"LD_LIBRARY_PATH": os.environ["GPU_LIBRARIES"]} if "GPU_LIBRARIES" in os.environ else {}
# Slots of the host after each change; 0: rank 0 or the last rank is killed and replaced.
PATTERN = [6, 0, 3, 0, 5, 8, 0, 4, 2, 0]


def gpu_memory() -> int | None:
    """MiB in use; None where nvidia-smi cannot tell."""
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=memory.used",
                               "--format=csv,noheader,nounits"],
                              capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return sum(int(line) for line in done.stdout.split())


class OnGpu(Training):
    """To NCCL each rank is a host of its own; `exec` lets the worker keep its pid."""

    def __init__(self, slots: int, **more: Any) -> None:
        script = 'NCCL_HOSTID=rank-$ELASTICRUN_WORKER exec ' + EXAMPLE + ' "$@"'
        super().__init__(f"localhost slots={slots}\\n", epochs=EPOCHS, device_ms=0.2,
                         program=["sh", "-c", script, EXAMPLE], more=[*PRECISE, *DATA],
                         options=["--backend", "nccl"], env=LIBRARIES, **more)
        self.size = slots

    def change(self, slots: int, turn: int) -> None:
        """Makes one change and waits until the new world has stepped."""
        after = self.now()
        if slots:
            self.size = slots
            self.set_hosts(f"localhost slots={slots}\n")
        else:
            kill(self.pid_of_rank(0 if turn % 4 == 1 else self.size - 1), signal.SIGKILL)
        self.world(self.size, after, 60)


def weights(job: Training) -> array.array:
    with open(job.record + ".weights", "rb") as file:
        return array.array("d", file.read())


def table(job: Training) -> None:
    """Shows for each kind of change: the idle time that the survivors saw, the part of it that
    the state took, and the time to form the group with its first collective (no worker is idle
    meanwhile in a planned change). A forced change names how its group was formed."""
    kinds: dict[str, list[tuple[float, ...]]] = {}
    size = 0
    for world in job.find("world_formed"):
        kind = ("planned, grow" if world["size"] > size else "planned, shrink"
                if world["size"] < size else "planned, replace")
        if not world["planned"]:
            kind = "forced, " + world["group"].partition(":")[0]
        size = world["size"]
        if world["idle_ms"] is not None:
            kinds.setdefault(kind, []).append(
                (world["idle_ms"], world["state_ms"], world["prepare_ms"]))
    print(f"{'changes, medians in ms':<34} count    idle  (most)   state  forming")
    for kind, values in sorted(kinds.items()):
        idle, state, forming = ([value[i] for value in values] for i in range(3))
        print(f"  {kind:<32} {len(values):5d} {statistics.median(idle):7.0f} {max(idle):7.0f} "
              f"{statistics.median(state):7.0f} {statistics.median(forming):8.0f}")


def make_changes(job: OnGpu) -> None:
    """Makes all changes, one after the other."""
    job.world(4, seconds=90)
    pids = dict(job.workers())
    for turn in range(CHANGES):
        begin, steps = time.monotonic(), job.newest_step()
        job.change(PATTERN[turn % len(PATTERN)], turn)
        print(f"  change {turn + 1}, to {job.size} ranks: {time.monotonic() - begin:.1f} s, "
              f"{job.newest_step() - steps} steps", flush=True)
        for worker, pid in job.workers().items():
            assert pids.setdefault(worker, pid) == pid, f"worker {worker} has another pid"


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("changes.py: told to end; so far:"))
    before = gpu_memory()
    with OnGpu(1) as calm:
        assert calm.wait(240) == 0, calm.err()
        expected = weights(calm)
    with OnGpu(4) as job:
        try:
            make_changes(job)
            assert job.wait(300) == 0, job.err()
        finally:
            table(job)
        print(job.lineage(), end="")
        found = weights(job)
        assert job.leftovers() == [], job.leftovers()
    away = math.dist(found, expected) / math.hypot(*expected)
    print(f"{CHANGES} changes; weights are {away:.1e} away from those of a calm run")
    assert away < 1e-3, "the weights differ"
    if before is not None:
        until("the GPU's memory as it was", lambda: gpu_memory() <= before + 8, 20)
        print(f"memory of the GPU in use: {before} MiB before, {gpu_memory()} MiB after")


if __name__ == "__main__":
    main()
