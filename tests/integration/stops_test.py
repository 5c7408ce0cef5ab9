#!/usr/bin/env python3
"""Each way in which a terminal, a service manager or a batch system ends a job with --save: the state
is saved, whichever processes get the signal, and nothing is left.

    stops_test.py Processes                        on this machine
    stops_test.py InSlurm.test_the_steps_get_it    in one job of a real Slurm
    stops_test.py                                  on this machine and in many jobs
"""
import itertools
import os
import signal
import sys
import unittest
from typing import Any

import slurm_test
from bed import Bed
from bed.slurm import Slurm, missing, nodes
from job import SANITIZED, Job, kill, until
from python_test import ENVIRONMENT
from resets_test import pass_by
from save_test import Folder
from slurm_test import ENDLESS
from training import Training

ENDLESS_PYTHON = """
import elasticrun, time
from array import array
job = elasticrun.Job()
weights, gradients = array("d", [0]), array("d", [0])
job.state("weights", weights)
job.gradients("gradients", gradients)
for step in job.steps(samples=10_000_000, batch=4):
    time.sleep(0.01)
    if not step.epochs_done and step.last_piece and job.reduce():
        weights[0] += gradients[0]
        job.commit()
"""


class Processes(Folder):
    """Signals to some or all processes of a job."""

    def endless(self, **more: Any) -> Training:
        job = self.training(2, device_ms=2, epochs=1000, **more)
        self.addCleanup(job.__exit__, None, None, None)
        self.steps(job, 2)
        return job

    def saves(self, job: Job, why: str) -> None:
        self.assertEqual(job.wait(60), 75, job.err())
        self.assertTrue(job.find("saved")[-1]["stop"])
        self.assertIn(f"stopped by {why}", job.last_line())
        self.assertNotIn("lost", job.err())
        job.gone(30)

    def test_all_get_it(self) -> None:
        """As systemd with KillMode=control-group does, and kill -1 in a container."""
        for number in (signal.SIGTERM, signal.SIGINT):
            for controller_is in ("first", "last"):
                with self.subTest(number.name, controller_is=controller_is):
                    self.setUp()
                    job = self.endless()
                    pids = job.pids()
                    pids.remove(job.process.pid)
                    pids.insert(0 if controller_is == "first" else len(pids), job.process.pid)
                    for pid in pids:
                        kill(pid, number)
                    self.saves(job, number.name)

    @unittest.skipIf(SANITIZED, "the interpreter is not built with the sanitizer")
    def test_pythons_own_handler_does_not_end_it(self) -> None:
        """INT would raise KeyboardInterrupt."""
        with Job(["--save", self.state, "-H", "localhost:2"], [sys.executable, "-c", ENDLESS_PYTHON],
                 env=ENVIRONMENT) as job:
            job.wait_for("sample", step=lambda step: step > 2)
            for pid in sorted(job.pids(), reverse=True):
                kill(pid, signal.SIGINT)
            self.saves(job, "SIGINT")

    def test_the_terminals_process_group_gets_it(self) -> None:
        job = self.endless(start_new_session=True)
        os.killpg(job.process.pid, signal.SIGINT)
        self.saves(job, "SIGINT")

    def test_process_1_of_a_container(self) -> None:
        """The first process alone, as docker stop does, and all of them."""
        unshare = ["unshare", "--pid", "--fork", "--mount-proc"]
        for who in ("first", "all"):
            with self.subTest(who):
                self.setUp()
                job = self.endless(start=unshare)
                (first,) = job.named("elasticrun")
                for pid in job.pids() if who == "all" else [first]:
                    if pid != job.process.pid:
                        kill(pid, signal.SIGTERM)
                self.saves(job, "SIGTERM")

    def test_what_is_for_the_program_ends_nothing(self) -> None:
        job = self.endless()
        for pid in job.pids():
            kill(pid, signal.SIGUSR1)
        self.steps(job, job.newest_step() + 5)
        self.assertEqual(job.find("worker_exited"), [])
        self.stop(job)

    def test_the_time_of_the_stop_is_over(self) -> None:
        """KILL follows, which leaves nothing although workers have ignored the first signal."""
        job = self.endless()
        for pid in job.pids():
            kill(pid, signal.SIGTERM)
        kill(job.process.pid)
        job.process.wait()
        job.gone(30)

    def test_an_agent_alone(self) -> None:
        """Its host ends, and with it this job, which has no other."""
        job = self.endless()
        for pid in job.agents():
            kill(pid, signal.SIGTERM)
        self.assertEqual(job.wait(60), 122, job.err())
        job.gone(30)


class InSlurm(slurm_test.Jobs):
    """Whatever Slurm signals: the script, the steps with the agents and workers, or all."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.bed = Bed(nodes(3, tmp="own"))  # so srun starts several agents at once
        cls.addClassCleanup(cls.bed.close)
        cls.names = [host.name for host in cls.bed.hosts]
        cls.slurm = Slurm(cls.bed, grace=20, kill_wait=20)
        cls.addClassCleanup(cls.slurm.close)

    def endless(self, *batch: str) -> int:
        job = self.submit(f"--save {self.id()}.{self.submitted}", ENDLESS, "-N3", *batch)
        self.world(job, size=3)
        until("steps", lambda: self.events("sample"), 60)
        return job

    def saves(self, job: int) -> int:
        """Waits for the save with which the job stops; returns its step."""
        saved = until("the state is saved", lambda: [
            event for event in self.events("saved") if event["stop"]], 40)[-1]
        self.assertNotIn("lost", self.slurm.output(job))
        return int(saved["step"])

    def stopped(self, *how: str) -> None:
        job = self.endless("--requeue")
        self.slurm.run("scancel", *how, str(job))
        self.saves(job)
        if how[-1:] == ("--signal=USR1",):
            self.slurm.wait_output(job, f"job {job} is requeued")
            self.slurm.run("scancel", str(job))
        self.slurm.wait(job)
        if how[-1:] != ("--signal=USR1",):
            self.assertNotIn("requeued", self.slurm.output(job))
        self.nothing_left()

    def test_the_steps_get_it(self) -> None:
        self.stopped("--signal=TERM")

    def test_cancelled(self) -> None:
        """Each signal to the steps, to the script, and to the script with its children. Without a
        signal, scancel ends the job."""
        ways = [[], ["--full"]] + [[*to, f"--signal={name}"] for to, name in itertools.product(
            ([], ["--batch"], ["--full"]), ("TERM", "INT", "USR1"))]
        for how in ways:
            with self.subTest(how=how):
                self.stopped(*how)

    def test_usr2_ends_nothing(self) -> None:
        """In the steps it is a notice. From the script it reaches the workers, which ignore it."""
        for how in ([], ["--batch"], ["--full"]):
            with self.subTest(how=how):
                job = self.endless()
                self.slurm.run("scancel", *how, "--signal=USR2", str(job))
                if how:
                    step = self.events("sample")[-1]["step"]
                    until("steps", lambda: self.events("sample")[-1]["step"] > step + 20, 60)
                else:
                    self.world(job, size=1, hosts=["node1"], planned=True)
                self.assertEqual(sorted(event["host"] for event in self.events("host_leaves")),
                                 [] if how else ["node2", "node3"])
                self.slurm.run("scancel", str(job))
                self.saves(job)
                self.slurm.wait(job)
                self.nothing_left()

    def test_requeued_by_the_admin(self) -> None:
        job = self.endless("--requeue")
        self.slurm.run("scontrol", "requeue", str(job))
        step = self.saves(job)
        self.slurm.wait_output(job, f": step {step}")
        self.assertIn("going on from", self.slurm.output(job))

    def test_suspended(self) -> None:
        """For longer than the lease: training resumes from the memory of the same processes."""
        job = self.endless("--requeue")
        self.slurm.run("scontrol", "suspend", str(job))
        pass_by(15)
        step = self.events("sample")[-1]["step"]
        self.slurm.run("scontrol", "resume", str(job))
        self.slurm.wait_output(job, "training has paused meanwhile")
        until("steps", lambda: self.events("sample")[-1]["step"] > step, 60)
        self.assertEqual(len(self.events("worker_started")), 3)
        self.assertEqual(self.events("host_down"), [])
        self.slurm.run("scancel", str(job))
        self.saves(job)
        self.slurm.wait(job)
        self.nothing_left()

    def test_preempted(self) -> None:
        """Without preempt_send_user_signal the steps get TERM, and the script only at the end."""
        job = self.endless("--requeue")
        other = self.slurm.sbatch("sleep 3", "-N3", "-p", "high", "--exclusive")
        self.addCleanup(self.cancel, other)
        step = self.saves(job)
        self.slurm.wait_output(job, f"job {job} is requeued")
        self.assertEqual(len(self.events("world_formed")), 1)  # none was grown meanwhile
        self.assertEqual(self.slurm.wait(other), "COMPLETED")
        self.slurm.wait_output(job, f": step {step}")
        self.assertIn("going on from", self.slurm.output(job))


def load_tests(loader: unittest.TestLoader, tests: unittest.TestSuite,
               pattern: str | None) -> unittest.TestSuite:
    """Those of slurm_test.Jobs are not run again here."""
    del tests, pattern
    suite = loader.loadTestsFromTestCase(Processes)
    suite.addTests(InSlurm(name) for name in vars(InSlurm) if name.startswith("test_"))
    return suite


if __name__ == "__main__":
    reason = "no sanitizer's memory fits" if SANITIZED else missing()
    if reason and sys.argv[1:] != ["Processes"]:
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
