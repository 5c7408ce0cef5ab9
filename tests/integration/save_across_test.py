#!/usr/bin/env python3
"""Saves of jobs across hosts: a folder that all of them share, or not, and hosts that are lost."""
import os
import shutil
import signal
import sys
import tempfile
import unittest

import bed as beds
from bed import Bed, Spec
from bed.job import QUICK, BedJob, slots
from job import kill, until


class Across(unittest.TestCase):
    def test_a_folder_that_is_not_shared(self) -> None:
        with Bed([Spec(tmp="own"), Spec(tmp="own")]) as bed:
            state = tempfile.mkdtemp(prefix="er-save-", dir="/tmp")
            self.addCleanup(shutil.rmtree, state)
            with BedJob(bed, slots(1, *(host.name for host in bed.hosts)),
                        options=["--save", state]) as job:
                self.assertEqual(job.wait(60), 2, job.err())
                self.assertRegex(job.last_line(),
                                 rf"node\d: --save {state}: it is another folder than the one")
                self.assertEqual(job.find("world_formed"), [])
                self.assertEqual(job.leftovers(), [])

    def test_hosts_are_lost_while_it_saves(self) -> None:
        """Whole hosts lose power; the job continues, and another one resumes from its saves on hosts
        that were not there before."""
        with Bed(4) as bed:
            state = os.path.join(bed.folder, "state")
            names = [host.name for host in bed.hosts]
            options = ["--save", state, "--save-every", "100ms", "--max-restarts", "99"]
            with BedJob(bed, slots(1, *names[:3]), options=options, deadlines=QUICK) as job:
                for name in names[1:3]:
                    job.wait_for("saved", job.now())
                    after = job.now()
                    bed[name].crash()
                    job.wait_for("world_formed", after, planned=False)
                    job.wait_for("saved", job.now())
                    bed[name].boot()
                    job.wait_for("host_up", after, host=name)
                kill(job.process.pid, signal.SIGTERM)
                self.assertEqual(job.wait(60), 75, job.err())
                saved = job.find("saved")[-1]
            with BedJob(bed, slots(1, *names[2:]), options=options, deadlines=QUICK) as job:
                world = job.wait_for("world_formed")
                self.assertEqual((world["step"], world["size"]), (saved["step"], 2))
                job.wait_for("saved")
                for name in names[2:]:  # all that hold the state: the newest save is what is left
                    bed[name].crash()
                    bed[name].boot()
                after = job.now()
                world = job.wait_for("world_formed", after)
                until("a save of a later step", lambda: any(
                    save["step"] > world["step"] for save in job.find("saved", after)), 30)
                kill(job.process.pid, signal.SIGTERM)
                self.assertEqual(job.wait(60), 75, job.err())
                self.assertEqual(job.leftovers(), [])


if __name__ == "__main__":
    if reason := beds.missing():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
