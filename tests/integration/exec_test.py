#!/usr/bin/env python3
"""A user's program as the policy: the sample program drives a job; and whatever such a program
does, training goes on with the same workers, and nothing of the program is left."""
import os
import signal
import unittest

from job import kill, lives, read, replace_file, until
from training import Training

SAMPLE = os.path.realpath(os.path.join(os.path.dirname(__file__), "../../configs/policy-example.sh"))
# Executes the file `rule`. Each run adds a line to `runs` and leaves its question in `question`.
PROGRAM = "echo run >> runs; cat > question; . ./rule"
QUICK = ["--np", "1:3", "--settle", "100ms", "--sample-interval", "50ms", "--policy-timeout", "1s"]
STAYS = "; the size stays as it is"


class Advised(Training):
    """A job that begins with one worker on three slots."""

    def __init__(self, program: str, epochs: int = 10000) -> None:
        super().__init__("localhost slots=3\\n", epochs=epochs, device_ms=0.4,
                         options=[*QUICK, "--start", "1", "--policy", f"exec:{program}"])

    def rule(self, script: str) -> None:
        replace_file(self.path("rule"), script)

    def runs(self) -> int:
        return read(self.path("runs")).count("\n")

    def of_program(self) -> list[int]:
        """The processes of a run of the program, with those that it has started."""
        return [pid for pid in self.pids() if read(f"/proc/{pid}/comm").strip() in
                ("sh", "cat", "head", "sleep", "yes")]


class Exec(unittest.TestCase):
    def stop(self, job: Advised) -> None:
        kill(job.process.pid, signal.SIGTERM)
        self.assertEqual(job.wait(30), 143, job.err())
        self.assertEqual(job.unexpected_ends(), [])
        job.gone(5)

    def test_the_sample_drives_a_job(self) -> None:
        with Advised(SAMPLE, epochs=20) as job:
            self.assertEqual(job.wait(120), 0, job.err())
            moves = [event["target"] for event in job.find("decision") if event["action"] != "stay"]
            self.assertEqual(moves[:2], [2, 3], job.err())
            self.assertRegex(job.err(), "exec: growing from 1 to 2: worth [0-9.]+ at size 1\n")
            self.assertEqual(job.find("advice_ignored"), [])
            self.assertGreater(max(job.accuracies().items())[1], 70)
            job.lineage()
            job.gone(5)

    def check_trouble(self, job: Advised, script: str, words: str) -> None:
        stay, worlds = dict(job.workers()), len(job.find("world_formed"))
        job.rule(script)
        until(f"{words} is said", lambda: words in job.err(), 20)
        runs, step = job.runs(), job.newest_step()
        until("more runs", lambda: job.runs() > runs + 1, 30)
        until("training goes on", lambda: job.newest_step() > step + 1, 20)
        self.assertEqual(job.err().count(words), 1, job.err())
        self.assertIn(STAYS, [line for line in job.err().splitlines() if words in line][0])
        self.assertTrue(any(words in event["reason"] for event in job.find("advice_ignored")))
        self.assertEqual((len(job.find("world_formed")), job.workers()), (worlds, stay))

    def test_whatever_it_does(self) -> None:
        with Advised(PROGRAM) as job:
            job.rule("echo '{\"target\":1}'")
            job.world(1)
            until("it is asked", lambda: job.runs() > 0, 20)
            self.check_trouble(job, "echo $(wc -l < runs); echo down >&2; exit 7",
                               "ended with exit code 7: down")
            self.check_trouble(job, "kill -9 $PPID", "was killed by signal 9")
            self.check_trouble(job, "wc -l < runs", "printed something else than a JSON object")
            self.check_trouble(job, ":", "printed nothing")
            self.check_trouble(job, "echo '{\"size\":2}'", "printed no target")
            self.check_trouble(job, "echo '{\"target\":1'$(wc -l < runs)'0}'",
                               "asked for a size that cannot be had")
            self.check_trouble(job, "yes", "printed more than 1 MiB")
            self.check_trouble(job, "echo '{\"target\":2}'; sleep 1000 | sleep 1001",
                               "took longer than 1.0 s (--policy-timeout)")
            until("none is left of those", lambda: len(job.named("sleep")) <= 2, 20)
            job.rule("exec <&-; sleep 1002 & echo '{\"target\":3,\"reason\":\"all\"}'")
            self.assertEqual(job.world(3)["reason"], "growing from 1 to 3: all")
            self.assertIn('"size":1,', read(job.path("question")))
            self.stop(job)

    def test_nothing_is_left_when_we_are_killed(self) -> None:
        with Advised(PROGRAM) as job:
            job.rule("sleep 1000 | sleep 1001")
            left = until("it hangs", lambda: len(job.named("sleep")) == 2 and job.of_program(), 30)
            kill(job.process.pid)
            until("nothing of it lives", lambda: not any(map(lives, left)), 5)
            job.wait(5)


if __name__ == "__main__":
    unittest.main()
