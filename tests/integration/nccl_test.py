#!/usr/bin/env python3
"""Training over NCCL on a fake GPU: kills, growing and shrinking, and what happens without NCCL.

The fake is one shared object under the names of the driver and of NCCL, which workers find before
the real ones. It moves real bytes between the workers and logs the calls that manage communicators.
"""
import array
import glob
import math
import os
import signal
import unittest
from typing import Any

from job import BIN, FASHION, Job, kill, read
from training import Training

DOUBLE = ["--precision", "double"]  # in float32 the order of a sum matters
ON_FAKE = os.path.join(BIN, "fashion_on_fake")
FAKE = os.path.realpath(os.path.join(BIN, "..", "lib", "fake_gpu"))


class OverNccl(Training):
    """A training whose workers find the fake; `backend` None: the default."""

    def __init__(self, hosts: str, backend: str | None = "nccl", **more: Any) -> None:
        options = [*more.pop("options", []), *(["--backend", backend] if backend else [])]
        self.log = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"er-fake-gpu-{os.getpid()}")
        super().__init__(hosts, options=options, env={
            "LD_LIBRARY_PATH": FAKE, "FAKE_GPU_LOG": self.log}, **more)

    def __exit__(self, *ended: Any) -> None:
        super().__exit__(*ended)
        for path in glob.glob(self.log + ".*"):
            os.unlink(path)

    def calls(self, pid: int) -> list[str]:
        return read(f"{self.log}.{pid}").split("\n")


def weights(job: Training) -> array.array:
    with open(job.record + ".weights", "rb") as file:
        return array.array("d", file.read())


class Nccl(unittest.TestCase):
    def test_kills_and_replacements(self) -> None:
        """Survivors shrink their communicator, unless the death finds one in a reduction, which then has
        none any more; newcomers join by a new one; nothing is lost."""
        with OverNccl("localhost slots=4\\n", epochs=4, device_ms=4) as job:
            job.world(4)
            first = set(job.workers().values())
            killed = []
            shrunk: list[dict[str, Any]] = []
            for rank in (3, 0, 3, 3, 3, 3, 3, 3):  # newcomers come last
                if len(killed) >= 2 and len(shrunk) >= 2:
                    break
                killed.append(job.pid_of_rank(rank))
                after = job.now()
                kill(killed[-1], signal.SIGKILL)
                job.wait_for("world_formed", after, planned=False, size=3)
                job.world(4, after)
                shrunk = job.find("world_formed", group=lambda how: str(how).startswith("nccl shrink"))
            self.assertLessEqual(first - set(killed), set(job.workers().values()), "survivors stay")
            survivors = sorted(first - set(killed))
            for pid in survivors:
                calls = job.calls(pid)
                shrinks = [call for call in calls if call.startswith("ncclCommShrink")]
                self.assertEqual(len(shrinks), len(shrunk), calls)
            self.assertGreaterEqual(len(shrunk), 2)
            for world in job.find("world_formed", planned=False, size=3):
                self.assertRegex(world["group"], "^nccl (shrink.*: 1 of 4 ranks went and none came|"
                                                 "init: a rank has no communicator to shrink)$")
            self.assertEqual(job.wait(120), 0, job.err())
            self.assertEqual(job.unexpected_ends(), sorted(killed))
            self.assertRegex(job.lineage(), "80 steps in 4 epochs of 2560 samples, each used once")
            self.assertEqual(job.leftovers(), [])
        self.assertEqual(glob.glob("/dev/shm/fake-nccl-*"), [])

    def test_on_gpus_the_answer_is_the_same(self) -> None:
        """Weights and gradients on the GPU, two kills: the weights are those of a calm CPU run."""
        with Training("localhost slots=1\\n", epochs=2, device_ms=0, more=DOUBLE) as calm:
            self.assertEqual(calm.wait(60), 0, calm.err())
            expected = weights(calm)
        with OverNccl("localhost slots=3\\n", epochs=2, device_ms=4, more=DOUBLE,
                      program=[ON_FAKE]) as job:
            job.world(3)
            for rank in (2, 0):
                after = job.now()
                kill(job.pid_of_rank(rank), signal.SIGKILL)
                job.world(3, after)
            self.assertEqual(job.wait(120), 0, job.err())
            self.assertRegex(job.lineage(), "40 steps in 2 epochs of 2560 samples, each used once")
            found = weights(job)
        self.assertEqual(len(found), len(expected))
        away = math.dist(found, expected) / math.hypot(*expected)
        self.assertLess(away, 1e-9)

    def test_hosts_come_and_go(self) -> None:
        """Planned changes form a new communicator while the old one trains."""
        with OverNccl("localhost slots=2\\n", epochs=100) as job:
            job.world(2)
            first = set(job.workers().values())
            for size in (4, 3, 1, 2):
                after = job.now()
                job.set_hosts(f"localhost slots={size}\n")
                job.world(size, after)
                if size > 1:
                    world = job.find("world_formed", after, planned=True, size=size)[0]
                    self.assertRegex(world["group"], "^nccl init: ")
            self.assertTrue(first & set(job.workers().values()), "one stayed all the time")
            for pid in first & set(job.workers().values()):
                self.assertFalse([call for call in job.calls(pid) if "Shrink" in call])
            kill(job.process.pid, signal.SIGINT)
            self.assertEqual(job.wait(30), 130, job.err())
            self.assertEqual(job.leftovers(), [])

    def test_auto_takes_nccl_where_all_can(self) -> None:
        """The fake has no driver files, so ELASTICRUN_GPU tells each slot that it has a GPU."""
        for told, group in (["-x", "ELASTICRUN_GPU=0"], "nccl init: "), ([], "gloo"):
            with OverNccl("localhost slots=2\\n", backend=None, epochs=1, options=told) as job:
                self.assertTrue(job.world(2)["group"].startswith(group))
                pids = list(job.workers().values())
                self.assertEqual(job.wait(60), 0, job.err())
                for pid in pids:
                    self.assertEqual("ncclAllReduce" in job.calls(pid), group != "gloo")

    def test_a_host_without_a_driver_is_named(self) -> None:
        options = ["--backend", "nccl", "--np", "2", "--max-batch", "128"]
        with Job(options, [FASHION, "--samples", "256"]) as job:
            self.assertNotEqual(job.wait(60), 0)
            self.assertIn("--backend nccl: no CUDA driver on ", job.err() + job.out())
            self.assertIn("libcuda.so.1 not found; install the driver or use --backend gloo",
                          job.err() + job.out())


if __name__ == "__main__":
    unittest.main()
