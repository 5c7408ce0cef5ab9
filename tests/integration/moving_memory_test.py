#!/usr/bin/env python3
"""PyTorch: a program that gives the tensors of its model other memory trains as in plain torch, alone, when
a worker dies, and when it goes on from a save; or it ends with an error that names the tensor."""
import os
import signal
import tempfile
import unittest

from job import Job, kill, lives, until
from with_torch import ENVIRONMENT, PROGRAMS, PYTHON, TorchTest, alone

PROGRAM = os.path.join(PROGRAMS, "moving_memory.py")
REFUSED = """
import os, sys, traceback
sys.path.insert(0, sys.argv[1])
import torch, moving_refused
torch.optim.SGD(moving_refused.line().parameters(), 1)  # the first one takes seconds
for name, (make, action, says) in moving_refused.REFUSED.items():
    child = os.fork()
    if child == 0:
        line = "nothing"
        try:
            moving_refused.train(make, action)
        except BaseException as error:
            line = traceback.format_exception_only(type(error), error)[-1].strip()
        print(name, says, line, sep="|", flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def rows(out: str, word: str) -> dict[str, list[list[float]]]:
    """By name: the numbers of the lines that begin with that word."""
    found: dict[str, list[list[float]]] = {}
    for first, *words in map(str.split, out.splitlines()):
        if first == word:
            found.setdefault(words[0], []).append([float(number) for number in words[1:]])
    return found


class MovingMemory(TorchTest):
    def setUp(self) -> None:
        self.options = ["-H", "localhost:2", "--np", "1:2", "--policy", "fixed", "--shares", "equal",
                        "--max-batch", "10", "--label", "none", "--verify-state", "2"]

    def equal(self, out: str, expected: dict[str, list[list[float]]], least: int) -> None:
        found = rows(out, "final")
        self.assertGreater(len(expected), 30)
        for name, (numbers, *_) in expected.items():
            with self.subTest(name):
                ends = found.get(name, [])
                self.assertGreaterEqual(len(ends), least)
                for end in ends:
                    self.assertEqual(len(end), len(numbers))
                    for one, other in zip(end, numbers):
                        self.assertAlmostEqual(one, other, delta=1e-6)

    @classmethod
    def setUpClass(cls) -> None:
        cls.calm = alone(PROGRAM)
        cls.expected = rows(cls.calm.stdout, "plain")

    def test_alone(self) -> None:
        self.assertEqual(self.calm.returncode, 0, self.calm.stderr)
        self.equal(self.calm.stdout, self.expected, 1)

    def test_killed(self) -> None:
        with tempfile.NamedTemporaryFile() as slow, Job(
                self.options, [PYTHON, PROGRAM], env=ENVIRONMENT | {"SLOW": slow.name}) as job:
            job.wait_for("world_formed", size=2)
            job.wait_for_step()
            after = job.now()
            kill(next(pid for pid in job.workers().values() if lives(pid)))
            job.wait_for("world_formed", after, size=2)  # with one that has come instead
            slow.close()
            self.assertEqual(job.wait(120), 0, job.err())
            self.assertEqual(job.find("diverged"), [])
            self.equal(job.out(), self.expected, 2)

    def test_saved(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            hold = os.path.join(folder, "hold")
            with open(hold, "w", encoding="utf-8"):
                pass
            for code in (75, 0):
                with Job([*self.options, "--save", os.path.join(folder, "state")], [PYTHON, PROGRAM],
                         env=ENVIRONMENT | {"TOY_SLEEP": "0.1" if code else "0", "HOLD": hold}) as job:
                    if code:
                        job.wait_for("sample", step=lambda step: step > 9)  # in the third epoch
                        kill(job.process.pid, signal.SIGTERM)
                        until("it stops", lambda job=job: "SIGTERM" in job.err(), 10)
                        os.remove(hold)
                    self.assertEqual(job.wait(60), code, job.err())
                    out = job.out()
        self.equal(out, self.expected, 2)

    def test_refused(self) -> None:
        done = alone("-c", REFUSED, PROGRAMS)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line.split("|") for line in done.stdout.splitlines()]
        self.assertGreater(len(lines), 20)
        for name, says, line in lines:
            with self.subTest(name):
                self.assertIn("elasticrun.Misuse: ", line)
                self.assertIn(says, line)


if __name__ == "__main__":
    unittest.main()
