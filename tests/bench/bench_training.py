"""A training job under measurement: bench_trainer in elasticrun, torch_trainer.py in torchrun.

Every worker writes one line for each committed step to a file of its own, so the same code follows
both: time of the commit and of the start of the step (CLOCK_MONOTONIC, ns), generation, rank, size,
step. The benchmark itself reads the same clock.
"""
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

T = TypeVar("T")


class Step(NamedTuple):
    """One committed step of one worker."""

    done_ns: int
    begun_ns: int
    generation: int
    rank: int
    size: int
    number: int


def until(what: str, condition: Callable[[], T], seconds: float = 60) -> T:
    """Waits until the condition is true, and returns its value."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(0.005)
    return value


class Training:
    """Starts the job at once; as a context manager it ends the job and removes its files."""

    def __init__(self, command: Callable[[Path], Sequence[str | Path]],
                 env: dict[str, str] | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="er-bench-")
        self.folder = Path(self._folder.name)
        self.log = self.folder / "steps"
        self.log.mkdir()
        self._read: dict[int, list[Step]] = {}  # by worker: what has been read of its file
        self._offset: dict[int, int] = {}  # by worker: where its next line begins
        with open(self.folder / "output", "wb") as output:
            self._process = subprocess.Popen(command(self.folder), stdin=subprocess.DEVNULL,
                                             stdout=output, stderr=output, env=env)

    @property
    def pid(self) -> int:
        """The process id of elasticrun or torchrun."""
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()

    def steps(self, pid: int) -> list[Step]:
        """The steps that a worker has committed so far; an incomplete last line is left out.

        Only what is new is read, for what is measured has the same few processors as this."""
        known = self._read.setdefault(pid, [])
        path = f"{self.log}/{pid}"
        offset = self._offset.get(pid, 0)
        if os.stat(path).st_size == offset:
            return known
        with open(path, "rb") as file:
            file.seek(offset)
            text = file.read()
        whole = text[:text.rfind(b"\n") + 1]
        self._offset[pid] = offset + len(whole)
        known += [Step(*map(int, line.split())) for line in whole.splitlines()]
        return known

    def last_steps(self) -> dict[int, Step]:
        """The newest step of each worker that has committed one."""
        steps = {int(name): self.steps(int(name)) for name in os.listdir(self.log)}
        return {pid: own[-1] for pid, own in steps.items() if own}

    def world(self, size: int, steps_made: int) -> dict[int, int] | None:
        """Process ids by rank, once a world of this size has made `steps_made` steps."""
        self.check()
        last = self.last_steps()
        newest = max((step.generation for step in last.values()), default=0)
        members = {step.rank: pid for pid, step in last.items() if step.generation == newest}
        if len(members) != size:
            return None
        for pid in members.values():
            recent = self.steps(pid)[-steps_made:]
            if sum(step.generation == newest for step in recent) < steps_made:
                return None
        return members

    def recovery_ms(self, size: int, victim: int) -> float:
        """Time from kill -9 of a rank in a world of this size to the first step of another."""
        members = until(f"a world of {size}", lambda: self.world(size, 20), 120)
        generation = self.last_steps()[members[victim]].generation
        killed_ns = time.monotonic_ns()
        os.kill(members[victim], signal.SIGKILL)
        return (until("a step of another world", lambda: self._first_after(generation), 120)
                - killed_ns) / 1e6

    def _first_after(self, generation: int) -> int:
        self.check()
        if all(step.generation <= generation for step in self.last_steps().values()):
            return 0
        return min(step.done_ns for name in os.listdir(self.log)
                   for step in self.steps(int(name)) if step.generation > generation)

    def gaps_ms(self) -> dict[int, float]:
        """By generation: the longest pause of a survivor between two steps."""
        gaps: dict[int, float] = {}
        for file in self.log.iterdir():
            own = self.steps(int(file.name))
            for last, first in zip(own, own[1:]):
                if last.generation != first.generation:
                    gap = (first.begun_ns - last.done_ns) / 1e6
                    gaps[first.generation] = max(gap, gaps.get(first.generation, 0))
        return gaps

    def check(self) -> None:
        if self._process.poll() is not None:
            output = (self.folder / "output").read_text(errors="replace")
            raise RuntimeError(f"the job has ended: {output[-2000:]}")
