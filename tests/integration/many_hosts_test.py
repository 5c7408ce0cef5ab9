#!/usr/bin/env python3
"""A job of 64 workers on 64 hosts: it begins with 8, grows to 64, and loses 8 hosts at once.

In a full mesh their 4,032 pairs would be more neighbours (ARP) than the 1,024 that a kernel keeps;
each worker has connections only to those that collectives and transfers need.
"""
import signal
import sys
import unittest

import bed as beds
from bed import Bed, Spec
from bed.job import BedJob, example, slots
from job import kill, until

PATIENCE = 180.0  # 64 sshd, agents and workers share few cores


class Many(unittest.TestCase):
    def test_grows_from_8_to_64_and_loses_8_at_once(self) -> None:
        with Bed([Spec() for _ in range(64)]) as bed:
            names = [host.name for host in bed.hosts]
            with BedJob(bed, slots(1, *names[:8]), example(), deadlines=()) as job:
                job.wait_for("world_formed", size=8, seconds=PATIENCE)
                first = job.workers()
                job.set_lines(slots(1, *names))
                job.wait_for("world_formed", size=64, seconds=PATIENCE)
                self.assertEqual(job.survivors(first), first)
                step = job.progress()
                until("64 workers train", lambda: job.progress() > step + 10, PATIENCE)
                all_of_them, after = job.workers(), job.now()
                for name in names[20:28]:
                    bed[name].crash()
                world = job.wait_for("world_formed", after, size=56, seconds=PATIENCE)
                self.assertFalse(set(world["hosts"]) & set(names[20:28]))
                step = job.progress()
                until("steps go on", lambda: job.progress() > step + 1, PATIENCE)
                lost = {event["worker"] for event in job.find("worker_started")
                        if event["host"] in names[20:28]}
                stay = {worker: pid for worker, pid in all_of_them.items() if worker not in lost}
                self.assertEqual(len(stay), 56)
                self.assertEqual(job.survivors(stay), stay)
                kill(job.process.pid, signal.SIGTERM)
                self.assertEqual(job.wait(PATIENCE), 143, job.err())
                for line in job.err().splitlines():
                    if "world " in line:
                        print(line)


if __name__ == "__main__":
    if reason := beds.missing():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main(verbosity=1)
