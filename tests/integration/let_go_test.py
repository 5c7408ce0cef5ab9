#!/usr/bin/env python3
"""A host that is taken out of the hosts file is free when its workers have left: nothing of the job
is left on it, switching it off is no loss, and it is used again when the file names it again."""
import signal
import sys
import unittest

import bed as beds
from bed import Bed
from bed.job import QUICK, BedJob, slots
from job import kill, until


class LetGo(unittest.TestCase):
    def test_taken_out_switched_off_and_put_back(self) -> None:
        with Bed(2) as bed, BedJob(bed, slots(2, "node1", "node2"), options=["--settle", "0s"],
                                   deadlines=QUICK) as job:
            job.wait_for("world_formed", size=4)
            for name in ("node2", "node1"):  # the first one has rank 0
                with self.subTest(host=name):
                    self.let_go(bed, job, name)
            kill(job.process.pid, signal.SIGTERM)
            self.assertEqual(job.wait(60), 143, job.err())
            self.assertEqual(job.leftovers(), [])

    def let_go(self, bed: Bed, job: BedJob, name: str) -> None:
        after = job.now()
        job.set_lines(slots(2, *(host.name for host in bed.hosts if host.name != name)))
        self.assertTrue(job.wait_for("world_formed", after, size=2)["planned"])
        down = job.wait_for("host_down", after, host=name)
        self.assertEqual(down["reason"], "the hosts were changed")
        job.wait_said(f"{name} is free: its 2 workers have left and its agent has ended")
        until("no program is left", lambda: not bed[name].programs(), 20)
        bed[name].crash()
        bed[name].boot()
        after = job.now()
        job.set_lines(slots(2, *(host.name for host in bed.hosts)))
        job.wait_for("world_formed", after, size=4)
        self.assertEqual(len(job.find("host_down", host=name)), 1)
        self.assertNotIn("host lost", job.err())


if __name__ == "__main__":
    if reason := beds.missing():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
