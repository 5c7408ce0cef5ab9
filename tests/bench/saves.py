"""What saving the state costs: a stop beside dd, and --save-every beside none."""
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench_training import Training, until
from figures import Row, median, ratio, spread

STEP_US = 20_000
GRADIENT_KB = 100
# Of the time of a stop: what is measured is the save, not the step that it waits for.
SHORT_STEP_US = 200
SMALL_GRADIENT_KB = 1
FOREVER = 10_000_000  # steps


def trainer(programs: Path, workers: int, state_mb: int, options: Sequence[str],
            folder: Path, step_us: int = STEP_US,
            gradient_kb: int = GRADIENT_KB) -> list[str | Path]:
    return [programs / "elasticrun", "--quiet", "-H", f"localhost:{workers}", "--shares", "equal",
            "--events", folder / "events", *options, programs / "bench_trainer", folder / "steps",
            str(step_us), str(state_mb), str(gradient_kb), str(FOREVER)]


def dd_ms(folder: Path, megabytes: int) -> float:
    """dd of as many bytes into the folder, on the disk when it ends; its file is removed."""
    begin = time.monotonic()
    subprocess.run(["dd", "if=/dev/zero", f"of={folder}/dd", "bs=1MB", f"count={megabytes}",
                    "conv=fsync", "status=none"], check=True)
    took = (time.monotonic() - begin) * 1e3
    os.remove(folder / "dd")
    return took


def stop_ms(programs: Path, workers: int, state_mb: int, state: Path) -> float:
    """From TERM to the whole save; the end of the step under way is part of it."""
    with Training(lambda folder: trainer(programs, workers, state_mb, ["--save", str(state)],
                                         folder, SHORT_STEP_US, SMALL_GRADIENT_KB)) as job:
        until("a world", lambda: job.world(workers, 5))
        dd_ms(state.parent, state_mb)
        os.kill(job.pid, signal.SIGTERM)
        events = job.folder / "events"

        def took() -> float:
            lines = [json.loads(line) for line in events.read_text().splitlines(True)
                     if line.endswith("\n")]
            return next((line["took_ms"] for line in lines if line["event"] == "saved"), 0)
        return until("the save", took, 120)


def saves(programs: Path, runs: int, sizes_mb: Sequence[int]) -> list[Row]:
    """Both follow a dd that is not measured, and write to the memory that it has just freed: that
    of before has become the state of the workers, and other memory may be new to the machine."""
    rows = []
    for state_mb in sizes_mb:
        for workers in (1, 4):
            stops, copies = [], []
            for _ in range(runs):
                with tempfile.TemporaryDirectory(prefix="er-bench-", dir="/var/tmp") as name:
                    folder = Path(name)
                    dd_ms(folder, state_mb)
                    copies.append(dd_ms(folder, state_mb))
                    stops.append(stop_ms(programs, workers, state_mb, folder / "state"))
            rows.append(Row(f"stop, {state_mb} MB, {workers} workers", spread(stops, "ms"),
                            "dd: " + spread(copies, "ms"), ratio(median(stops), median(copies))))
    return rows


def steps_ms(programs: Path, workers: int, state_mb: int, options: Sequence[str],
             seconds: float) -> list[float]:
    with Training(lambda folder: trainer(programs, workers, state_mb, options, folder)) as job:
        members = until("a world", lambda: job.world(workers, 20), 120)
        time.sleep(seconds)
        steps = job.steps(members[0])[20:]
        return [(next_one.done_ns - one.done_ns) / 1e6 for one, next_one in zip(steps, steps[1:])]


def saves_beside(programs: Path, seconds: float, state_mb: int) -> list[Row]:
    """The median and the slowest step while the state is saved once a second, and without."""
    rows = []
    for workers in (1, 4):
        with tempfile.TemporaryDirectory(prefix="er-bench-", dir="/var/tmp") as name:
            plain = steps_ms(programs, workers, state_mb, [], seconds)
            saved = steps_ms(programs, workers, state_mb,
                             ["--save", name + "/state", "--save-every", "1s"], seconds)
        what = f"--save-every 1s, {state_mb} MB, {workers} workers"
        rows.append(Row(what + ": median step", f"{median(saved):.2f} ms",
                        f"without: {median(plain):.2f} ms", ratio(median(saved), median(plain))))
        rows.append(Row(what + ": slowest step", f"{max(saved):.1f} ms",
                        f"without: {max(plain):.1f} ms", ratio(max(saved), max(plain))))
    return rows
