"""What the controller of a real job uses, whose hosts and workers bench_hosts simulates: real sessions
on loopback, TLS included."""
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from figures import Row
from bench_training import until

TICKS = os.sysconf("SC_CLK_TCK")
SLOTS_MAX = 1024  # of a host
PATIENCE = 120  # seconds, for each phase


def processor_s(pid: int) -> float:
    """Processor time that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_mb(pid: int) -> float:
    """The most memory it has had."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


class Job:
    """A job of so many hosts that join by themselves, and what its controller uses."""

    def __init__(self, programs: Path, folder: Path, hosts: int, slots: int) -> None:
        self.size, self.slots = hosts * slots, slots
        # A job must be given hosts with the slots that it needs; these never say a word.
        (folder / "ssh").write_text("Host mute*\n  HostName 192.0.2.1\n  ProxyCommand sleep 600\n")
        mute = f"mute[1-{-(-self.size // SLOTS_MAX)}]:{min(self.size, SLOTS_MAX)}"
        self.errors = folder / "errors"
        command = [programs / "elasticrun", "-H", mute, "--ssh-config", "ssh", "--join-key", "key",
                   "--min-np", str(self.size - slots), "--max-np", str(self.size),
                   "--policy", "fixed", "/bin/true"]
        with open(self.errors, "wb") as errors:
            self.controller = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL,
                                               stderr=errors)
        place = until("it says how to join", self.place, PATIENCE)
        self.worlds = folder / "worlds"
        with open(self.worlds, "wb") as worlds:
            self.hosts = subprocess.Popen(
                [programs / "bench_hosts", place, folder / "key", str(hosts), str(slots)],
                stdin=subprocess.PIPE, stdout=worlds, text=True)

    def place(self) -> str:
        if self.controller.poll() is not None:
            raise RuntimeError(self.errors.read_text(encoding="utf-8"))
        found = re.search(r" --join (\S+)", self.errors.read_text(encoding="utf-8"))
        return found[1] if found else ""

    def wait_for(self, size: int) -> None:
        """For a world of that size, the newest one."""
        def formed() -> bool:
            if self.controller.poll() is not None or self.hosts.poll() is not None:
                raise RuntimeError(self.errors.read_text(encoding="utf-8")[-2000:])
            return self.worlds.read_text(encoding="ascii").endswith(f"world {size}\n")
        until(f"a world of {size}", formed, PATIENCE)

    def tell(self, command: str) -> None:
        self.hosts.stdin.write(command + "\n")
        self.hosts.stdin.flush()


@contextmanager
def job(programs: Path, hosts: int, slots: int) -> Iterator[Job]:
    with tempfile.TemporaryDirectory(prefix="elasticrun-bench-") as folder:
        running = Job(programs, Path(folder), hosts, slots)
        try:
            yield running
        finally:
            for process in (running.hosts, running.controller):
                process.kill()
                process.wait()


def phase(one: Job, size: int) -> tuple[float, float]:
    """Seconds until a world of that size, and the controller's processor time for it."""
    began, used = time.monotonic(), processor_s(one.controller.pid)
    one.wait_for(size)
    return time.monotonic() - began, processor_s(one.controller.pid) - used


def sessions(programs: Path, sizes: list[tuple[int, int]], steady_s: float) -> list[Row]:
    """For each (hosts, slots): what start, steady training, and the loss of a host cost."""
    rows = []
    for hosts, slots in sizes:
        with job(programs, hosts, slots) as one:
            what = f"{hosts} hosts x {slots}"
            began = time.monotonic()
            one.wait_for(one.size)
            rows.append(Row(f"{what}: start", f"{processor_s(one.controller.pid):.2f} s of a core",
                            f"{time.monotonic() - began:.1f} s"))
            time.sleep(1)
            used = processor_s(one.controller.pid)
            time.sleep(steady_s)
            used = processor_s(one.controller.pid) - used
            rows.append(Row(f"{what}: steady", f"{used / steady_s:.3f} cores"))
            one.tell("lose")
            wall, used = phase(one, one.size - slots)
            rows.append(Row(f"{what}: lose a host", f"{used:.2f} s of a core", f"{wall:.2f} s"))
            most = memory_mb(one.controller.pid)
            one.tell("finish")
            code = one.controller.wait(PATIENCE)
            rows.append(Row(f"{what}: end", f"exit code {code}", f"{most:.0f} MB at most"))
    return rows
