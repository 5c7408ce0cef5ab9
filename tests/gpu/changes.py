#!/usr/bin/env python3
"""Makes twenty changes of a job on one GPU, kill -9 among them, and shows what each kind costs.

At the end the weights equal those of a calm run, each sample was used once, workers that were never
killed or released have kept their pids, and the GPU's memory is as it was before.

    changes.py [CHANGES [SECONDS]]      ELASTICRUN_BIN has the programs; GPU_EXAMPLE another one;
                                        SECONDS: how long four ranks would train, or less
"""
import array
import math
import os
import signal
import sys
import time
from typing import Any

from on_gpu import BACKEND, LIBRARIES, gpu_memory, on_gpu, show_idle  # first: it says where the others are
from job import BIN, kill, until
from training import BATCH, Training

EXAMPLE = os.environ.get("GPU_EXAMPLE", os.path.join(BIN, "fashion_cuda"))
CHANGES = int(sys.argv[1]) if len(sys.argv) > 1 else 20
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 60
SAMPLES, STEPS, EPOCHS_MAX = 2560, 40, 500
EPOCH_STEPS = SAMPLES // BATCH
# In float32 the other order of sums alone, with four shares instead of one, moves weights by 5e-3.
PRECISE = ["--precision", "double"]
DATA = ["--data", os.environ["GPU_DATA"]] if "GPU_DATA" in os.environ else []
# Slots of the host after each change; 0: rank 0 or the last rank is killed and replaced.
PATTERN = [6, 0, 3, 0, 5, 8, 0, 4, 2, 0]


class OnGpu(Training):
    def __init__(self, slots: int, epochs: int, **more: Any) -> None:
        super().__init__(f"localhost slots={slots}\\n", epochs=epochs, samples=SAMPLES, device_ms=0.2,
                         program=on_gpu([EXAMPLE]), more=[*PRECISE, *DATA],
                         options=["--backend", BACKEND], env=LIBRARIES, **more)
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


def epochs_for(seconds: float) -> int:
    """How long a step takes depends on how the GPU lets its ranks take turns."""
    with OnGpu(4, EPOCHS_MAX) as job:
        job.world(4, seconds=90)
        first, begin = job.newest_step(), time.monotonic()
        until("some steps", lambda: job.newest_step() >= first + STEPS, 60)
        step = (time.monotonic() - begin) / STEPS
        job.process.terminate()
        job.wait(30)
    epochs = max(3, min(EPOCHS_MAX, round(seconds / step / EPOCH_STEPS)))
    print(f"a step of four ranks takes {1e3 * step:.1f} ms: {epochs} epochs of {EPOCH_STEPS} steps")
    return epochs


def weights(job: Training) -> array.array:
    with open(job.record + ".weights", "rb") as file:
        return array.array("d", file.read())


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
    epochs = epochs_for(SECONDS)
    with OnGpu(1, epochs) as calm:
        assert calm.wait(240) == 0, calm.err()
        expected = weights(calm)
    with OnGpu(4, epochs) as job:
        try:
            make_changes(job)
            assert job.wait(300) == 0, job.err()
        finally:
            show_idle(job)
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
