#!/usr/bin/env python3
"""Makes changes of a job of PyTorch on one GPU, kill -9 of rank 0 among them: the weights are those of a
calm run, survivors keep their pids.

    torch_changes.py [EPOCHS]
"""
import os
import sys
import tempfile

from on_gpu import BACKEND, LIBRARIES, gpu_memory, idle, on_gpu, set_hosts  # first
from job import BIN, Job, finals, kill, until

HERE = os.path.dirname(os.path.abspath(__file__))
EPOCHS = sys.argv[1] if len(sys.argv) > 1 else "12"
PYTHON = os.environ.get("ELASTICRUN_TORCH_PYTHON", "python3")
ENVIRONMENT = LIBRARIES | {"PATH": f"{BIN}:{os.environ['PATH']}",
                           "PYTHONPATH": os.path.join(HERE, "../../worker/python")}
CACHE = tempfile.TemporaryDirectory()  # torch makes one when it is imported, and leaves it
CHANGES = [3, 0, 2, -1]  # slots; 0 and -1: the first and the last rank is killed


def on_hosts(hosts: str, slow: str) -> Job:
    return Job(["--hosts", hosts, "--unit", "slot", "--policy", "fixed", "--max-batch", "128",
                "--backend", BACKEND, "--max-restarts", "100", "--settle", "100ms", "--label", "none"],
               on_gpu([PYTHON, os.path.join(HERE, "torch_trainer.py"), EPOCHS]),
               env=ENVIRONMENT | {"SLOW": slow, "TORCHINDUCTOR_CACHE_DIR": CACHE.name})


def change(job: Job, hosts: str, size: int, slots: int) -> int:
    """Makes a change, and returns the size of the world that has stepped after it."""
    after, pids = job.now(), dict(job.workers())
    if slots > 0:
        set_hosts(hosts, slots)
        gone = 1 if slots < size else 0
        size = slots
    else:
        kill(sorted(pids.items())[slots][1])
        gone = 1
    job.wait_for("world_formed", after, 90, size=size)
    job.wait_for_step()
    until("the end of who left", lambda: len(job.workers()) == size, 30)
    kept = sum(job.workers().get(worker) == pid for worker, pid in pids.items())
    assert kept == len(pids) - gone, f"{kept} of {len(pids)} processes have gone on"
    return size


def main() -> None:
    before = gpu_memory()
    folder = os.environ.get("TMPDIR", "/tmp")
    hosts, slow = (os.path.join(folder, f"{name}.{os.getpid()}") for name in ("hosts", "slow"))
    try:
        set_hosts(hosts, 1)
        with on_hosts(hosts, "") as calm:
            assert calm.wait(120) == 0, calm.err()
            expected, = finals(calm.out())
        set_hosts(hosts, 2)
        open(slow, "x", encoding="ascii").close()
        with on_hosts(hosts, slow) as job:
            try:
                job.wait_for("world_formed", 0, 90, size=2)
                job.wait_for_step()
                size = 2
                for slots in CHANGES:
                    size = change(job, hosts, size, slots)
                os.remove(slow)
                assert job.wait(120) == 0, job.err()
            finally:
                print(idle(job))
            print(job.out(), end="")
            ends = finals(job.out())
            job.gone(20)
    finally:
        for path in (hosts, slow):
            if os.path.exists(path):
                os.remove(path)
    away = max(abs(one - other) / abs(other) for end in ends for one, other in zip(end, expected))
    print(f"{len(CHANGES)} changes; {len(ends)} ranks end {away:.1e} away from a calm run")
    assert ends and away < 1e-3, "the weights differ"
    if before is not None:
        until("the GPU's memory as it was", lambda: gpu_memory() <= before + 8, 20)


if __name__ == "__main__":
    main()
