"""The measurements. Each takes the folder of the built programs and returns rows of the table."""
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from figures import Row, median, ratio, spread
from bench_training import Training, until

HERE = Path(__file__).parent
STEP_BUDGET_US = 20
TINY = 10_000  # floats
WORKERS = 4
STEP_US = 5_000
GRADIENT_KB = 1_000
FOREVER = 10_000_000  # steps
TORCH_PYTHON = os.environ.get("TORCH_PYTHON", "/usr/bin/python3")
# With -r and -t Debian's torch 1.13 on Python 3.11 requires a rank; it need not exist.
TORCHRUN = [TORCH_PYTHON, "-m", "torch.distributed.run", "-r", "9:1", "-t", "9:1"]
# With the shared store of their default, versions from 2 on do not recover.
os.environ.setdefault("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")


def output_of(command: Sequence[str | Path]) -> str:
    """Standard output of a command that must succeed."""
    return subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          text=True, timeout=300).stdout


# ---------------------------------------------------------------- the step


def overlap(programs: Path, steps: int, rounds: int) -> list[Row]:
    """Two workers whose gradients are ready one by one, with buckets and without; of the rounds, the
    one in the middle."""
    allowed_us = 10
    found: dict[str, list[tuple[float, float, float]]] = {}
    costs: dict[str, list[float]] = {}
    for _ in range(rounds):
        for line in output_of([programs / "bench_overlap", str(steps)]).splitlines():
            if line.startswith("cost "):
                _, workers, gradients, cuts, cost = line.split()
                of = "a worker alone" if workers == "1" else f"{workers} workers, but the reduction"
                costs.setdefault(f"{of}, {gradients} gradients, {cuts} buckets",
                                 []).append(float(cost))
                continue
            size, reduction, compute, after, buckets = line.split()
            longer = max(float(reduction), float(compute))
            found.setdefault(size, []).append((float(buckets) / longer, float(after) / longer, longer))
    rows = []
    for size, ratios in found.items():
        buckets, _, longer = sorted(ratios)[len(ratios) // 2]
        after = sorted(one[1] for one in ratios)[len(ratios) // 2]
        rows.append(Row(f"{size} MB of gradients in buckets", f"{buckets * longer:.1f} ms",
                        f"each alone: {longer:.1f} ms", f"{buckets:.2f}"))
        rows.append(Row(f"{size} MB reduced after compute", f"{after * longer:.1f} ms", "",
                        f"{after:.2f}"))
    for what, us in costs.items():
        rows.append(Row(f"training thread of {what}", f"{median(us):.1f} us",
                        f"against {allowed_us} us", ratio(median(us), allowed_us)))
    return rows


def step_cost(programs: Path, steps: int, runs: int) -> list[Row]:
    """The training thread's time in the library, apart from the collectives, over this many
    steps."""
    rows = []
    for line in output_of([programs / "bench_step_cost", str(steps)]).splitlines():
        workers, tensors, elements, batch, noise, cost, late, collectives = line.split()
        what = f"{workers} worker(s), {tensors} x {elements} floats, batch {batch}"
        if noise == "1":
            what += ", with noise"
        beside = f"99 %: {late} us" + (f", all-reduce {collectives} us" if workers != "1" else "")
        if int(tensors) * int(elements) > TINY:  # then most of it is copying
            beside += f", packs {int(tensors) * int(elements) * 4 // 1024} KB"
        rows.append(Row(what, f"{cost} us", beside, ratio(float(cost), STEP_BUDGET_US)))
    train_loop = [programs / "bench_trainer", "-", "0", "1", "0", str(steps)]
    job = [programs / "elasticrun", "--quiet", "--label", "none", "-H", "localhost:1", *train_loop]
    alone, under = [], []
    for _ in range(runs):
        alone.append(float(output_of(train_loop).split()[0]))
        under.append(float(output_of(job).split()[0]))
    rows.append(Row("whole step, 1 worker under elasticrun", f"{median(under):.2f} us",
                    f"alone: {median(alone):.2f} us", ratio(median(under), STEP_BUDGET_US)))
    return rows


def verify_state(programs: Path, steps: int, runs: int, states_mb: Sequence[int]) -> list[Row]:
    """Processor time of a step of 1 ms with and without --verify-state, in turns."""
    allowed_us = 10  # 0.1 % of a step of 10 ms
    rows = []
    for state_mb in states_mb:
        us: dict[str, list[float]] = {"with": [], "without": []}
        for _ in range(runs):
            for how, options in {"with": [], "without": ["--verify-state", "off"]}.items():
                job = [programs / "elasticrun", "--quiet", "--label", "none", "-H", "localhost:2",
                       *options, programs / "bench_trainer", "-", "1000", str(state_mb), "100",
                       str(steps)]
                us[how].append(float(output_of(job).split()[1]))
        cost = median(us["with"]) - median(us["without"])
        rows.append(Row(f"{state_mb} MB of state: {cost:.1f} us", spread(us["with"], "us"),
                        "off: " + spread(us["without"], "us"), ratio(cost, allowed_us)))
    return rows


# ---------------------------------------------------------------- starting


def wall_ms(command: Sequence[str | Path], environment: dict[str, str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, check=True, env=environment, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
    return (time.perf_counter() - begin) * 1e3


def start(programs: Path, pairs: int) -> list[Row]:
    """Wall time of two processes that do nothing."""
    ours = [programs / "elasticrun", "-H", "localhost:2", "true"]
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        own = [wall_ms(ours, dict(os.environ)) for _ in range(pairs)]
        return [Row("elasticrun -H localhost:2 true", spread(own, "ms"),
                    "mpirun: not installed (openmpi-bin)")]
    theirs = [mpirun, "--oversubscribe", "-n", "2", "true"]
    as_root = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    wall_ms(ours, as_root), wall_ms(theirs, as_root)  # fills the page cache for both
    own, other = [], []
    for _ in range(pairs):
        own.append(wall_ms(ours, as_root))
        other.append(wall_ms(theirs, as_root))
    ratios = [a / b for a, b in zip(own, other)]
    return [Row("elasticrun -H localhost:2 true", spread(own, "ms"),
                f"mpirun -n 2: {spread(other, 'ms')}", f"{median(ratios):.2f}")]


# ---------------------------------------------------------------- recovery


def bare_gloo(programs: Path, runs: int) -> list[float]:
    figures = [WORKERS, STEP_US, GRADIENT_KB, runs]
    command = [programs / "bench_bare_gloo", *map(str, figures)]
    return [float(line) for line in output_of(command).splitlines()]


def recoveries(training: Training, kills: int) -> list[float]:
    return [training.recovery_ms(WORKERS, i % WORKERS) for i in range(kills)]


def elasticrun_recoveries(programs: Path, kills: int) -> list[float]:
    def command(folder: Path) -> list[str | Path]:
        return [programs / "elasticrun", "-H", f"localhost:{WORKERS}", programs / "bench_trainer",
                folder / "steps", str(STEP_US), "1", str(GRADIENT_KB), str(FOREVER)]
    with Training(command) as training:
        return recoveries(training, kills)


def torchrun_recoveries(options: Sequence[str], kills: int) -> list[float]:
    def command(folder: Path) -> list[str | Path]:
        return [*TORCHRUN, "--max_restarts", str(kills + 1), *options, "--nproc_per_node",
                str(WORKERS), HERE / "torch_trainer.py", folder / "steps", str(STEP_US),
                str(GRADIENT_KB)]
    with Training(command) as training:
        return recoveries(training, kills)


def plain_recoveries(programs: Path, kills: int) -> list[float]:
    """The same program as under torchrun, which knows nothing of elasticrun."""
    def command(folder: Path) -> list[str | Path]:
        return [programs / "elasticrun", "-H", f"localhost:{WORKERS}", "--max-restarts",
                str(kills + 1), TORCH_PYTHON, HERE / "torch_trainer.py", folder / "steps",
                str(STEP_US), str(GRADIENT_KB)]
    with Training(command) as training:
        return recoveries(training, kills)


def has_torch() -> bool:
    probe = subprocess.run([TORCHRUN[0], "-c", "import torch.distributed.run"], check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return probe.returncode == 0


def recovery(programs: Path, kills: int) -> list[Row]:
    """Time from kill -9 of one of four workers, each rank in turn, to the next commit."""
    before = bare_gloo(programs, kills - kills // 2)
    own = elasticrun_recoveries(programs, kills)
    bare = before + bare_gloo(programs, kills // 2)
    rows = [Row("elasticrun", spread(own, "ms")),
            Row("Gloo by hand, nothing decided", spread(bare, "ms"), "elasticrun / this",
                ratio(median(own), median(bare)))]
    if not has_torch():
        return rows + [Row("torchrun", "not installed (python3-torch)")]
    plain = plain_recoveries(programs, kills)
    for options in ([], ["--monitor_interval", "0.1"]):
        torch = torchrun_recoveries(options, kills)
        rows.append(Row(" ".join(["torchrun", *options]), spread(torch, "ms"), "elasticrun / this",
                        f"{median(own) / median(torch):.4f}"))
        rows.append(Row("  the same program under elasticrun", spread(plain, "ms"),
                        "this / torchrun", ratio(median(plain), median(torch))))
    return rows


# ---------------------------------------------------------------- planned changes

IDLE_STEP_US = 60_000


def formed_worlds(training: Training) -> list[dict[str, float]]:
    text = (training.folder / "events").read_text()
    events = [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]
    return [event for event in events if event["event"] == "world_formed"]


def planned_changes(programs: Path, state_mb: int, changes: int) -> list[dict[str, float]]:
    """Grows and shrinks in turns by editing the host file; returns the world_formed event of
    each change, with the longest gap between two steps of a survivor."""
    def command(folder: Path) -> list[str | Path]:
        (folder / "hosts").write_text("localhost:2\n")
        return [programs / "elasticrun", "--hosts", folder / "hosts", "--unit", "slot", "--events",
                folder / "events", programs / "bench_trainer", folder / "steps", str(IDLE_STEP_US),
                str(state_mb), "100", str(FOREVER)]
    with Training(command) as training:
        size = 2
        for _ in range(changes):
            until(f"a world of {size}", lambda: training.world(size, 3))
            size = 5 - size
            hosts = training.folder / "hosts.new"
            hosts.write_text(f"localhost:{size}\n")
            hosts.rename(training.folder / "hosts")
        until(f"a world of {size}", lambda: training.world(size, 3))
        gaps = training.gaps_ms()
        return [{**event, "gap_ms": gaps[event["generation"]]}
                for event in formed_worlds(training) if event["planned"]]


def idle(programs: Path, changes: int, states_mb: Sequence[int]) -> list[Row]:
    """How long members idle in a planned change, and how long the state takes."""
    rows = []
    for state_mb in states_mb:
        events = planned_changes(programs, state_mb, 2 * changes)
        for kind, size in (("grow", 3), ("shrink", 2)):
            chosen = [event for event in events if event["size"] == size]
            idle_ms = [event["idle_ms"] for event in chosen]
            state = median([event["state_ms"] for event in chosen])
            gap = median([event["gap_ms"] for event in chosen])
            prepare = median([event["prepare_ms"] for event in chosen])
            bound = state + 2 * IDLE_STEP_US / 1e3 + 20
            rows.append(Row(
                f"{kind}, {state_mb} MB", f"idle {spread(idle_ms, 'ms')}",
                f"state {state:.1f} ms, the rest {median(idle_ms) - state:.1f} ms; the program "
                f"sees {gap:.1f} ms; forming, beside training: {prepare:.1f} ms; "
                f"bound {bound:.0f} ms",
                ratio(median(idle_ms), bound)))
    return rows


# ---------------------------------------------------------------- stragglers

SLOW = ["--samples", "7680", "--batch", "128", "--device-ms", "1", "--slow", "2:4:50"]


def with_stragglers(programs: Path, what: str, epochs: int) -> float:
    """Wall time of a job of 60 steps an epoch; one worker of four becomes four times slower."""
    return wall_ms([programs / "elasticrun", "-H", "localhost:5", "--np", "4", "--policy", "fixed",
                    "--max-batch", "128", "--quiet", "--straggler-time", "2s", "--stragglers", what,
                    programs / "fashion", "--epochs", str(epochs), *SLOW], dict(os.environ))


def stragglers(programs: Path, runs: int, epochs: int) -> list[Row]:
    """Compares a job that replaces a slow worker with one that keeps it."""
    if not (programs / "fashion").exists():
        return [Row("all", "not measured: fashion is not built (libopenblas-dev, zlib1g-dev)")]
    times: dict[str, list[float]] = {"off": [], "replace": []}
    for _ in range(runs):
        for what, values in times.items():
            values.append(with_stragglers(programs, what, epochs))
    kept = median(times["off"])
    return [Row(f"--stragglers {what}", spread(values, "ms"), "", ratio(median(values), kept))
            for what, values in times.items()]


# ---------------------------------------------------------------- strangers

CALM_STEPS = 150
FLOOD_STEP_US = 20_000


def ports_of(training: Training) -> dict[int, int]:
    """Listening port -> pid, of the job and its workers."""
    listening = output_of(["ss", "-Htlnp"])
    return {int(local.rpartition(":")[2]): int(pid) for local, pid in
            re.findall(r"^LISTEN +\d+ +\d+ +(\S+) .*,pid=(\d+),", listening, re.M)
            if int(pid) in {training.pid, *training.last_steps()}}


def job_of(pid: int) -> str:
    environment = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return next(entry for entry in environment if entry.startswith("ELASTICRUN_JOB_ID=")).split("=")[1]


def step_ms(training: Training, pid: int, begin_ns: int, end_ns: int) -> float:
    """The mean duration of the steps that ended in that time."""
    done = [step.done_ns for step in training.steps(pid) if begin_ns <= step.done_ns <= end_ns]
    return (done[-1] - done[0]) / (len(done) - 1) / 1e6


def impostors(programs: Path, pairs: int, connections: int) -> list[Row]:
    """The step time of a job, alone and while strangers connect to all its ports, in turns.

    Workers listen only while a world forms, so most of the time only the controller is reached.
    """
    def command(folder: Path) -> list[str | Path]:
        return [programs / "elasticrun", "-H", f"localhost:{WORKERS}", programs / "bench_trainer",
                folder / "steps", str(FLOOD_STEP_US), "1", str(GRADIENT_KB), str(FOREVER)]
    calm, flooded, rates = [], [], []
    with Training(command) as training:
        first = until(f"a world of {WORKERS}", lambda: training.world(WORKERS, 20))[0]
        for _ in range(pairs):
            begin, made = time.monotonic_ns(), len(training.steps(first))
            until("steps", lambda: len(training.steps(first)) >= made + CALM_STEPS)
            calm.append(step_ms(training, first, begin, time.monotonic_ns()))
            words = output_of([sys.executable, HERE / "impostors.py", str(connections),
                               f"{job_of(first)}/host/0/1", *map(str, ports_of(training))])
            begin, end, connected = map(int, words.split())
            rates.append(connected / (end - begin) * 1e9)
            flooded.append(step_ms(training, first, begin, end))
        worlds = {step.generation for step in training.steps(first)}
    ratios = [a / b for a, b in zip(flooded, calm)]
    return [Row(f"step of {WORKERS} workers, {connections} impostors", spread(flooded, "ms"),
                f"alone: {spread(calm, 'ms')}; {median(rates):.0f} impostors/s; "
                f"{len(worlds)} world", f"{median(ratios):.3f}")]


# ---------------------------------------------------------------- the data plane


def plane(programs: Path, size: str) -> None:
    """Measures the data plane by itself; `size` is full or small."""
    sys.stdout.flush()
    subprocess.run([programs / "bench_plane", size], check=True, timeout=600)


def control_plane(programs: Path, sizes: str, steady_s: int) -> None:
    """Measures the controller by itself; `steady_s`: virtual seconds in which nothing happens."""
    sys.stdout.flush()
    subprocess.run([programs / "bench_control_plane", "--sizes", sizes, "--steady", str(steady_s)],
                   check=True, timeout=3600)
