#!/usr/bin/env python3
"""Hosts that say that they will go: their workers leave by a planned change before it happens.

Twenty times a host announces its loss, by a command or by a signal to its agent, and loses power
within ten seconds. Each world that forms for that is a planned one and idles as one after an edit
of the host file does, which is measured in the same job.
"""
import signal
import statistics
import sys
import time
import unittest
from collections.abc import Callable

import bed as beds
from bed import Bed, Host, Spec
from bed.job import QUICK, BedJob, slots
from job import SANITIZED, kill, until

LOSSES = 20
NOTICE = 10.0  # seconds from the announcement to the loss
LEAVES = "/tmp/leaves"  # on each host
OPTIONS = ["--notice", f"test -e {LEAVES} && echo its power is cut", "--settle", "0s"]


def announce_by_file(host: Host) -> str:
    with open(host.path(LEAVES), "w", encoding="ascii"):
        pass
    return "its power is cut"


def announce_by_signal(host: Host) -> str:
    """As `pkill -USR2 er-watchdog` on the host: the watchdog passes it on to the agent."""
    for process in host.programs():
        if process.name == "er-watchdog":
            kill(process.pid, signal.SIGUSR2)
    return "its agent got SIGUSR2"


class Losses(unittest.TestCase):
    def test_twenty_losses_are_planned_changes(self) -> None:
        with Bed([Spec(tmp="own") for _ in range(4)]) as bed:
            names = [host.name for host in bed.hosts]
            with BedJob(bed, slots(1, *names), options=OPTIONS, deadlines=QUICK) as job:
                job.wait_for("world_formed", size=4)
                edits = [self.edit(job, names) for _ in range(5)]
                losses = []
                for number in range(LOSSES):
                    announce = announce_by_signal if number % 2 else announce_by_file
                    losses.append(self.lose(job, bed[names[number % 4]], announce))
                self.assertEqual(job.find("change_started", planned=False), [])
                print(f"idle, median: edits {statistics.median(edits):.1f} ms, announced losses "
                      f"{statistics.median(losses):.1f} ms")
                kill(job.process.pid, signal.SIGTERM)
                self.assertEqual(job.wait(60), 143, job.err())

    def edit(self, job: BedJob, names: list[str]) -> float:
        after = job.now()
        job.set_lines(slots(1, *names[:3]))
        world = job.wait_for("world_formed", after, size=3)
        job.set_lines(slots(1, *names))
        job.wait_for("world_formed", after, size=4)
        return float(world["idle_ms"])

    def lose(self, job: BedJob, host: Host, announce: Callable[[Host], str]) -> float:
        after, begin = job.now(), time.monotonic()
        stay = {event["worker"] for event in job.find("worker_started")
                if event["host"] != host.name} & set(job.workers())
        reason = announce(host)
        left = job.wait_for("host_leaves", after, host=host.name)
        self.assertEqual(left["reason"], reason)
        world = job.wait_for("world_formed", after, size=3)
        self.assertTrue(world["planned"])
        self.assertNotIn(host.name, world["hosts"])
        until("its worker has gone", lambda: set(job.workers()) == stay, 20)
        if not SANITIZED:
            self.assertLess(time.monotonic() - begin, NOTICE)
        host.crash()
        job.wait_for("host_down", after, host=host.name)
        host.boot()
        if reason == "its power is cut":
            host.run("rm", LEAVES)
        job.wait_for("world_formed", after, size=4, seconds=90)
        return float(world["idle_ms"])


if __name__ == "__main__":
    if reason := beds.missing():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main(verbosity=1)
