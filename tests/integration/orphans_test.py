#!/usr/bin/env python3
"""Nothing is left behind, however a job ends.

Each way to end it (a signal to the controller, a kill of the controller, of the agent, of its
watchdog, of all workers at once) is tried on each kind of program: one with the library, one that
ignores the signals that it can, one whose processes moved away (setsid, double fork). Afterwards no
process, socket, or temporary file may be left, and exit code and last line are as promised.
"""
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable
from dataclasses import dataclass

from job import BIN, FASHION, SCATTERED, Job, fields_of, kill, lives, read, until

GRACE = 1.0
PATIENCE = 10.0  # seconds beyond the grace time: tests share two cores with others
OPTIONS = ["-H", "localhost:2", "--grace", "1s"]

STUBBORN = ["sh", "-c", "trap '' INT TERM HUP; while :; do sleep 100; done"]
TRAINING = [FASHION, "--samples", "3200", "--epochs", "100000", "--device-ms", "1"]
TRAP = "trap '{}' {}; echo up; while :; do sleep 0.05; done"
PROGRAMS = {"training": (TRAINING, 2), "stubborn": (STUBBORN, 4), "scattered": (SCATTERED, 10)}


def controller(job: Job) -> list[int]:
    return [job.process.pid]


def workers(job: Job) -> list[int]:
    return list(job.workers().values())


@dataclass
class Way:
    victims: Callable[[Job], list[int]]
    number: int
    codes: tuple[int, ...]
    words: str  # of the last line; a regular expression


WAYS = {
    "interrupt": Way(controller, signal.SIGINT, (130,), "stopped by SIGINT"),
    "terminate": Way(controller, signal.SIGTERM, (143,), "stopped by SIGTERM"),
    "hang up": Way(controller, signal.SIGHUP, (143,), "stopped by SIGHUP"),
    "kill controller": Way(controller, signal.SIGKILL, (137,), "^"),
    "kill agent": Way(Job.agents, signal.SIGKILL, (122,), "host localhost"),
    "kill watchdog": Way(Job.watchdogs, signal.SIGKILL, (122,), "host localhost"),
    "terminate agent": Way(Job.agents, signal.SIGTERM, (122,), "host localhost"),
    "kill all workers": Way(workers, signal.SIGKILL, (122, 137), "SIGKILL|state lost"),
}


class Ends(unittest.TestCase):
    def begin(self, name: str) -> Job:
        program, processes = PROGRAMS[name]
        job = Job(OPTIONS, program)
        with_library = program is TRAINING
        if with_library:
            job.wait_for("world_formed")
        else:
            # Watchdog, agent, controller, and a shim for each worker.
            until("all processes", lambda: len(job.pids()) >= processes + 5, 20)
        return job

    def run_case(self, program: str, way: Way) -> None:
        with self.begin(program) as job:
            ports = job.listening()
            self.assertTrue(ports, "the controller listens")
            victims = way.victims(job)
            self.assertTrue(victims)
            for pid in victims:  # stopped first, so that all go at once
                if len(victims) > 1:
                    kill(pid, signal.SIGSTOP)
            for pid in victims:
                kill(pid, way.number)
            code = job.wait(GRACE + PATIENCE)
            self.assertIn(code, way.codes, job.err())
            self.assertRegex(job.last_line(), way.words)
            if code == 137 and way.victims is controller:
                job.gone(GRACE + PATIENCE, ports)
            self.assertEqual(job.leftovers(ports), [])
            if code != 137 or way.victims is not controller:
                self.assertEqual(job.find("job_finished")[0]["exit_code"], code)


def add_cases() -> None:
    """Makes one test per case, so that each can be run alone."""
    def make(program: str, way: Way) -> Callable[[Ends], None]:
        return lambda self: self.run_case(program, way)
    for program in PROGRAMS:
        for name, way in WAYS.items():
            label = f"test_{program}_{name}".replace(" ", "_")
            setattr(Ends, label, make(program, way))


class Unstarted(unittest.TestCase):
    """An agent that has not yet been sent the line with which it starts."""

    def check(self, end: Callable[[subprocess.Popen[bytes]], object]) -> None:
        with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
                [os.path.join(BIN, "elasticrun-agent")], stdin=subprocess.PIPE,
                stderr=subprocess.DEVNULL, env=os.environ | {"TMPDIR": folder}) as watchdog:
            until("its folder is there", lambda: os.listdir(folder), 20)
            until("it is guarded", lambda: read(f"/proc/{watchdog.pid}/comm") == "er-watchdog\n", 20)
            end(watchdog)
            until("nothing is left", lambda: not os.listdir(folder), 20)

    def test_its_watchdog_is_killed(self) -> None:
        self.check(lambda watchdog: watchdog.kill())

    def test_the_agent_is_killed(self) -> None:
        self.check(lambda watchdog: kill(*map(int, read(
            f"/proc/{watchdog.pid}/task/{watchdog.pid}/children").split())))

    def test_no_line_comes(self) -> None:
        self.check(lambda watchdog: watchdog.stdin and watchdog.stdin.close())


class Signals(unittest.TestCase):
    def test_a_gentle_end_lets_workers_finish(self) -> None:
        program = ["sh", "-c", TRAP.format("echo saved; exit 0", "TERM")]
        with Job(["-H", "localhost:2", "--grace", "20s"], program) as job:
            until("both are up", lambda: job.out().count("up") == 2, 20)
            kill(job.process.pid, signal.SIGTERM)
            self.assertEqual(job.wait(15), 143, job.err())
            self.assertEqual(job.out().count("saved"), 2)
            self.assertEqual(job.leftovers(), [])

    def test_a_later_signal_ends_at_once(self) -> None:
        with Job(["-H", "localhost:2", "--grace", "60s"], STUBBORN) as job:
            until("the workers are up", lambda: len(job.pids()) >= 9, 20)
            until("it stops at once", lambda: kill(job.process.pid, signal.SIGINT)
                  or "SIGINT again: stopping at once" in job.err(), 10)
            self.assertEqual(job.wait(PATIENCE), 130, job.err())
            self.assertEqual(job.leftovers(), [])

    def test_nohup(self) -> None:
        with Job(["--grace", "1s"], ["sh", "-c", "echo up; read x < gate; echo end"],
                 start=["sh", "-c", "mkfifo gate; trap '' HUP; exec \"$@\"", "sh"]) as job:
            until("it is up", lambda: "up" in job.out(), 20)
            kill(job.process.pid, signal.SIGHUP)
            with open(job.path("gate"), "w", encoding="ascii") as gate:
                gate.write("go on\n")
            self.assertEqual(job.wait(20), 0, job.err())
            self.assertIn("end", job.out())

    def test_user_signals_reach_workers(self) -> None:
        program = ["sh", "-c", TRAP.format("echo got; exit 0", "USR1")]
        with Job(["-H", "localhost:2"], program) as job:
            until("both are up", lambda: job.out().count("up") == 2, 20)
            kill(job.process.pid, signal.SIGUSR1)
            self.assertEqual(job.wait(20), 0, job.err())
            self.assertEqual(job.out().count("got"), 2)

    def test_a_frozen_controller_does_not_keep_workers(self) -> None:
        options = ["-H", "localhost:2", "--grace", "1s", "--heartbeat", "200ms", "--agent-timeout", "1s",
                   "--lease", "2s", "--standstill-timeout", "1s"]
        with Job(options, SCATTERED) as job:
            until("all processes", lambda: len(job.pids()) >= 15, 20)
            kill(job.process.pid, signal.SIGSTOP)
            until("nobody but the controller", lambda: job.pids() == [job.process.pid],
                  2 + PATIENCE)
            kill(job.process.pid, signal.SIGCONT)
            self.assertEqual(job.wait(PATIENCE), 122, job.err())
            self.assertEqual(job.leftovers(), [])

    def test_a_frozen_agent_is_given_up(self) -> None:
        options = ["-H", "localhost:2", "--grace", "1s", "--heartbeat", "200ms", "--agent-timeout", "1s",
                   "--lease", "2s", "--standstill-timeout", "1s"]
        with Job(options, SCATTERED) as job:
            until("all processes", lambda: len(job.pids()) >= 15, 20)
            for pid in job.agents():
                kill(pid, signal.SIGSTOP)
            self.assertEqual(job.wait(2 + PATIENCE), 122, job.err())
            job.gone(PATIENCE)

    def test_a_terminal_that_goes_away(self) -> None:
        """The reader of the output is gone: the job must still end when it is told to."""
        program = ["sh", "-c", "while :; do echo line || exit 9; sleep 0.05; done"]
        with Job(["--grace", "1s"], program, stdout=subprocess.PIPE) as job:
            job.process.stdout.readline()
            job.process.stdout.close()
            kill(job.process.pid, signal.SIGTERM)
            self.assertIn(job.wait(GRACE + PATIENCE), (143, 9), job.err())
            self.assertEqual(job.leftovers(), [])

    def test_an_early_interrupt(self) -> None:
        """A signal at any moment of the start ends the job, and nothing is left."""
        for percent in range(0, 200, 10):
            with Job(["-H", "localhost:2", "--grace", "1s"], ["sleep", "100"]) as job:
                end = time.monotonic() + percent / 100 * 0.03
                until("a moment", lambda e=end: time.monotonic() >= e, 5)
                kill(job.process.pid, signal.SIGTERM)
                self.assertIn(job.wait(GRACE + PATIENCE), (143,), job.err())
                job.gone(1)


add_cases()
if __name__ == "__main__":
    unittest.main()
