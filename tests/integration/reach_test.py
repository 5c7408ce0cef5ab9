#!/usr/bin/env python3
"""Hosts that cannot connect to the controller: their control stream goes through ssh.

The job must work the same, need nothing of sshd but a command, and end the host when the stream
ends; a flood of output must neither delay heartbeats nor make memory grow.
"""
import os
import re
import sys
import unittest
from pathlib import Path

import bed as beds
from bed import Bed, Spec
from bed.job import BedJob
from job import SANITIZED, kill, read, until

PATIENCE = 60
FLOOD = 20_000_000 if SANITIZED else 200_000_000  # bytes
MOST_MEMORY = 60_000  # KiB, for a controller that has passed on a flood
TOLD = "node2: cannot dial back ("


def no_forwarding() -> Spec:
    return Spec(options={"AllowTcpForwarding": "no"})


def left(bed: Bed) -> list[str]:
    return [f"{host.name}: {process.command}" for host in bed.hosts if host.pid
            for process in host.programs()]


def peak_memory(pid: int) -> int:
    """In KiB; 0 when the process has ended."""
    for line in read(f"/proc/{pid}/status").splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1])
    return 0


class Stream(unittest.TestCase):
    def test_training(self) -> None:
        for silent in (False, True):
            with self.subTest(silent=silent), Bed([Spec(), no_forwarding()]) as bed:
                node2 = bed["node2"]
                (node2.blackhole if silent else node2.refuse)()
                with BedJob(bed, ["node1 slots=2", "node2 slots=2"], options=["--explain"]) as job:
                    job.wait_for("world_formed", size=4)
                    step = job.progress()
                    until("it trains on", lambda: job.progress() > step + 20, PATIENCE)
                    job.wait_said(re.escape(TOLD))
                    self.assertIn("its control stream goes through ssh", job.err())
                    self.assertNotIn("node1: cannot dial back", job.err())
                    workers = [one for one in bed["node2"].programs() if one.name == "fashion"]
                    for worker in workers:
                        self.assertIn(f"ELASTICRUN_ADDRESS={bed['node2'].address}",
                                      worker.environment())
                    self.assertEqual(len(workers), 2)
                    job.process.terminate()
                    self.assertEqual(job.wait(PATIENCE), 143, job.err())
                    until("nothing is left", lambda: not left(bed), 5)

    def test_it_is_told_only_when_it_is_so(self) -> None:
        with Bed([no_forwarding()]) as bed:
            with BedJob(bed, ["node1 slots=1"], ["true"], ["--explain"]) as job:
                self.assertEqual(job.wait(PATIENCE), 0, job.err())
                self.assertNotIn("cannot dial back", job.err())

    def test_a_flood(self) -> None:
        """Here a host would be lost if it were silent for a second."""
        with Bed([Spec(), no_forwarding()]) as bed:
            bed["node2"].refuse()
            script = f"yes 123456789012345678901234567890123456789 | head -c {FLOOD}"
            with BedJob(bed, ["node2 slots=1"], ["sh", "-c", script],
                      ["--label", "none", "--explain"]) as job:
                peak = 0

                def ended() -> bool:
                    nonlocal peak
                    peak = max(peak, peak_memory(job.process.pid))
                    return job.process.poll() is not None
                until("the end", ended, PATIENCE)
                self.assertEqual(job.wait(), 0, job.err())
                self.assertIn(TOLD, job.err())
                self.assertEqual(os.path.getsize(job.path("out")), FLOOD)
                downs = [event["reason"] for event in job.find("host_down")]
                self.assertEqual(downs, ["the job is over"])
                self.assertGreater(peak, 0)
                if not SANITIZED:
                    self.assertLess(peak, MOST_MEMORY)

    def test_its_end_is_the_end_of_the_host(self) -> None:
        with Bed([Spec(), no_forwarding()]) as bed:
            bed["node2"].refuse()
            with BedJob(bed, ["node1 slots=1", "node2 slots=1"]) as job:
                job.wait_for("world_formed", size=2)
                first, after = job.workers(), job.now()
                for process in bed["node2"].sessions():
                    kill(process.pid)
                job.wait_for("host_down", after, host="node2")
                job.wait_for("world_formed", after, size=1, planned=False)
                job.wait_for("world_formed", after, size=2, planned=True)
                self.assertEqual(len(job.survivors(first)), 1)
                job.process.kill()
                until("nothing is left", lambda: not left(bed), PATIENCE)

    def test_cut_off_and_healed(self) -> None:
        with Bed([Spec(), no_forwarding()]) as bed:
            bed["node2"].refuse()
            with BedJob(bed, ["node1 slots=1", "node2 slots=1"]) as job:
                job.wait_for("world_formed", size=2)
                after = job.now()
                bed["node2"].cut()
                job.wait_for("world_formed", after, size=1, planned=False)
                until("its workers have ended with their lease",
                      lambda: not [one for one in bed["node2"].programs()
                                   if one.name == "fashion"], 10)
                bed["node2"].heal()
                job.wait_for("world_formed", after, size=2, planned=True)


class Wrap(unittest.TestCase):
    def run_wrapped(self, bed: Bed, wrap: str, script: str = "nice") -> BedJob:
        return BedJob(bed, ["localhost slots=1", "node1 slots=1"], ["sh", "-c", script],
                    ["--wrap", wrap])

    def test_here_and_there(self) -> None:
        with Bed(1) as bed, self.run_wrapped(bed, "nice -n 7") as job:
            self.assertEqual(job.wait(PATIENCE), 0, job.err())
            nice = os.nice(0) + 7
            self.assertEqual(sorted(job.out().splitlines()),
                             [f"localhost:0: {nice}", f"node1:1: {nice}"])

    def test_a_damaged_agent_is_not_taken_for_its_failure(self) -> None:
        with Bed(1) as bed:
            for damage in (lambda whole: whole[:len(whole) // 50],
                           lambda whole: whole[:-1] + bytes([whole[-1] ^ 1])):
                with self.run_wrapped(bed, "nice -n 7") as job:
                    self.assertEqual(job.wait(PATIENCE), 0, job.err())
                (agent,) = Path(bed["node1"].folder, "home/.cache/elasticrun").glob("agent-*")
                whole = agent.read_bytes()
                agent.write_bytes(damage(whole))
                with self.run_wrapped(bed, "nice -n 7") as job:
                    self.assertEqual(job.wait(PATIENCE), 0, job.err())
                self.assertTrue(agent.read_bytes() == whole)

    def test_one_that_stays(self) -> None:
        """Then the wrapper is the agent's parent, and signals must still reach the agent."""
        with Bed(1) as bed, self.run_wrapped(bed, "env W=1 setsid --wait", "exec sleep 1000") as job:
            job.wait_for("worker_started", worker=1)
            job.wait_for("worker_started", worker=2)
            job.process.terminate()
            self.assertEqual(job.wait(PATIENCE), 143, job.err())
            until("nothing is left", lambda: not left(bed) and not job.leftovers(), 10)

    def test_one_that_is_not_there(self) -> None:
        with Bed(1) as bed:
            for host in ("localhost", "node1"):
                with self.subTest(host), BedJob(bed, [host + " slots=1"], ["true"],
                                              ["--wrap", "no-such-program -x",
                                               "--minimum-timeout", "3s"]) as job:
                    self.assertNotEqual(job.wait(PATIENCE), 0)
                    self.assertIn("--wrap: 'no-such-program -x' was not found", job.err())

    def test_words_that_no_shell_would_get(self) -> None:
        with Bed(1) as bed:
            for wrap in ("a 'b'", "a\\b", "", "a!", "a\nb"):
                with self.subTest(wrap), self.run_wrapped(bed, wrap) as job:
                    self.assertEqual(job.wait(PATIENCE), 2)
                    self.assertEqual(len(job.err().splitlines()), 1)
                    self.assertIn("--wrap: ", job.err())


if __name__ == "__main__":
    if reason := beds.missing():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main(verbosity=1)
