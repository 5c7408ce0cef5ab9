"""A job across the hosts of a test bed, by ssh: the example, or any other program.

The processes on a host come from the host's own list (bed.Host.programs), not only from the job's
mark: a process that is wrongly left behind might have lost the mark.
"""
import os
import tempfile
from collections.abc import Iterable

from bed import Bed
from job import FASHION, Job

# Deadlines short enough to wait for, and in the order that the manual's table requires.
QUICK = ["--heartbeat", "200ms", "--agent-timeout", "1s", "--lease", "2s", "--grace", "1s"]
BATCH = 128


def example(epochs: int = 10_000, device_ms: float = 0.5) -> list[str]:
    return [FASHION, "--samples", "2560", "--epochs", str(epochs), "--batch", "32",
            "--device-ms", str(device_ms)]


def slots(count: int, *hosts: str) -> list[str]:
    """Lines of a host file: `count` slots on each of these hosts."""
    return [f"{host} slots={count}" for host in hosts]


class BedJob(Job):
    """A program on hosts of a bed; `lines` are those of the host file."""

    def __init__(self, bed: Bed, lines: Iterable[str], program: list[str] | None = None,
                 options: Iterable[str] = (), deadlines: Iterable[str] = QUICK) -> None:
        handle, self.hosts_file = tempfile.mkstemp(prefix="hosts-", dir=bed.folder)
        os.close(handle)
        self.set_lines(lines)
        training = [] if program else ["--policy", "fixed", "--shares", "equal",
                                       "--max-batch", str(BATCH)]
        super().__init__(["--hosts", self.hosts_file, "--ssh-config", bed.ssh_config,
                          *deadlines, *training, *options], program or example())

    def set_lines(self, lines: Iterable[str]) -> None:
        """Replaces the host file as an editor does: it writes another file and renames it."""
        with open(self.hosts_file + ".new", "w", encoding="ascii") as file:
            file.write("".join(line + "\n" for line in lines))
        os.rename(self.hosts_file + ".new", self.hosts_file)

    def survivors(self, before: dict[int, int]) -> dict[int, int]:
        """The workers of `before` that still run as the same processes."""
        now = self.workers()
        return {worker: pid for worker, pid in before.items() if now.get(worker) == pid}

    def progress(self) -> int:
        """The newest step that a worker has reported; -1: none."""
        return max((event["step"] for event in self.find("sample")), default=-1)
