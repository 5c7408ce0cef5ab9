#!/usr/bin/env python3
"""A job on 64 hosts, half of which cannot be used, for all the reasons that real hosts have.

They are off, have no sshd, an sshd that hangs, a changed key, full disks, or a login shell that
hangs; and some of the good hosts have a login shell that prints a lot. The job begins on the good
hosts, reports each trouble with its hosts, and waits for nothing longer than its deadline.
"""
import re
import signal
import sys
import unittest
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

import bed as beds
from bed import Bed, Spec
from bed.job import BedJob, example
from job import Event, kill, until

NOISE = 20.0  # seconds: 64 hosts and their ciphers share few cores with other programs
SHELL = 20.0  # the longest of the deadlines below
CHATTY = {"bashrc": "yes hello | head -c 1000000"}


@dataclass
class Trouble:
    hosts: int
    spec: dict[str, Any]
    words: str  # a pattern of the line that reports it
    deadline: float  # seconds


TROUBLES = [
    Trouble(6, {"power": False}, "no route to|has not answered within", 10),
    Trouble(6, {"sshd": "refuses"}, "refuses connections", 10),
    Trouble(6, {"sshd": "silent"}, "has not greeted for", 10),
    Trouble(5, {"key": "changed"}, "is not the one in .*known_hosts", 10),
    Trouble(5, {"home": "full", "tmp": "full"}, "no room for the agent", 20),
    Trouble(4, {"bashrc": "sleep 1000"}, "login shell of root did not obey", SHELL),
]


def specs() -> list[Spec]:
    """32 good hosts, 4 of them chatty, then the others in the order of the table."""
    bad = [Spec(**trouble.spec) for trouble in TROUBLES for _ in range(trouble.hosts)]
    return [*[Spec() for _ in range(28)], *[Spec(**CHATTY) for _ in range(4)], *bad]


def seconds_between(first: Event, second: Event) -> float:
    times = [datetime.fromisoformat(event["time"].replace("Z", "+00:00"))
             for event in (first, second)]
    return (times[1] - times[0]).total_seconds()


class Half(unittest.TestCase):
    bed: ClassVar[Bed]

    @classmethod
    def setUpClass(cls) -> None:
        cls.bed = Bed(specs())
        names = [host.name for host in cls.bed.hosts]
        cls.good, rest = names[:32], names[32:]
        cls.bad: list[tuple[Trouble, list[str]]] = []
        for trouble in TROUBLES:
            cls.bad.append((trouble, rest[:trouble.hosts]))
            rest = rest[trouble.hosts:]

    @classmethod
    def tearDownClass(cls) -> None:
        cls.bed.close()

    def job(self, program: list[str], options: Iterable[str]) -> BedJob:
        lines = [f"{host.name} slots=1" for host in self.bed.hosts]
        # The default deadlines: those that suit three hosts are too short for 64 on two cores.
        return BedJob(self.bed, lines, program, options, deadlines=())

    def check_troubles(self, job: BedJob) -> None:
        """Each trouble is reported in time, by an event per host and by fewer lines than hosts."""
        begin = job.find("job_started")[0]
        for trouble, names in self.bad:
            for name in names:
                downs = job.find("host_down", host=name)
                self.assertTrue(downs, f"{name}: {trouble.words}")
                self.assertRegex(downs[0]["reason"], trouble.words)
                self.assertLess(seconds_between(begin, downs[0]), trouble.deadline + NOISE)
            lines = [line for line in job.err().splitlines() if re.search(trouble.words, line)]
            told = [one for name in names for one in job.find("host_down", host=name)]
            self.assertTrue(lines, trouble.words)
            self.assertLess(len(lines), len(told), "those that are alike share a line")

    def check_nothing_left(self) -> None:
        for host in self.bed.hosts:
            # A login shell that hangs is not ours to end.
            ours = [one.command for one in (host.programs() if host.pid else [])
                    if host.name in self.good or one.name.startswith(("agent-", "er-"))]
            self.assertEqual(ours, [], host.name)

    def test_a_program_runs_on_the_good_half(self) -> None:
        with self.job(["uname", "-n"], ["--np", "8:64"]) as job:
            self.assertEqual(job.wait(SHELL + NOISE), 0, job.err())
            names = re.findall(r"^\S+:\d+: (\S+)$", job.out(), re.MULTILINE)
            self.assertEqual(sorted(names), sorted(self.good))
            self.check_troubles(job)
            self.check_nothing_left()

    def test_training_begins_on_the_good_half(self) -> None:
        # The kernel keeps 1024 neighbours (ARP) in all namespaces together, enough for 16 workers.
        options = ["--np", "8:16", "--policy", "fixed", "--max-batch", "128"]
        with self.job(example(), options) as job:
            world = job.wait_for("world_formed", size=16, seconds=SHELL + NOISE)
            self.assertLessEqual(set(world["hosts"]), set(self.good))
            step = job.progress()
            until("steps go on", lambda: job.progress() > step + 1, NOISE)
            kill(job.process.pid, signal.SIGTERM)
            self.assertEqual(job.wait(NOISE), 143, job.err())
            self.check_nothing_left()

    def test_what_needs_all_does_not_begin(self) -> None:
        with self.job(["uname", "-n"], ["--np", "64", "--minimum-timeout", "5s"]) as job:
            self.assertIn(job.wait(SHELL + 5 + NOISE), (121, 122), job.err())
            self.assertEqual(job.out(), "")
            self.assertIn("64", job.last_line())
            self.check_troubles(job)
            self.check_nothing_left()


if __name__ == "__main__":
    if reason := beds.missing():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main(verbosity=1)
