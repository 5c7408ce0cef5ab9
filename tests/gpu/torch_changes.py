#!/usr/bin/env python3
"""Makes changes of a job of PyTorch on one GPU, kill -9 of rank 0 among them: the weights are those of a
calm run, survivors keep their pids.

    torch_changes.py [EPOCHS]
"""
import os
import sys
import tempfile

from on_gpu import BACKEND, LIBRARIES, gpu_memory, on_gpu, show_idle  # first
from job import BIN, Job, finals, kill, replace_file, until

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
        replace_file(hosts, f"localhost slots={slots}\n")
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


def run(folder: str) -> tuple[list[float], list[list[float]]]:
    """Where a calm run ends, and where the ranks of one with changes do."""
    hosts, slow = (os.path.join(folder, name) for name in ("hosts", "slow"))
    replace_file(hosts, "localhost slots=1\n")
    with on_hosts(hosts, slow) as calm:
        assert calm.wait(120) == 0, calm.err()
        expected, = finals(calm.out())
    size = 2
    replace_file(hosts, f"localhost slots={size}\n")
    open(slow, "x", encoding="ascii").close()
    with on_hosts(hosts, slow) as job:
        try:
            job.wait_for("world_formed", 0, 90, size=size)
            job.wait_for_step()
            for slots in CHANGES:
                size = change(job, hosts, size, slots)
            os.remove(slow)
            assert job.wait(120) == 0, job.err()
        finally:
            show_idle(job)
        print(job.out(), end="")
        job.gone(20)
        return expected, finals(job.out())


def main() -> None:
    before = gpu_memory()
    with tempfile.TemporaryDirectory() as folder:
        expected, ends = run(folder)
    away = max(abs(one - other) / abs(other) for end in ends for one, other in zip(end, expected))
    print(f"{len(CHANGES)} changes; {len(ends)} ranks end {away:.1e} away from a calm run")
    assert away < 1e-3, "the weights differ"
    if before is not None:
        until("the GPU's memory as it was", lambda: gpu_memory() <= before + 8, 20)


if __name__ == "__main__":
    main()
