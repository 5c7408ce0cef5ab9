"""Training in PyTorch: elasticrun.torch beside torchrun with DistributedDataParallel, and torchft."""
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench_training import Training
from figures import Row, median, ratio, spread
from measures import GRADIENT_KB, HERE, STEP_US, TORCH_PYTHON, TORCHRUN, WORKERS, has_torch, recoveries

PACKAGE = HERE.parents[1] / "worker/python"
RESTARTS_MAX = 1000


def environment(programs: Path) -> dict[str, str]:
    """As of a user who has installed elasticrun."""
    path = ":".join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH")]))
    return os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": path}


def has(module: str) -> bool:
    return subprocess.run([TORCH_PYTHON, "-c", f"import {module}"], check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def killed(command: Sequence[str | Path], script: str, env: dict[str, str], kills: int) -> list[float]:
    def whole(folder: Path) -> list[str | Path]:
        return [*command, HERE / script, folder / "steps", str(STEP_US), str(GRADIENT_KB)]
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
    if has("torchft") and shutil.which("torchft_lighthouse"):
        jobs["torchft"] = ([TORCH_PYTHON], "torch_ft.py")
    else:
        rows.append(Row("torchft", "not installed"))
    for what, (command, script) in jobs.items():
        times = killed(command, script, env, kills)
        rows.append(Row(what, spread(times, "ms"), "elasticrun.torch / this",
                        f"{median(own) / median(times):.4f}"))
    return rows


def step(programs: Path, sizes: Sequence[int], steps: int, rounds: int) -> list[Row]:
    """A step of two workers, in turns with DistributedDataParallel."""
    if not has_torch():
        return [Row("all", "not measured: no torch (python3-torch)")]
    rows = []
    for millions in sizes:
        times: dict[str, list[float]] = {"ddp": [], "elastic": []}
        for _ in range(rounds):
            for mode, values in times.items():
                out = subprocess.run(
                    [programs / "elasticrun", "--quiet", "--label", "none", "-H", "localhost:2", "--policy",
                     "fixed", TORCH_PYTHON, HERE / "torch_step.py", mode, str(millions), str(steps)],
                    check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=600,
                    env=environment(programs)).stdout
                values.append(float(re.search(r"ms ([\d.]+)", out)[1]))
        rows.append(Row(f"{millions} million parameters", spread(times["elastic"], "ms"),
                        "DDP: " + spread(times["ddp"], "ms"),
                        ratio(median(times["elastic"]), median(times["ddp"]))))
    return rows
