#!/usr/bin/env python3
"""Training across hosts that have sshd and none of our programs: grown, shrunk, crashed, cut off,
healed.

The hosts are network namespaces of this machine with their own processes, files and sshd (bed).
They need root; without root ctest reports the test as skipped.
"""
import sys
import unittest

import bed as beds
from bed import Bed
from bed.job import BedJob, slots
from job import until

PATIENCE = 60


def programs(bed: Bed) -> list[str]:
    """All processes on the hosts except their own sshd."""
    return [f"{host.name}: {process.command}" for host in bed.hosts if host.pid
            for process in host.programs()]


class AcrossHosts(unittest.TestCase):
    def test_grows_shrinks_and_ends(self) -> None:
        with Bed(3) as bed, BedJob(bed, slots(2, "node1", "node2")) as job:
            job.wait_for("world_formed", size=4)
            first = job.workers()
            after = job.now()
            job.set_lines(slots(2, "node1", "node2", "node3"))
            job.wait_for("world_formed", after, size=6, planned=True)
            self.assertEqual(job.survivors(first), first)
            after = job.now()
            job.set_lines(slots(2, "node1", "node3"))
            world = job.wait_for("world_formed", after, size=4, planned=True)
            self.assertEqual(world["hosts"], ["node1", "node3"])
            until("the leavers have ended", lambda: len(job.survivors(first)) == 2, PATIENCE)
            job.process.terminate()
            self.assertEqual(job.wait(PATIENCE), 143, job.err())
            until("nothing is left on any host", lambda: not programs(bed), 10)

    def test_a_host_crashes_and_another_is_cut_off(self) -> None:
        with Bed(3) as bed, BedJob(bed, slots(2, "node1", "node2", "node3")) as job:
            job.wait_for("world_formed", size=6)
            first = job.workers()
            after = job.now()
            bed["node3"].crash()  # no FIN: power loss
            job.wait_for("host_down", after, host="node3")
            job.wait_for("world_formed", after, size=4, planned=False)
            self.assertEqual(len(job.survivors(first)), 4)

            after, second = job.now(), job.workers()
            bed["node2"].cut()
            job.wait_for("host_down", after, host="node2")
            job.wait_for("world_formed", after, size=2, planned=False)
            cut_off = bed["node2"].programs
            until("its workers have ended with their lease",
                  lambda: not [one for one in cut_off() if one.name == "fashion"], 10)
            bed["node2"].heal()
            after = job.now()
            job.wait_for("world_formed", after, size=4, planned=True)
            self.assertEqual(len(job.survivors(second)), 2)
            self.assertTrue(set(job.workers()) - set(second), "new workers, never old ones")
            job.process.terminate()
            self.assertEqual(job.wait(PATIENCE), 143, job.err())

    def test_a_host_boots_anew(self) -> None:
        """The host is back before any timeout, and messages to its old processes lead nowhere."""
        with Bed(2) as bed, BedJob(bed, slots(2, "node1", "node2")) as job:
            job.wait_for("world_formed", size=4)
            first, after = job.workers(), job.now()
            bed["node2"].crash()
            bed["node2"].boot()
            job.wait_for("world_formed", after, size=2, planned=False)
            job.wait_for("world_formed", after, size=4, planned=True)
            self.assertEqual(len(job.survivors(first)), 2)

    def test_our_own_cable_is_out_for_a_moment(self) -> None:
        """It lasts longer than a host may be silent, but no host is blamed when all are silent."""
        with Bed(2) as bed, BedJob(bed, slots(2, "node1", "node2")) as job:
            job.wait_for("world_formed", size=4)
            first, after = job.workers(), job.now()
            bed.cut()
            until("it is noticed", lambda: "no host answers" in job.err(), PATIENCE)
            bed.heal()
            job.wait_for("sample", after + 20, generation=1)
            self.assertEqual(job.survivors(first), first)
            self.assertEqual(job.find("host_down"), [])

    def test_no_worker_outlives_the_controller(self) -> None:
        with Bed(2) as bed, BedJob(bed, slots(2, "node1", "node2")) as job:
            job.wait_for("world_formed", size=4)
            job.process.kill()
            until("nothing is left on any host", lambda: not programs(bed), PATIENCE)


if __name__ == "__main__":
    if reason := beds.missing():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main(verbosity=1)
