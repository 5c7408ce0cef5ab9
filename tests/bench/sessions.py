"""What the controller of a real job uses when its hosts and workers are simulated (bench_hosts),
over real sessions on loopback, TLS included."""
import os
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from bench_training import Training, until
from figures import Row

TICKS = os.sysconf("SC_CLK_TCK")
SLOTS_MAX = 1024  # per host
PATIENCE = 120  # seconds, for each phase


class Joined(Training):
    """A job whose hosts join by themselves."""

    def __init__(self, programs: Path, hosts: int, slots: int) -> None:
        self.size = hosts * slots
        # A job must be given hosts with the slots that it needs; these hosts never answer.
        mute = f"mute[1-{-(-self.size // SLOTS_MAX)}]:{min(self.size, SLOTS_MAX)}"

        def command(folder: Path) -> list[str | Path]:
            (folder / "ssh").write_text("Host mute*\n  HostName 192.0.2.1\n"
                                        "  ProxyCommand sleep 600\n")
            return [programs / "elasticrun", "-H", mute, "--ssh-config", folder / "ssh",
                    "--join-key", folder / "key", "--min-np", str(self.size - slots),
                    "--max-np", str(self.size), "--policy", "fixed", "/bin/true"]
        super().__init__(command)
        self._begin_hosts = [programs / "bench_hosts", self.folder / "key", str(hosts), str(slots)]
        self._hosts: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        try:
            place = until("it says how to join", self._place, PATIENCE)
            program, *rest = self._begin_hosts
            with open(self.folder / "worlds", "wb") as worlds:
                self._hosts = subprocess.Popen([program, place, *rest], stdin=subprocess.PIPE,
                                               stdout=worlds, text=True)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._hosts:
            self._hosts.kill()
            self._hosts.wait()
        super().__exit__()

    def _place(self) -> str:
        self.check()
        found = re.search(r" --join (\S+)", (self.folder / "output").read_text())
        return found[1] if found else ""

    def wait_for(self, size: int) -> None:
        """Waits until the newest world has that size."""
        def formed() -> bool:
            self.check()
            if self._hosts.poll() is not None:
                raise RuntimeError("bench_hosts has ended")
            return (self.folder / "worlds").read_text().endswith(f"world {size}\n")
        until(f"a world of {size}", formed, PATIENCE)

    def tell(self, command: str) -> None:
        """Sends one of the commands of bench_hosts."""
        self._hosts.stdin.write(command + "\n")
        self._hosts.stdin.flush()

    def ends(self) -> int:
        """Waits until a job that was told to finish ends; returns its exit code."""
        return self._process.wait(PATIENCE)

    def processor_s(self) -> float:
        """The processor time that the controller has used so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory_mb(self) -> float:
        """The controller's peak memory."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


def sessions(programs: Path, sizes: Sequence[tuple[int, int]], steady_s: float) -> list[Row]:
    """For each (hosts, slots): what starting, steady training and the loss of a host cost."""
    rows = []
    for hosts, slots in sizes:
        what = f"{hosts} hosts x {slots}"
        began = time.monotonic()
        with Joined(programs, hosts, slots) as job:
            job.wait_for(job.size)
            rows.append(Row(f"{what}: start", f"{job.processor_s():.2f} s of a core",
                            f"in {time.monotonic() - began:.1f} s; mute hosts take 10 of them"))
            time.sleep(1)
            used = job.processor_s()
            time.sleep(steady_s)
            used = job.processor_s() - used
            rows.append(Row(f"{what}: steady", f"{used / steady_s:.3f} cores"))
            began, used = time.monotonic(), job.processor_s()
            job.tell("lose")
            job.wait_for(job.size - slots)
            rows.append(Row(f"{what}: lose a host", f"{job.processor_s() - used:.2f} s of a core",
                            f"in {time.monotonic() - began:.2f} s"))
            most = job.memory_mb()
            job.tell("finish")
            rows.append(Row(f"{what}: end", f"exit code {job.ends()}", f"{most:.0f} MB at most"))
    return rows
