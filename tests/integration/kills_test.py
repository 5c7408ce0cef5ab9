#!/usr/bin/env python3
"""kill -9 of workers: the survivors go on, in place, from the newest committed step.

Victims are chosen by rank with a fixed seed and killed while their step is under way (most of a
step is compute here). Other tests kill a member, a candidate or a leaver while a planned change is
under way, and whole hosts.
"""
import random
import re
import signal
import unittest
from collections.abc import Callable

from job import kill, parent_of, steps_of, until
from training import Training

FOUR = "localhost slots=4\\n"


class Kills(unittest.TestCase):
    def kill_in_step(self, job: Training, pid: int) -> None:
        """Kills a worker soon after it has committed a step, so inside the next one."""
        before = steps_of(job.record, pid)
        until("a step", lambda: steps_of(job.record, pid) > before, 30)
        kill(pid, signal.SIGKILL)

    def test_ten_of_four(self) -> None:
        chance = random.Random(7)
        with Training(FOUR, epochs=100) as job:
            job.world(4)
            first = set(job.workers().values())
            killed = []
            for number in range(10):
                rank = 0 if number in (0, 5) else chance.randrange(4)
                victim = job.pid_of_rank(rank)
                after, step = job.now(), job.newest_step()
                self.kill_in_step(job, victim)
                killed.append(victim)
                forced = job.wait_for("world_formed", after, planned=False)
                self.assertGreaterEqual(forced["step"], step, "committed steps are kept")
                job.world(4, after)
                self.assertLessEqual(first - set(killed), set(job.workers().values()),
                                     "survivors stay")
            kill(job.process.pid, signal.SIGINT)
            self.assertEqual(job.wait(30), 130, job.err())
            self.assertEqual(job.unexpected_ends(), sorted(killed))
            self.assertEqual(len(job.find("worker_started")), 4 + 10)
            self.assertEqual(job.leftovers(), [])

    def test_accuracy_is_as_without(self) -> None:
        """Four kills, also of rank 0; the accuracy of each epoch is as in a run without kills."""
        with Training("localhost slots=1\\n", epochs=4, device_ms=0) as calm:
            self.assertEqual(calm.wait(90), 0, calm.err())
            expected = calm.accuracies()
        with Training(FOUR, epochs=4, device_ms=4) as job:
            job.world(4)
            killed = []
            for rank in (0, 2, 3, 0):
                killed.append(job.pid_of_rank(rank))
                after = job.now()
                self.kill_in_step(job, killed[-1])
                job.wait_for("world_formed", after, planned=False)
                job.world(4, after)
            self.assertEqual(job.wait(90), 0, job.err())
            self.assertEqual(job.unexpected_ends(), sorted(killed))
            words = job.lineage()
            self.assertRegex(words, r"80 steps in 4 epochs of 2560 samples, each used once")
            found = job.accuracies()
            self.assertEqual(sorted(found), [1, 2, 3, 4])
            for epoch, here in found.items():
                self.assertAlmostEqual(here, expected[epoch], delta=0.5)
            self.assertEqual(job.leftovers(), [])
        print(words, job.accuracies(), expected)


class WhileChanging(unittest.TestCase):
    """The victim dies while a planned change is prepared, switched to, or just done. More rounds
    follow until enough victims have died inside the change."""

    ROUNDS, INSIDE = 5, 2

    def inside(self, job: Training, after: int, worker: int) -> bool:
        """Whether the worker died between the start of the planned change and the next world."""
        changing = False
        for event in job.all_events()[after:]:
            if event["event"] == "change_started" and event["planned"]:
                changing = True
            elif event["event"] == "world_formed":
                changing = False
            elif event["event"] == "worker_exited" and event["worker"] == worker:
                return changing
        return False

    def rounds(self, victim_of: str) -> None:
        chance = random.Random(victim_of)
        with Training("localhost slots=3\\n", epochs=10000, device_ms=0.5) as job:
            job.world(3)
            inside = done = 0
            while done < self.ROUNDS or inside < self.INSIDE:
                done += 1
                self.assertLess(done, 40, f"{inside} of them died inside a change")
                after = job.now()
                grows = victim_of != "leaver"
                if not grows:
                    job.set_hosts("localhost slots=4\n")
                    job.world(4, after)
                    after = job.now()
                known = set(job.workers().values())
                leaver = max(job.workers().items())[1] if not grows else 0
                job.set_hosts(f"localhost slots={4 if grows else 3}\n")
                if victim_of == "candidate":
                    job.wait_for("worker_started", after)
                    victim = (set(job.workers().values()) - known or {0}).pop()
                    if chance.random() < 0.6:
                        job.wait_for("change_started", after)
                else:
                    victim = leaver or chance.choice(sorted(known))
                    job.wait_for("change_started", after)
                # The kill comes anywhere between the start of the change and some steps after it.
                steps = job.newest_step() + chance.randrange(2)
                until("a step", lambda n=steps: job.newest_step() >= n, 30)
                name = {pid: worker for worker, pid in job.workers().items()}.get(victim, 0)
                kill(victim, signal.SIGKILL)
                job.set_hosts("localhost slots=4\n" if grows else "localhost slots=3\n")
                self.settle(job, 4 if grows else 3, victim)
                inside += self.inside(job, after, name)
                self.assertLessEqual(known - {victim, leaver}, set(job.workers().values()),
                                     "survivors stay")
                if grows:
                    after = job.now()
                    job.set_hosts("localhost slots=3\n")
                    self.settle(job, 3, victim)
            kill(job.process.pid, signal.SIGTERM)
            self.assertEqual(job.wait(30), 143, job.err())
            self.assertFalse(re.search("internal error|state lost", job.err()), job.err())
            self.assertEqual(job.leftovers(), [])

    def settle(self, job: Training, size: int, victim: int) -> None:
        """Waits until a world of that size, without the victim, has stepped once more."""
        def settled() -> bool:
            worlds = job.find("world_formed")
            workers = job.workers().values()
            return worlds[-1]["size"] == size and len(workers) == size and victim not in workers
        until(f"{size} workers", settled, 40)
        step = job.newest_step()
        until("one more step", lambda: job.newest_step() > step, 30)

    def test_member(self) -> None:
        self.rounds("member")

    def test_candidate(self) -> None:
        self.rounds("candidate")

    def test_leaver(self) -> None:
        self.rounds("leaver")


class Hosts(unittest.TestCase):
    """One of two hosts is lost with all its workers: training goes on, and the host comes back."""

    HURRY = ["--heartbeat", "200ms", "--agent-timeout", "1500ms", "--lease", "3s"]

    def lose(self, hurt: Callable[[Training, int], None]) -> None:
        with Training("localhost slots=2\\n127.0.0.1 slots=2\\n", epochs=10000, device_ms=0.5,
                      options=self.HURRY) as job:
            job.world(4)
            event = job.find("worker_started", host="127.0.0.1")[0]
            known = job.workers()
            stay = {event["worker"] for event in job.find("worker_started", host="localhost")}
            after = job.now()
            hurt(job, event["pid"])
            job.wait_for("host_down", after, host="127.0.0.1")
            forced = job.wait_for("world_formed", after, planned=False)
            self.assertEqual(forced["hosts"], ["localhost"])
            job.world(4, after)
            self.assertEqual({worker for worker in known if worker in job.workers()}, stay)
            kill(job.process.pid, signal.SIGTERM)
            self.assertEqual(job.wait(30), 143, job.err())
            job.gone(5)

    def agent_of(self, job: Training, worker: int) -> int:
        """The agent above a worker: worker < shim < agent < watchdog."""
        return parent_of(parent_of(worker))

    def test_its_agent_is_killed(self) -> None:
        self.lose(lambda job, worker: kill(self.agent_of(job, worker), signal.SIGKILL))

    def test_its_watchdog_is_killed(self) -> None:
        self.lose(lambda job, worker: kill(parent_of(self.agent_of(job, worker)), signal.SIGKILL))

    def test_its_agent_is_stuck(self) -> None:
        self.lose(lambda job, worker: kill(self.agent_of(job, worker), signal.SIGSTOP))


if __name__ == "__main__":
    unittest.main()
