#!/usr/bin/env python3
"""Programs with their own loops: those of the manual page, word for word; one that counts its
updates while its workers are killed; and what policies make of such a loop."""
import os
import random
import re
import sys
import time
import unittest

from job import BIN, Job, kill, lives, until

MANUAL_LINE = os.path.join(BIN, "manual_line")
MANUAL_LOOP = os.path.join(BIN, "manual_own_loop")
UPDATES = os.path.join(BIN, "updates")


class Manual(unittest.TestCase):
    """What the manual page promises of its programs."""

    def test_a_line(self) -> None:
        with Job(["-H", "localhost:3", "--label", "none"], [MANUAL_LINE]) as job:
            self.assertEqual(job.wait(), 0, job.err())
            self.assertEqual(job.out(), "y = 3.00 x + 1.00\n")

    def test_a_loop_of_its_own(self) -> None:
        for size in (1, 2, 3):
            with self.subTest(size), Job(["-H", f"localhost:{size}", "--label", "none"],
                                         [MANUAL_LOOP]) as job:
                self.assertEqual(job.wait(), 0, job.err())
                lines = sorted(job.out().splitlines())
                self.assertEqual(lines, size * ["500 steps, 500 updates"]
                                 + ["y = 3.00 x + 1.00, off by 0.000"])
                self.assertEqual(job.leftovers(), [])

    def test_a_loop_of_its_own_under_kills(self) -> None:
        steps = 15_000
        with Job(["-H", "localhost:3", "--np", "2:3", "--label", "none"],
                 [MANUAL_LOOP, str(steps)]) as job:
            chance = random.Random(5)
            after = 0
            for _ in range(3):
                job.wait_for("world_formed", after, size=3)
                after = job.now()
                kill(chance.choice(sorted(job.workers().values())))
                job.wait_for("world_formed", after, planned=False)
            self.assertEqual(job.wait(120), 0, job.err())
            ends = set(re.findall(r"(\d+) steps, (\d+) updates", job.out()))
            self.assertEqual(ends, {(str(steps), str(steps))})
            self.assertEqual(job.leftovers(), [])


class Kills(unittest.TestCase):
    """kill -9 at any moment: every state has as many updates as there are committed steps."""

    def members(self, job: Job) -> list[int]:
        """The living members of the newest world, if they are all workers started by then and there are
        at least three."""
        def look() -> list[int]:
            self.assertIsNone(job.process.poll(), "the job has ended")
            events = job.all_events()
            at = max((i for i, event in enumerate(events) if event["event"] == "world_formed"),
                     default=None)
            if at is None:
                return []
            pids = {event["worker"]: event["pid"] for event in events[:at]
                    if event["event"] == "worker_started"}
            for event in events[:at]:
                if event["event"] == "worker_exited":
                    pids.pop(event["worker"], None)
            alive = sorted(pid for pid in pids.values() if lives(pid))
            return alive if len(pids) == events[at].get("size") and len(alive) >= 3 else []
        return until("a world of three or more", look, 60)

    def run_with(self, kills: int, seed: int) -> None:
        chance = random.Random(seed)
        with Job(["-H", "localhost:4", "--np", "2:4", "--label", "none"],
                 [UPDATES, "enough"]) as job:
            killed = 0
            while killed < kills:
                members = self.members(job)
                # A random time, so that the kill comes at any moment of a step or a change.
                time.sleep(chance.uniform(0, 0.05))
                count = len(job.find("world_formed"))
                # One member that holds the state stays; any others may go, also newcomers.
                stays, *others = chance.sample(members, len(members))
                victims = others[:1]
                if chance.random() < 0.3:
                    more = {*others, *job.workers().values()} - {stays, *victims}
                    victims += [pid for pid in [chance.choice(sorted(more))] if lives(pid)]
                for pid in victims:
                    kill(pid)
                killed += len(victims)
                until("the next world", lambda n=count: len(job.find("world_formed")) > n, 60)
            with open(job.path("enough"), "w", encoding="ascii"):
                pass
            self.assertEqual(job.wait(60), 0, job.err())
            ends = re.findall(r"^committed (\d+) updates (\d+) samples (\d+)$", job.out(), re.M)
            self.assertGreaterEqual(len(ends), 2, job.out())
            steps = int(ends[0][0])
            self.assertEqual(set(ends), {(str(steps), str(steps), str(24 * steps))})
            self.assertEqual(job.find("job_finished")[0]["steps"], steps)
            self.assertNotIn("updates: ", job.err())
            self.assertEqual(job.leftovers(), [])
        print(f"{killed} killed, {steps} steps", file=sys.stderr)

    def test_thirty(self) -> None:
        self.run_with(30, seed=1)

    def test_five_hundred(self) -> None:
        for seed in range(20):
            with self.subTest(seed):
                self.run_with(25, seed=100 + seed)


class Measured(unittest.TestCase):
    """Policies work for a loop that reports how many samples its steps have."""

    OPTIONS = ["-H", "localhost:3", "--np", "1:3", "--start", "1", "--settle", "1s", "--explain",
               "--label", "none"]

    def test_it_is_scaled(self) -> None:
        for policy in ("throughput", "fit"):
            with self.subTest(policy), Job([*self.OPTIONS, "--policy", policy],
                                           [UPDATES, "enough", "2000"]) as job:
                job.wait_for("world_formed", seconds=60, size=lambda size: size > 1)
                sample = job.find("sample")[0]
                self.assertAlmostEqual(sample["global_batch"], 24)
                self.assertGreater(sample["samples_per_s"], 100)
                with open(job.path("enough"), "w", encoding="ascii"):
                    pass
                self.assertEqual(job.wait(60), 0, job.err())
                self.assertNotIn("how many samples", job.err())

    def test_what_is_missing_is_said_once(self) -> None:
        with Job([*self.OPTIONS, "--policy", "fit"], [UPDATES, "enough", "2000", "uncounted"]) as job:
            until("the line", lambda: "how many samples" in job.err(), 30)
            with open(job.path("enough"), "w", encoding="ascii"):
                pass
            self.assertEqual(job.wait(60), 0, job.err())
            lines = [line for line in job.err().splitlines() if "how many samples" in line]
            self.assertEqual(len(lines), 1, job.err())
            self.assertRegex(lines[0], r"job\.samples|elasticrun_samples")
            self.assertEqual(job.find("sample"), [])


if __name__ == "__main__":
    unittest.main()
