"""Training jobs under test: the example with records, its hosts in a file, its steps observed.

All runs use one global batch at every size (the program's own batch is as large as the job's), so
that runs of different sizes make the same updates. Shares are equal, because the speeds of workers
that share processors vary all the time, and each test counts its own changes.
"""
import os
import re
import subprocess
import sys
from typing import Any

import job
from job import FASHION, Job, until

LINEAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lineage.py")
BATCH = 128


def accuracies(out: str) -> dict[int, float]:
    """The last accuracy of each epoch: a new world may print the same epoch again."""
    said = re.findall(r"epoch (\d+): .* test accuracy ([0-9.]+) %", out)
    return {int(epoch): float(text) for epoch, text in said}


class Training(Job):
    """The example on slots that a host file names; `record` is the prefix of its records, in the
    job's folder or elsewhere. `where` is the flag that leads to the file."""

    def __init__(self, hosts: str, epochs: int, samples: int = 2560, device_ms: float = 1.0,
                 more: list[str] | None = None, options: list[str] | None = None,
                 where: tuple[str, str] = ("--hosts", "hosts"), shares: str = "equal",
                 program: list[str] | None = None, start: list[str] | None = None,
                 record: str = "record", **popen: Any) -> None:
        program = [*(program or [FASHION]), "--samples", str(samples), "--epochs", str(epochs),
                   "--batch", str(BATCH), "--device-ms", str(device_ms), "--record", record,
                   *(more or [])]
        script = f"printf '{hosts}' > hosts; exec \"$@\""
        super().__init__([*where, "--policy", "fixed", "--max-batch", str(BATCH),
                          "--base-batch", "32", "--lr-rule", "none", "--shares", shares,
                          *(options or [])],
                         program, start=["sh", "-c", script, "sh", *(start or [])], **popen)
        self.epochs, self.samples = epochs, samples
        self.record = self.path(record)

    def set_hosts(self, text: str) -> None:
        job.replace_file(self.path("hosts"), text)

    def world(self, size: int, after: int = 0, seconds: float = 60) -> dict[str, Any]:
        """Waits for a world of that size which has stepped."""
        world = self.wait_for("world_formed", after, seconds, size=size)
        until(f"a step of the world of {size}", lambda: self.newest_step() > world["step"], seconds)
        return world

    def newest_step(self) -> int:
        """The newest step that a living worker has committed, as a count."""
        return max((job.steps_of(self.record, pid) + 1 for pid in self.workers().values()),
                   default=0)

    def pid_of_rank(self, rank: int) -> int:
        def look() -> int | None:
            for pid in self.workers().values():
                if job.rank_of(self.record, pid) == rank:
                    return pid
            return None
        return until(f"rank {rank}", look, 30)

    def accuracies(self) -> dict[int, float]:
        return accuracies(self.out())

    def unexpected_ends(self) -> list[int]:
        """pids of workers that have ended unexpectedly."""
        pids = {event["worker"]: event["pid"] for event in self.find("worker_started")}
        return sorted(pids.get(event["worker"], 0)
                      for event in self.find("worker_exited", expected=False))

    def lineage(self, *more: str, before: list[str] | None = None) -> str:
        """The summary of the checker; raises with its finding when the record is not sound. `before`:
        the records of the jobs whose saves this one has gone on from."""
        done = subprocess.run(
            [sys.executable, LINEAGE, *(before or []), self.record, "--samples", str(self.samples),
             "--epochs", str(self.epochs), *more], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        return done.stdout
