#!/usr/bin/env python3
"""Any file or pipe that the job uses may stand still: training goes on past several leases, a
signal ends the job in time, and losses are reported.

A pipe stands still when its reader sleeps, a folder when its file server does not answer; the
latter is a file system of this test (stalling.py).
"""
import fcntl
import json
import os
import re
import select
import signal
import tempfile
import time
import unittest

import job as jobs
from job import FASHION, SANITIZED, Job, kill, read, until
from sshd import Sshd
from stalling import StallingFolder
from training import Training

# Late heartbeats are noticed soon, and each sample is an event: there are hundreds a second.
LEASE = 9 if SANITIZED else 3  # seconds
QUICK = ["--heartbeat", "200ms", "--agent-timeout", f"{LEASE - 1}s", "--lease", f"{LEASE}s",
         "--grace", "2s", "--sample-interval", "1ms"]
IN_TIME = 2 + (12 if SANITIZED else 4)  # seconds: grace time, and the time for writers at the end
NO_FUSE = "a file system of one's own needs root and /dev/fuse"
HAS_FUSE = os.geteuid() == 0 and os.path.exists("/dev/fuse")


class Watched(Training):
    """Two workers with short steps and epochs, watched without events."""

    def __init__(self, options: list[str], where: tuple[str, str] = ("--hosts", "hosts")) -> None:
        super().__init__("localhost slots=2\\n", epochs=1_000_000, samples=256, device_ms=0.01,
                         where=where, options=[*QUICK, *options])

    def trainers(self) -> list[int]:
        return sorted(self.named("fashion"))

    def step(self) -> int:
        return max((jobs.steps_of(self.record, pid) for pid in self.trainers()), default=-1)

    def trains_past_leases(self, case: unittest.TestCase) -> None:
        """The same workers go on training, and their output is shown."""
        trainers = until("two workers that train", lambda: self.step() > 0 and self.trainers(), 60)
        lines = len(self.out())
        end = time.monotonic() + 2 * LEASE
        until("two leases", lambda: time.monotonic() > end, 3 * LEASE)
        step = self.step()
        until("a step", lambda: self.step() > step, 10)
        until("a line", lambda: len(self.out()) > lines, 10)
        case.assertEqual(self.trainers(), trainers, self.err())

    def ends_in_time(self, case: unittest.TestCase, number: int) -> None:
        kill(self.process.pid, number)
        case.assertEqual(self.wait(IN_TIME), 128 + number, self.err())
        case.assertEqual(self.leftovers(), [])


class Pipe(unittest.TestCase):
    """An --events pipe whose reader sleeps."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="er-pipe-")
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "events")
        os.mkfifo(self.path)
        self.pipe = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)  # so that the pipe has no end
        self.addCleanup(os.close, self.pipe)
        # Filling the pipe's default size takes minutes under a sanitizer.
        fcntl.fcntl(self.pipe, fcntl.F_SETPIPE_SZ, 16 << 10)
        self.events = b""

    def is_full(self) -> bool:
        return not select.select([], [self.pipe], [], 0)[1]

    def take(self) -> int:
        """Takes what is in the pipe; returns how much that was."""
        try:
            some = os.read(self.pipe, 1 << 20)
        except BlockingIOError:
            return 0
        self.events += some
        return len(some)

    def check_order(self) -> list[dict]:
        """Each line is one whole event, and the events are in order."""
        events = [json.loads(line) for line in self.events.splitlines()]
        self.assertEqual(events, sorted(events, key=lambda event: event["time"]))
        steps = [event["step"] for event in events if event["event"] == "sample"]
        self.assertEqual(steps, sorted(steps))
        self.assertGreater(len(steps), 20)
        return events

    def test_one_that_never_wakes(self) -> None:
        with Watched(["--events", self.path, "--log-dir", "logs"]) as job:
            until("a full pipe", self.is_full, 60)
            log = job.path("logs/localhost.0.worker1.out")
            before = len(read(log))
            job.trains_past_leases(self)
            until("a line in the log", lambda: len(read(log)) > before, 10)
            job.ends_in_time(self, signal.SIGINT)
            self.assertRegex(job.err(), f"the event file {self.path}: [0-9]+ events could not be")
        while self.take():
            pass
        self.events = self.events[:self.events.rfind(b"\n")]  # drop the incomplete last line
        self.check_order()

    def test_one_that_wakes_gets_all(self) -> None:
        with Watched(["--events", self.path]) as job:
            until("a full pipe", self.is_full, 60)
            job.trains_past_leases(self)
            for _ in range(20):  # interrupted writes must be continued
                kill(job.process.pid, signal.SIGUSR1)
            kill(job.process.pid, signal.SIGTERM)
            until("the end", lambda: self.take() == 0 and b'"job_finished"' in self.events, 30)
            self.assertEqual(job.wait(30), 143, job.err())
            self.assertNotIn("the event file", job.err())
            self.assertEqual(job.leftovers(), [])
        events = self.check_order()
        self.assertEqual(events[0]["event"], "job_started")
        self.assertEqual(events[-1]["event"], "job_finished")


@unittest.skipUnless(HAS_FUSE, NO_FUSE)
class FileServer(unittest.TestCase):
    """A file server that does not answer for a while."""

    def test_hosts_and_logs(self) -> None:
        with StallingFolder() as folder:
            folder.put("hosts", "localhost slots=2\n")
            log = "localhost.0.worker1.out"
            options = ["--log-dir", folder.path, "--label", "none",
                       "--join-key", f"{folder.path}/key"]
            with Watched(options, where=("--hosts", f"{folder.path}/hosts")) as job:
                until("a line in the log", lambda: folder.text(log), 60)
                folder.stall()
                job.trains_past_leases(self)
                silent = f"the host file {folder.path}/hosts has not answered for 10 s; " \
                    "the hosts stay as they are"
                until("it is said", lambda: silent in job.err(), 20)
                folder.put("hosts", "localhost slots=3\n")
                folder.go_on()
                job.world(3)
                self.assertEqual(job.err().count(silent), 1)
                self.assertEqual(job.err().count("answers again"), 1)
                lines = job.out()
                until("all lines", lambda: len(folder.text(log)) >= len(lines), 10)
                self.assertTrue(folder.text(log).startswith(lines))
                folder.stall()
                until("somebody hangs", folder.waiting, 10)
                lines = job.out()
                until("a line", lambda: job.out() != lines, 10)
                job.ends_in_time(self, signal.SIGTERM)
                self.assertRegex(job.err(), f"the log folder {folder.path}: [0-9]+ lines could not")
                self.assertIn(f"--join-key {folder.path}/key: its file system does not answer",
                              job.err())

    def test_what_ssh_reads(self) -> None:
        """A host is added while the files that are needed to reach it do not answer."""
        for with_config in (False, True):
            with self.subTest(with_config=with_config), StallingFolder() as folder, \
                    Sshd() as sshd:
                for name in ("known_hosts", "id"):
                    folder.put(name, read(sshd.path(name)))
                config = sshd.config(UserKnownHostsFile=f"{folder.path}/known_hosts",
                                     IdentityFile=f"{folder.path}/id")
                if with_config:
                    folder.put("config", read(config))
                    config = f"{folder.path}/config"
                with Watched(["--ssh-config", config]) as job:
                    job.world(2)
                    folder.stall()
                    job.set_hosts("localhost slots=2\nfar slots=1\n")
                    until("somebody hangs", folder.waiting, 20)
                    job.trains_past_leases(self)
                    folder.go_on()
                    job.world(3)
                    job.ends_in_time(self, signal.SIGTERM)

    def test_what_a_log_loses_is_counted(self) -> None:
        count = 6_000_000  # more than is kept for a log
        program = ["sh", "-c", f"seq {count}; until [ -e go ]; do sleep 0.1; done; seq 1000"]
        with StallingFolder() as folder:
            options = ["--log-dir", folder.path, "--label", "none"]
            with Job(options, program) as job:
                until("the log", lambda: folder.files, 20)
                folder.stall()
                stops = f"the log folder {folder.path} takes no more: lines are lost until it does"
                until("it is said", lambda: stops in job.err(), 60)
                until("all is shown", lambda: job.out().endswith(f"\n{count}\n"), 60)
                folder.go_on()
                log = "localhost.0.worker1.out"
                until("what was kept is written", lambda: folder.is_idle(1.0), 30)
                open(job.path("go"), "w").close()
                self.assertEqual(job.wait(30), 0, job.err())
                said = re.findall(r"takes lines again; (\d+) were lost", job.err())
                self.assertEqual(len(said), 1, job.err())
                self.assertEqual(job.err().count("takes no more"), 1)
                kept = list(map(int, folder.text(log).splitlines()))
                self.assertEqual(len(kept) + int(said[0]), count + 1000)
                gap = count - int(said[0])
                self.assertEqual(kept, [*range(1, gap + 1), *range(1, 1001)])


def target_of(link: str) -> str:
    """The target of a link in /proc, which may be gone."""
    try:
        return os.readlink(link)
    except OSError:
        return ""


class LogFiles(unittest.TestCase):
    def test_a_file_is_closed_when_its_worker_is_gone(self) -> None:
        program = ["sh", "-c", f"echo begins; exec {FASHION} --epochs 10000 --samples 2560"]
        with Job(["-H", "localhost:2", "--np", "2", "--max-batch", "12", "--max-restarts", "100",
                  "--log-dir", "logs"], program) as job:
            job.wait_for("world_formed", size=2)
            for _ in range(4):
                after = job.now()
                kill(max(job.workers().items())[1])
                job.wait_for("world_formed", after, size=2)
            gone = [f"worker{event['worker']}." for event in job.find("worker_exited")]

            def are_open() -> list[str]:
                folder = f"/proc/{job.process.pid}/fd"
                files = [target_of(os.path.join(folder, name)) for name in os.listdir(folder)]
                return [file for file in files if any(worker in file for worker in gone)]
            until("their files are closed", lambda: not are_open(), 5)
            self.assertIsNone(job.process.poll())
            logs = os.listdir(job.path("logs"))
            for worker in gone:  # their logs had been open
                self.assertEqual([read(job.path(f"logs/{log}"))[:7] for log in logs
                                  if worker in log and log.endswith("out")], ["begins\n"])
            kill(job.process.pid, signal.SIGTERM)
            self.assertEqual(job.wait(20), 143, job.err())

    def test_a_link_is_not_followed(self) -> None:
        script = ["sh", "-c", 'mkdir logs; echo mine > victim; '
                  'ln -s ../victim logs/localhost.0.worker1.out; exec "$@"', "sh"]
        with Job(["--log-dir", "logs"], ["sh", "-c", "echo one; echo two"], start=script) as job:
            self.assertEqual(job.wait(), 0, job.err())
            self.assertEqual(read(job.path("victim")), "mine\n")
            self.assertEqual(job.err(), "elasticrun: logs/localhost.0.worker1.out: a symbolic "
                             "link is not followed; the job continues without it\n")


if __name__ == "__main__":
    unittest.main()
