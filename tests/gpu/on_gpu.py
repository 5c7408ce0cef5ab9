"""What the checks on one GPU share: its memory, and ranks that share it."""
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from job import Job  # noqa: E402

# Set where a check runs from a bundle (scripts/gpu-bundle).
LIBRARIES = {"LD_LIBRARY_PATH": os.environ["GPU_LIBRARIES"]} if "GPU_LIBRARIES" in os.environ else {}
UNUSUAL_MS = 5000  # idle for so long, something was waited for in vain
BACKEND = os.environ.get("GPU_BACKEND", "nccl")


def on_gpu(program: list[str]) -> list[str]:
    """NCCL refuses two ranks of one host on one GPU: each is a host of its own. `exec` lets the worker
    keep its pid."""
    return ["sh", "-c", 'NCCL_HOSTID=rank-$ELASTICRUN_WORKER exec "$0" "$@"', *program]


def gpu_memory() -> int | None:
    """MiB in use; None where nvidia-smi cannot tell."""
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=memory.used",
                               "--format=csv,noheader,nounits"],
                              capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return sum(int(line) for line in done.stdout.split())


def show_idle(job: Job) -> None:
    """Prints for each kind of change the idle time that the survivors saw, the part of it that the
    state took, and the time to form the group with its first collective (no worker is idle meanwhile
    in a planned change). A forced change names how its group was formed."""
    kinds: dict[str, list[tuple[float, ...]]] = {}
    size = 0
    for world in job.find("world_formed"):
        kind = ("planned, grow" if world["size"] > size else "planned, shrink"
                if world["size"] < size else "planned, replace")
        if not world["planned"]:
            kind = "forced, " + world["group"].partition(":")[0]
        size = world["size"]
        if world["idle_ms"] is not None:
            kinds.setdefault(kind, []).append(
                (world["idle_ms"], world["state_ms"], world["prepare_ms"]))
    if job.find("world_formed", idle_ms=lambda ms: ms is not None and ms > UNUSUAL_MS):
        print(f"--- an unusual wait; the job's words:\n{job.err()}")
    print(f"{'changes, medians in ms':<34} count    idle  (most)   state  forming")
    for kind, values in sorted(kinds.items()):
        idle_ms, state, forming = ([value[i] for value in values] for i in range(3))
        print(f"  {kind:<32} {len(values):5d} {statistics.median(idle_ms):7.0f} {max(idle_ms):7.0f} "
              f"{statistics.median(state):7.0f} {statistics.median(forming):8.0f}")
