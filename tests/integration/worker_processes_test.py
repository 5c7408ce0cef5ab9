#!/usr/bin/env python3
"""What the processes of a worker do beside training: they fork, run out of threads, fail, are followed
by others. Nothing untrained ends with 0, nothing hangs, and no other worker is hurt."""
import os
import sys
import unittest

from job import BIN, Job

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, "../../worker/python")
ENVIRONMENT = {"PATH": f"{BIN}:{os.environ['PATH']}", "PYTHONPATH": PACKAGE}
SANITIZED = "ELASTICRUN_SANITIZE" in os.environ  # the library needs its runtime in the program
TWO = ["-H", "localhost:2", "--max-batch", "8", "--label", "none"]

# train(compute): a training of 20 steps on two workers, with compute called in each step.
PROGRAM = """
import ctypes, os, signal, sys, time
from array import array
import elasticrun

class Attribute(ctypes.Union):
    _fields_ = [("bytes", ctypes.c_char * 56), ("long", ctypes.c_long)]

def forbid_threads():
    # As pids.max of a container does: no address space has room for such a stack.
    attribute, libc = Attribute(), ctypes.CDLL(None)
    assert libc.pthread_attr_init(ctypes.byref(attribute)) == 0
    assert libc.pthread_attr_setstacksize(ctypes.byref(attribute), ctypes.c_size_t(1 << 60)) == 0
    assert libc.pthread_setattr_default_np(ctypes.byref(attribute)) == 0

def train(compute=lambda step: None, on_epoch=None, **options):
    weights, gradients, others = array("d", [0]), array("d", [0]), array("d", [0])
    with elasticrun.Job() as job:
        job.state("weights", weights).gradients("gradients", gradients).gradients("others", others)
        if on_epoch:
            job.on_epoch(on_epoch)
        def computed(step):
            gradients[0] = 1
            compute(step)
        def applied(step):
            weights[0] += gradients[0]
        job.train(computed, applied, samples=160, batch=4, **options)
    print("trained", weights[0], flush=True)

def die_when_known():
    # Before the job knows that its first world has formed, a death ends the job.
    while "world_formed" not in open("events.json").read():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)

def forked(child):
    pid = os.fork()
    if pid == 0:
        child()
        return
    print("child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


def python(body: str) -> list[str]:
    return [sys.executable, "-c", PROGRAM + body]


def shell(command: str, *bodies: str) -> list[str]:
    """A command in which $0, $1 ... are programs in Python."""
    return ["sh", "-c", command.replace("RUN", sys.executable + " -c"),
            *(PROGRAM + body for body in bodies)]


@unittest.skipIf(SANITIZED, "the interpreter is not built with the sanitizer")
class Processes(unittest.TestCase):
    def job(self, options: list[str], program: list[str]) -> Job:
        return Job(options, program, env=ENVIRONMENT)

    def test_forked_children_leave_the_world_alone(self) -> None:
        cases = {"sys.exit(7)": 7, "sys.exit('words')": 1, "None": 0, "1 / 0": 1}
        for child, code in cases.items():
            with self.subTest(child), self.job(TWO, python(
                    f"train(lambda step: forked(lambda: {child}))")) as job:
                self.assertEqual(job.wait(), 0, job.err())
                self.assertEqual(job.out().count("trained 20.0"), 2, job.out())
                self.assertEqual(job.out().count(f"child {code}\n"), 40, job.out())
                self.assertEqual(len(job.find("world_formed")), 1, job.err())

    def test_a_child_that_fails_at_the_end_of_an_epoch(self) -> None:
        with self.job(TWO, python("train(on_epoch=lambda done: forked(lambda: 1 / 0))")) as job:
            self.assertEqual(job.wait(), 0, job.err())
            self.assertIn("ZeroDivisionError", job.err())
            self.assertEqual(job.out().count("child 1\n"), 2, job.out())
            self.assertEqual(len(job.find("world_formed")), 1, job.err())

    def test_a_save_without_a_thread_fails_and_training_goes_on(self) -> None:
        body = """
def compute(step):
    if step.number == 2:
        forbid_threads()
    time.sleep(0.02)  # some saves are due before the end
train(compute)
"""
        with self.job([*TWO, "--save", "saves", "--save-every", "50ms"], python(body)) as job:
            self.assertEqual(job.wait(), 0, job.err())
            self.assertIn("no thread to write it: Resource temporarily unavailable", job.err())
            self.assertEqual(job.out().count("trained 20.0"), 2, job.out())
            self.assertEqual(len(job.find("world_formed")), 1, job.err())

    def test_a_step_without_a_thread_fails_in_the_words_of_the_system(self) -> None:
        body = """
def compute(step):
    forbid_threads()
    step.ready("others")
train(compute, bucket_bytes=8)
"""
        with self.job(TWO, python(body)) as job:
            self.assertEqual(job.wait(), 1, job.err())
            self.assertIn("no thread for reductions", job.err())
            self.assertNotIn("left", job.err())

    def test_a_worker_has_one_job(self) -> None:
        again = 'RUN "$0" && RUN "$0"'
        for program in (shell(again, "train()"), python("train()\ntrain()")):
            with self.subTest(program[0]), self.job(TWO, program) as job:
                self.assertEqual(job.wait(), 1, job.err())
                self.assertEqual(job.out().count("trained 20.0"), 2, job.out())
                self.assertIn("one job per worker: this worker has trained before", job.err())

    def test_a_job_that_has_not_trained_is_none(self) -> None:
        with self.job(TWO, shell('RUN "$0" && RUN "$1"', "elasticrun.Job().close()",
                                 "train()")) as job:
            self.assertEqual(job.wait(), 0, job.err())
            self.assertEqual(job.out().count("trained 20.0"), 2, job.out())

    def test_a_command_that_repeats_what_fails_is_replaced(self) -> None:
        body = """
def compute(step):
    if step.number == 5 and os.environ["ELASTICRUN_WORKER"] == "1":
        die_when_known()
train(compute)
"""
        with self.job(TWO, shell('RUN "$0" || RUN "$0"', body)) as job:
            self.assertEqual(job.wait(), 0, job.err())
            self.assertIn("one job per worker", job.err())
            self.assertEqual(job.out().count("trained 20.0"), 2, job.out())

    def test_a_command_that_repeats_what_fails_alone(self) -> None:
        body = """
def compute(step):
    if step.number == 5:
        die_when_known()
train(compute)
"""
        with self.job(["-H", "localhost:1"], shell('RUN "$0" || RUN "$0"', body)) as job:
            self.assertEqual(job.wait(), 1, job.err())
            self.assertIn("state lost", job.err())

    def test_a_command_that_outlives_its_training_is_replaced(self) -> None:
        body = """
def compute(step):
    if step.number == 5:
        die_when_known()
train(compute)
"""
        with self.job(["-H", "localhost:1", "--lease", "2s", "--agent-timeout", "1s"],
                      shell('RUN "$0" || exec sleep 1000', body)) as job:
            self.assertEqual(job.wait(), 122, job.err())
            self.assertIn("its library sent nothing", job.err())


if __name__ == "__main__":
    unittest.main()
