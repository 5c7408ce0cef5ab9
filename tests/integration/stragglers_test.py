#!/usr/bin/env python3
"""A worker that becomes slow in mid-training is found, replaced once, and its slot left alone."""
import unittest
from typing import Any

from job import until
from training import Training

QUICK = ["--straggler-time", "2s", "--sample-interval", "100ms", "--settle", "0s"]
SLOW_FROM = 50  # step


class Slow(Training):
    """Four workers on five slots; from some step on one of them computes four times as long."""

    def __init__(self, rank: int, *options: str, slots: int = 5) -> None:
        super().__init__(f"localhost slots={slots}\\n", epochs=1000, device_ms=1,
                         more=["--slow", f"{rank}:4:{SLOW_FROM}"],
                         options=["--np", "4", *QUICK, *options])

    def straggler(self, rank: int) -> dict[str, Any]:
        self.world(4)
        pid = self.pid_of_rank(rank)
        found = self.wait_for("straggler")
        assert self.workers()[found["worker"]] == pid, "the right one"
        return found


class Stragglers(unittest.TestCase):
    def test_replaced_once(self) -> None:
        for rank in (2, 0):
            with self.subTest(rank=rank), Slow(rank) as job:
                before = dict(job.workers()) if job.world(4) else {}
                found = job.straggler(rank)
                self.assertLess(found["score"], 0.8)
                self.assertEqual(found["action"], "replace")
                after = job.now()
                world = job.wait_for("world_formed", after, size=4)
                self.assertTrue(world["planned"])
                self.assertIn("of the others' speed", world["reason"])
                until("it has gone", lambda: found["worker"] not in job.workers(), 20)
                self.assertEqual(len(set(job.workers()) & set(before)), 3)
                # Long enough for a second straggler event, if there were one.
                step = job.newest_step()
                until("more steps", lambda: job.newest_step() > step + 100, 60)
                self.assertEqual(len(job.find("straggler")), 1)
                self.assertEqual(len(job.find("evicted")), 1)
                self.assertEqual(len(job.find("world_formed")), 2)
                job.process.terminate()
                self.assertEqual(job.wait(), 143, job.err())

    def test_told_where_none_is_replaced(self) -> None:
        cases = [("report", ["--stragglers", "report"], 5, "report"),
                 ("no free slot", [], 4, "report")]
        for what, options, slots, action in cases:
            with self.subTest(what), Slow(1, *options, slots=slots) as job:
                self.assertEqual(job.straggler(1)["action"], action)
                step = job.newest_step()
                until("more steps", lambda: job.newest_step() > step + 50, 60)
                self.assertEqual(len(job.find("world_formed")), 1)
                self.assertEqual(len(job.find("straggler")), 1)
                job.process.terminate()
                self.assertEqual(job.wait(), 143, job.err())

    def test_off(self) -> None:
        with Slow(1, "--stragglers", "off") as job:
            job.world(4)
            until("steps", lambda: job.newest_step() > SLOW_FROM + 150, 60)
            self.assertEqual(job.find("straggler"), [])
            job.process.terminate()
            self.assertEqual(job.wait(), 143, job.err())


if __name__ == "__main__":
    unittest.main(verbosity=1)
