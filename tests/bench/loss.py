"""One host of three is lost: how long the others take until they have formed a world again.

The hosts are namespaces of this machine, each with an sshd of its own (tests/integration/bed).
Two losses take turns: the agent on one host is killed; that host loses power and boots at once, so
that its peers and the controller find their connections reset. The deadlines are the defaults. With
a second build to compare, each loss happens under the one and then under the other.
"""
import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from figures import Row, median, ratio, spread

# Appended last, so that a module here wins over one of the same name there.
sys.path.append(str(Path(__file__).resolve().parents[1] / "integration"))
import job as jobs  # noqa: E402
from bed import Bed, Host, missing  # noqa: E402
from bed.job import BedJob, slots  # noqa: E402

HOSTS = ("node1", "node2", "node3")
VICTIM = HOSTS[-1]


def kill_agent(host: Host) -> None:
    for process in host.programs():
        if process.name.startswith("agent-"):
            jobs.kill(process.pid)


def reset(host: Host) -> None:
    host.crash()
    host.boot()


WAYS: dict[str, Callable[[Host], None]] = {"agent killed": kill_agent, "host reset": reset}


def milliseconds_of(stamp: str) -> float:
    return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp() * 1e3


def lose(programs: Path, bed: Bed, act: Callable[[Host], None]) -> float:
    """The time from the loss to the world without that host, in ms."""
    jobs.ELASTICRUN = os.path.join(programs, "elasticrun")
    training = [os.path.join(programs, "fashion"), "--samples", "2560", "--epochs", "100000",
                "--batch", "32", "--device-ms", "2"]
    with BedJob(bed, slots(1, *HOSTS), training, ["--max-batch", "96"], deadlines=()) as job:
        job.wait_for("world_formed", size=len(HOSTS))
        jobs.until("it trains", lambda: job.progress() > 5, 60)
        after, begin = job.now(), time.time() * 1e3
        act(bed[VICTIM])
        world = job.wait_for("world_formed", after, size=len(HOSTS) - 1)
        job.process.terminate()
        job.wait(60)
        return milliseconds_of(world["time"]) - begin


def loss(programs: Path, beside: Path | None, runs: int) -> Sequence[Row]:
    if why := missing():
        return [Row("host loss", f"not measured: {why}")]
    builds = [one.resolve() for one in (programs, beside) if one]
    took: dict[tuple[str, Path], list[float]] = {}
    with Bed(len(HOSTS)) as bed:
        for _ in range(runs):
            for way, act in WAYS.items():
                for build in builds:
                    took.setdefault((way, build), []).append(lose(build, bed, act))
    rows = []
    for way in WAYS:
        own = took[way, builds[0]]
        if not beside:
            rows.append(Row(way, spread(own, "ms")))
            continue
        other = took[way, builds[1]]
        rows.append(Row(way, spread(own, "ms"), f"beside {spread(other, 'ms')}",
                        ratio(median(own), median(other))))
    return rows
