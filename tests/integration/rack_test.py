#!/usr/bin/env python3
"""A job as its users run it, on four hosts without any of our programs: it finds its size by
itself, hosts come, go, crash and are cut off, and it learns as much as an undisturbed job. It
takes a minute or two, so it is one of the long tests."""
import re
import sys
import unittest

import bed as beds
from bed import Bed, Spec
from bed.job import BedJob, slots
from job import FASHION, until

PATIENCE = 120
CUT = 10.0  # seconds
QUICK = ["--heartbeat", "200ms", "--agent-timeout", "1s", "--lease", "2s", "--grace", "2s",
         "--settle", "2s"]


class Rack(BedJob):
    """The job of the quickstart on one slot of each of these hosts."""

    def __init__(self, bed: Bed, *hosts: str) -> None:
        super().__init__(bed, slots(1, *hosts), [FASHION, "--epochs", "4", "--device-ms", "1"],
                         ["--ship", "--start", "1", "--max-batch", "256", "--batch", "64",
                          "--explain"], QUICK)

    def world_on(self, after: int, here: list[str], not_here: list[str]) -> None:
        """Waits for a world with and without these hosts."""
        def fits(hosts: list[str]) -> bool:
            return set(here) <= set(hosts) and not set(not_here) & set(hosts)
        self.wait_for("world_formed", after, PATIENCE, hosts=fits)

    def on(self, *hosts: str) -> dict[int, int]:
        """Living workers of these hosts: worker -> pid."""
        there = {event["worker"]
                 for event in self.find("worker_started", host=lambda h: h in hosts)}
        return {worker: pid for worker, pid in self.workers().items() if worker in there}


class AWholeJob(unittest.TestCase):
    def test_hosts_come_and_go(self) -> None:
        specs = [Spec(slots=1), Spec(slots=1), Spec(slots=1), Spec(slots=1, private_root=True)]
        with Bed(specs) as bed, Rack(bed, "node1", "node2", "node3") as job:
            job.world_on(0, ["node1", "node2"], [])  # it grows by itself
            job.set_lines(slots(1, "node1", "node2", "node3", "node4"))
            job.world_on(0, ["node1", "node2", "node3", "node4"], [])

            stay, after = job.on("node1", "node2", "node4"), job.now()
            bed["node3"].crash()  # no FIN
            job.world_on(after, ["node1", "node2", "node4"], ["node3"])
            self.assertEqual(job.on("node1", "node2", "node4"), stay)

            stay, old, after = job.on("node1", "node4"), job.on("node2"), job.now()
            bed["node2"].cut()
            job.world_on(after, ["node1", "node4"], ["node2", "node3"])
            until("its worker has ended with its lease",
                  lambda: not [one for one in bed["node2"].programs() if one.name == "fashion"], 10)
            after = job.now()
            with self.subTest("while it is away nothing of it comes back"):
                with self.assertRaises(AssertionError):
                    job.wait_for("world_formed", after, CUT, hosts=lambda h: "node2" in h)
            bed["node2"].heal()
            job.world_on(after, ["node1", "node2", "node4"], ["node3"])
            self.assertFalse(set(old) & set(job.on("node2")), "as new workers, never as old ones")
            self.assertEqual(job.on("node1", "node4"), stay)

            stay, after = job.on("node2", "node4"), job.now()
            job.set_lines(slots(1, "node2", "node4"))
            job.world_on(after, ["node2", "node4"], ["node1", "node3"])
            self.assertEqual(job.on("node2", "node4"), stay)

            self.assertEqual(job.wait(PATIENCE), 0, job.err())
            accuracy = [float(text) for text in re.findall(r"accuracy ([0-9.]+) %", job.out())]
            self.assertGreater(accuracy[-1], 84.0, job.out())
            until("nothing is left on any host", lambda: not [
                one for host in bed.hosts if host.pid for one in host.programs()], 10)
            print(job.last_line())


if __name__ == "__main__":
    if reason := beds.missing():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main(verbosity=1)
