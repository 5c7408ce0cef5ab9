#!/usr/bin/env python3
"""A job succeeds at the first try on real networks: a crowded sshd, a jump host, IPv6, two jobs.

Each test starts a job where a launcher that is only right on an idle rack of one subnet gives up,
and checks that it trains (or, without the library, that every worker ran) and leaves nothing
behind.
"""
import contextlib
import os
import re
import signal
import sys
import unittest
from collections.abc import Iterable

import bed as beds
from bed import Bed, Spec
from bed.job import BedJob
from job import kill, until

PATIENCE = 30
CROWDED = {"MaxStartups": "3:50:5"}  # with 3 logins under way it refuses half, with 5 all


def aliases(bed: Bed, host: str, names: Iterable[str]) -> str:
    """An ssh configuration in which a host has further names."""
    path = os.path.join(bed.folder, "aliases")
    with open(path, "w", encoding="ascii") as file:
        for name in names:
            file.write(f"Host {name}\n  HostName {bed[host].address}\n")
        file.write(f"Match all\nInclude {bed.ssh_config}\n")
    return path


def refusals(bed: Bed) -> int:
    """How many logins sshds have refused because there were too many."""
    return sum(host.log().count("past MaxStartups") for host in bed.hosts)


class Networks(unittest.TestCase):
    def lives_and_ends(self, bed: Bed, job: BedJob) -> None:
        """Steps go on; then the job is stopped, and nothing is left."""
        step = job.progress()
        until("steps go on", lambda: job.progress() > step + 1, PATIENCE)
        kill(job.process.pid, signal.SIGTERM)
        self.assertEqual(job.wait(PATIENCE), 143, job.err())
        self.assertEqual([one for host in bed.hosts for one in host.programs()], [])

    def test_a_crowded_sshd(self) -> None:
        names = [f"alias{number}" for number in range(12)]
        with Bed([Spec(options=CROWDED)]) as bed:
            options = ["--ssh-config", aliases(bed, "node1", names)]
            with BedJob(bed, [f"{name} slots=1" for name in names], options=options) as job:
                job.wait_for("world_formed", size=12)
                self.assertEqual(len(job.find("host_down")), 0, job.err())
                self.assertGreater(refusals(bed), 0, "it was crowded")
                self.lives_and_ends(bed, job)

    def test_many_hosts_behind_a_crowded_one(self) -> None:
        specs = [Spec("bastion", options=CROWDED), *[Spec(behind="bastion") for _ in range(6)]]
        with Bed(specs) as bed:
            inner = [host.name for host in bed.hosts[1:]]
            with BedJob(bed, [f"{name} slots=1" for name in inner]) as job:
                job.wait_for("world_formed", size=6)
                self.assertEqual(len(job.find("host_down")), 0, job.err())
                self.assertGreater(refusals(bed), 0, "it was crowded")
                self.lives_and_ends(bed, job)

    def test_ipv6_only_hosts(self) -> None:
        with Bed([Spec(family="6"), Spec(family="6")]) as bed:
            with BedJob(bed, ["node1 slots=1", "node2 slots=1"]) as job:
                job.wait_for("world_formed", size=2)
                self.lives_and_ends(bed, job)

    def test_hosts_of_one_and_of_both_families(self) -> None:
        with Bed([Spec(family="6"), Spec(family="46")]) as bed:
            options = ["--network", f"{bed.network.address6(0)}/64"]
            with BedJob(bed, ["node1 slots=1", "node2 slots=1"], options=options) as job:
                job.wait_for("world_formed", size=2)
                self.lives_and_ends(bed, job)

    def test_hosts_that_cannot_reach_each_other_are_all_reached(self) -> None:
        with Bed([Spec(family="4"), Spec(family="6"), Spec(family="46")]) as bed:
            with BedJob(bed, [f"node{n} slots=1" for n in (1, 2, 3)], ["uname", "-n"]) as job:
                self.assertEqual(job.wait(PATIENCE), 0, job.err())
                for name in ("node1", "node2", "node3"):
                    self.assertRegex(job.out(), rf"{name}:\d: {name}\n")

    def test_two_jobs_at_once(self) -> None:
        """Both copy the agent at the same time; the end of one does not affect the other."""
        with Bed(2) as bed, contextlib.ExitStack() as stack:
            lines = ["node1 slots=2", "node2 slots=2"]
            jobs = [stack.enter_context(BedJob(bed, lines)) for _ in range(2)]
            for job in jobs:
                job.wait_for("world_formed", size=4)
            members = jobs[1].workers()
            kill(jobs[0].process.pid, signal.SIGTERM)
            self.assertEqual(jobs[0].wait(PATIENCE), 143, jobs[0].err())
            self.assertEqual(jobs[0].pids(), [])
            # Watchdog, agent, and two workers with a shim each.
            self.assertEqual([len(host.programs()) for host in bed.hosts], [6, 6])
            step = jobs[1].progress()
            until("the other goes on", lambda: jobs[1].progress() > step + 1, PATIENCE)
            self.assertEqual(jobs[1].survivors(members), members)
            self.assertEqual(len(jobs[1].find("world_formed")), 1)
            self.lives_and_ends(bed, jobs[1])

    def test_a_newcomer_whose_link_carries_small_packets_only(self) -> None:
        """The newcomer prepares, but never gets the state. The others go on without it."""
        options = ["--transfer-timeout", "3s"]
        lines = [f"node{number} slots=1" for number in (1, 2, 3, 4)]
        with Bed(4) as bed, BedJob(bed, lines[:2], options=options) as job:
            job.wait_for("world_formed", size=2)
            members = job.workers()
            bed["node3"].small_packets()
            job.set_lines(lines[:3])
            until("the link is named", lambda: re.search(
                r"worker (\d+) \(rank \d, node3 slot 0\) is left out for .*: "
                r"worker \d+ .* worker \1\b", job.err()), PATIENCE)
            step, after = job.progress(), job.now()
            until("steps go on", lambda: job.progress() > step + 1, PATIENCE)
            job.set_lines(lines)
            job.wait_for("world_formed", after, hosts=["node1", "node2", "node4"])
            self.assertEqual(job.survivors(members), members)
            self.assertEqual(job.find("host_down"), [])
            self.assertEqual(job.find("worker_exited"), [])
            self.lives_and_ends(bed, job)


if __name__ == "__main__":
    if reason := beds.missing():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main(verbosity=1)
