"""The control groups of a test bed: one for each host, which holds all of its processes.

The list of processes and the freezer are those of version 2 of the kernel's interface (a process
that is frozen by version 1 cannot be killed); processor time is limited by whichever version has
that controller on this machine. Process 1 of a host enters the group before it does anything else,
so the list misses no process that it starts.
"""
import os

from job import read, until

PERIOD = 100000  # microseconds


def mounted(kind: str, option: str = "") -> str:
    """Where this kind of control groups is mounted; empty if nowhere."""
    for line in read("/proc/self/mounts").splitlines():
        _, path, found, options = line.split()[:4]
        if found == kind and (not option or option in options.split(",")):
            return path
    return ""


def bases() -> list[str]:
    """Version 2, and version 1 where that has the processor controller."""
    return [base for base in (mounted("cgroup2"), mounted("cgroup", "cpu")) if base]


def missing() -> str:
    return "" if mounted("cgroup2") else "a test bed of hosts needs control groups, version 2"


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def branches(path: str) -> list[str]:
    """A group and those below it, lowest first."""
    return [folder for folder, _, _ in os.walk(path, topdown=False)]


def remove(path: str, seconds: float) -> None:
    def gone() -> bool:
        try:
            for folder in branches(path):
                os.rmdir(folder)
        except OSError:
            return False  # its last process is about to end
        return True
    until(f"{path} is empty", gone, seconds)


def remove_all(mark: str) -> None:
    """Removes all groups of a bed, and kills what still runs in them."""
    for base in bases():
        path = os.path.join(base, mark)
        if os.path.exists(os.path.join(path, "cgroup.kill")):
            write(os.path.join(path, "cgroup.kill"), "1")  # the groups below, too
        remove(path, 20)


class Groups:
    """The control groups of one host."""

    def __init__(self, mark: str, host: str) -> None:
        self.paths = [os.path.join(base, mark, host) for base in bases()]
        self.main = self.paths[0]
        for path in self.paths:
            os.makedirs(path, exist_ok=True)

    def pids(self) -> list[int]:
        return [int(pid) for folder in branches(self.main)
                for pid in read(os.path.join(folder, "cgroup.procs")).split()]

    def _says(self, event: str) -> bool:
        return event in read(os.path.join(self.main, "cgroup.events")).splitlines()

    def freeze(self, frozen: bool, seconds: float) -> None:
        write(os.path.join(self.main, "cgroup.freeze"), str(int(frozen)))
        until("frozen or thawed", lambda: self._says(f"frozen {int(frozen)}"), seconds)

    def limit(self, percent: int | None) -> None:
        """Limits processor time to this percentage of one core; None: no limit."""
        quota = percent * PERIOD // 100 if percent is not None else 0
        if len(self.paths) > 1:
            write(os.path.join(self.paths[1], "cpu.cfs_period_us"), str(PERIOD))
            write(os.path.join(self.paths[1], "cpu.cfs_quota_us"), str(quota or -1))
            return
        bed = os.path.dirname(self.main)
        for folder in (os.path.dirname(bed), bed):
            write(os.path.join(folder, "cgroup.subtree_control"), "+cpu")
        write(os.path.join(self.main, "cpu.max"), f"{quota or 'max'} {PERIOD}")

    def empty(self, seconds: float) -> None:
        """Kills what still runs in the group, and ends a freeze."""
        if self._says("populated 1"):
            write(os.path.join(self.main, "cgroup.kill"), "1")
            until("an empty group", lambda: self._says("populated 0"), seconds)
        if self._says("frozen 1"):
            self.freeze(False, seconds)
