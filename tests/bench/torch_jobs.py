"""Training in PyTorch: elasticrun.torch beside torchrun with DistributedDataParallel, and torchft."""
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from bench_training import Training, until
from figures import Row, median, ratio, spread
from measures import GRADIENT_KB, HERE, STEP_US, TORCH_PYTHON, TORCHRUN, WORKERS, has_torch, recoveries

PACKAGE = HERE.parents[1] / "worker/python"
RESTARTS_MAX = 1000
COST_US = 300  # that we allow ourselves
JOIN_STEP_US = 60_000


def environment(programs: Path) -> dict[str, str]:
    """As of a user who has installed elasticrun."""
    path = ":".join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH")]))
    return os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": path}


def runs(statement: str) -> bool:
    return subprocess.run([TORCH_PYTHON, "-c", statement], check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def killed(command: Sequence[str | Path], script: str, env: dict[str, str], kills: int,
           *options: str) -> list[float]:
    def whole(folder: Path) -> list[str | Path]:
        return [*command, HERE / script, folder / "steps", str(STEP_US), str(GRADIENT_KB), *options]
    with Training(whole, env) as training:
        return recoveries(training, kills)


def recovery(programs: Path, kills: int) -> list[Row]:
    """Time from kill -9 of one of four workers, each rank in turn, to the next step."""
    if not has_torch():
        return [Row("all", "not measured: no torch (python3-torch)")]
    env = environment(programs)
    own = killed([programs / "elasticrun", "-H", f"localhost:{WORKERS}", "--policy", "fixed", TORCH_PYTHON],
                 "torch_elastic.py", env, kills)
    rows = [Row("elasticrun.torch", spread(own, "ms"))]
    jobs = {"torchrun, monitor interval of 0.1 s":
            ([*TORCHRUN, "--max_restarts", str(RESTARTS_MAX), "--monitor_interval", "0.1",
              "--nproc_per_node", str(WORKERS)], "torch_trainer.py")}
    if runs("import torchft") and shutil.which("torchft_lighthouse"):
        for timeout, why in {"100": "heartbeats 300, its best", "10000": "that of its README"}.items():
            jobs[f"torchft, join timeout of {timeout} ms ({why})"] = ([TORCH_PYTHON], "torch_ft.py",
                                                                     timeout)
    else:
        rows.append(Row("torchft", "not installed"))
    if runs("from torch.distributed import _reconfigure"):
        jobs["dist._reconfigure by hand, timeout of 5 s"] = ([TORCH_PYTHON], "torch_reconfigure.py")
    for what, (command, script, *options) in jobs.items():
        times = killed(command, script, env, kills, *options)
        rows.append(Row(what, spread(times, "ms"), "elasticrun.torch / this",
                        f"{median(own) / median(times):.4f}"))
    return rows


def of_two(programs: Path, script: str, unit: str, *arguments: str) -> float:
    """What rank 0 of two workers prints, as in "ms 12.3"."""
    out = subprocess.run(
        [programs / "elasticrun", "--quiet", "--label", "none", "-H", "localhost:2", "--policy", "fixed",
         TORCH_PYTHON, HERE / script, *arguments],
        check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=600,
        env=environment(programs)).stdout
    return float(re.search(rf"{unit} ([\d.]+)", out)[1])


def step(programs: Path, sizes: Sequence[int], steps: int, rounds: int) -> list[Row]:
    """A step of two workers, in turns with DistributedDataParallel."""
    if not has_torch():
        return [Row("all", "not measured: no torch (python3-torch)")]
    rows = []
    for millions in sizes:
        times: dict[str, list[float]] = {"ddp": [], "elastic": []}
        for _ in range(rounds):
            for mode, values in times.items():
                values.append(of_two(programs, "torch_step.py", "ms", mode, str(millions), str(steps)))
        rows.append(Row(f"{millions} million parameters", spread(times["elastic"], "ms"),
                        "DDP: " + spread(times["ddp"], "ms"),
                        ratio(median(times["elastic"]), median(times["ddp"]))))
    return rows


def cost(programs: Path, gradients: int, steps: int, rounds: int) -> list[Row]:
    """Processor time of the training thread, of two workers beside each other, outside the collectives:
    more than a plain loop needs with a bare collective of as many bytes in each step, for the wait alone
    leaves it cold caches."""
    if not has_torch():
        return [Row("all", "not measured: no torch (python3-torch)")]
    times: dict[str, list[float]] = {"plain": [], "collective": [], "ddp": [], "elastic": []}
    for _ in range(rounds):
        for how, values in times.items():
            values.append(of_two(programs, "torch_cost.py", "us", how, str(gradients), str(steps)))
    rows = []
    for how, what in {"elastic": "elasticrun.torch", "ddp": "DistributedDataParallel"}.items():
        more = median(times[how]) - median(times["collective"])
        rows.append(Row(f"{what}, {gradients} gradients: {more:.0f} us", spread(times[how], "us"),
                        "bare: " + spread(times["collective"], "us"), ratio(more, COST_US)))
    alone = median(times["collective"]) - median(times["plain"])
    rows.append(Row(f"the bare collective: {alone:.0f} us", spread(times["collective"], "us"),
                    "plain: " + spread(times["plain"], "us"), ratio(alone, COST_US)))
    return rows


def joined(programs: Path, state_mb: int) -> tuple[float, float, float, float]:
    """One worker joins two, by an edited host file: idle, state and step in ms, and seconds from the
    start of the newcomer's process until it was ready."""
    gradient_kb = state_mb * 1000 // 3  # the weights, and twice as much of Adam

    def command(folder: Path) -> list[str | Path]:
        (folder / "hosts").write_text("localhost:2\n")
        return [programs / "elasticrun", "--hosts", folder / "hosts", "--unit", "slot", "--events",
                folder / "events", TORCH_PYTHON, HERE / "torch_elastic.py", folder / "steps",
                str(JOIN_STEP_US), str(gradient_kb), "Adam"]
    with Training(command, environment(programs)) as training:
        members = until("a world of 2", lambda: training.world(2, 10), 120)
        steps = training.steps(members[0])[-9:]
        step_ms = (steps[-1].done_ns - steps[0].done_ns) / 1e6 / (len(steps) - 1)
        hosts = training.folder / "hosts.new"
        hosts.write_text("localhost:3\n")
        hosts.rename(training.folder / "hosts")
        until("a world of 3", lambda: training.world(3, 1), 120)
        text = (training.folder / "events").read_text()
    events = [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]
    last = {event["event"]: event for event in events}
    began, was_ready = (datetime.fromisoformat(last[name]["time"])
                        for name in ("worker_started", "change_started"))
    ready_s = (was_ready - began).total_seconds()
    formed = last["world_formed"]
    return formed["idle_ms"], formed["state_ms"], step_ms, ready_s


def joins(programs: Path, states_mb: Sequence[int], rounds: int) -> list[Row]:
    """How long members idle while a worker joins, against the transfer and one step."""
    if not has_torch():
        return [Row("all", "not measured: no torch (python3-torch)")]
    rows = []
    for state_mb in states_mb:
        idle, state, step_ms, ready = zip(*(joined(programs, state_mb) for _ in range(rounds)))
        bound = median(state) + median(step_ms)
        rows.append(Row(f"{state_mb} MB", f"idle {spread(idle, 'ms')}",
                        f"state {median(state):.1f} ms, a step {median(step_ms):.1f} ms; the newcomer "
                        f"was ready after {median(ready):.1f} s", ratio(median(idle), bound)))
    return rows
