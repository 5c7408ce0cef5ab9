#!/usr/bin/env python3
"""Hosts with GPUs: slots, what each worker sees of them, and a GPU that is lost."""
import sys
import unittest

import bed as beds
from bed import Bed
from bed.gpus import Gpus
from bed.job import BedJob
from job import until

PATIENCE = 60
SHOW = ["sh", "-c", 'echo "see $RANK $LOCAL_RANK $LOCAL_WORLD_SIZE'
        ' ${CUDA_VISIBLE_DEVICES-unset}"']


def seen(job: BedJob) -> list[str]:
    """What the workers print, by rank."""
    lines = [line.partition("see ")[2] for line in job.out().splitlines() if "see " in line]
    return sorted(lines, key=lambda line: int(line.split()[0]))


class Visible(unittest.TestCase):
    def setUp(self) -> None:
        self.bed = Bed(2)
        self.addCleanup(self.bed.close)

    def see(self, lines: list[str], options: list[str] | None = None) -> list[str]:
        with BedJob(self.bed, lines, SHOW, options or []) as job:
            self.assertEqual(job.wait(PATIENCE), 0, job.err())
            return seen(job)

    def test_slots_are_the_gpus_of_each_host(self) -> None:
        Gpus(self.bed["node1"], ["GPU-a", "GPU-b", "GPU-c"])
        self.assertEqual(self.see(["node1", "node2"]),
                         [f"{rank} {rank} 3 GPU-a,GPU-b,GPU-c" for rank in range(3)]
                         + ["3 0 1 unset"])

    def test_part_of_them_and_each_its_own(self) -> None:
        Gpus(self.bed["node1"], ["GPU-a", "GPU-b", "GPU-c"])
        Gpus(self.bed["node2"], ["GPU-????????-????-????-????-????????????"] * 2)
        self.assertEqual(self.see(["node1 slots=2", "node2"]),
                         ["0 0 2 GPU-a,GPU-b", "1 1 2 GPU-a,GPU-b", "2 0 2 0,1", "3 1 2 0,1"])
        self.assertEqual(self.see(["node1 slots=2", "node2"], ["--one-gpu-visible"]),
                         ["0 0 2 GPU-a", "1 1 2 GPU-b", "2 0 2 0", "3 1 2 1"])
        # With fewer workers than slots the GPUs of the free slots come last.
        self.assertEqual(self.see(["node1"], ["-np", "2"]),
                         ["0 0 2 GPU-a,GPU-b,GPU-c", "1 1 2 GPU-a,GPU-b,GPU-c"])
        self.assertEqual(self.see(["node1", "node2"], ["--include", "node1:2"]),
                         ["0 0 2 GPU-a,GPU-b", "1 1 2 GPU-a,GPU-b"])
        self.assertEqual(self.see(["node1 slots=1"], ["-x", "CUDA_VISIBLE_DEVICES=7"]),
                         ["0 0 1 7"])

    def test_one_that_is_lost_before_the_job_begins(self) -> None:
        Gpus(self.bed["node1"], ["GPU-a", "GPU-b", "GPU-c"]).fall_off_the_bus(1)
        for line in ("node1", "node1 slots=3"):
            with BedJob(self.bed, [line], SHOW) as job:
                self.assertEqual(job.wait(PATIENCE), 0, job.err())
                self.assertEqual(seen(job), ["0 0 2 GPU-a,GPU-c", "1 1 2 GPU-a,GPU-c"])
                self.assertEqual([event["slot"] for event in job.find("gpu_lost")], [1])

    def test_all_are_lost_before_the_job_begins(self) -> None:
        gpus = Gpus(self.bed["node1"], ["GPU-a", "GPU-b"])
        gpus.fall_off_the_bus(0)
        gpus.fall_off_the_bus(1)
        with BedJob(self.bed, ["node1"], SHOW, ["--minimum-timeout", "1s"]) as job:
            self.assertEqual(job.wait(PATIENCE), 122, job.err())
            self.assertEqual(len(job.find("gpu_lost")), 2)
            self.assertEqual(seen(job), [])

    def test_one_that_the_driver_let_go_before_the_job_began(self) -> None:
        Gpus(self.bed["node1"], ["GPU-a", "GPU-b", "GPU-c"]).vanish(1)
        self.assertEqual(self.see(["node1"]), ["0 0 2 GPU-a,GPU-c", "1 1 2 GPU-a,GPU-c"])

    def test_a_list_that_is_set_on_the_host(self) -> None:
        Gpus(self.bed["node1"], ["GPU-a", "GPU-b", "GPU-c"])
        self.assertEqual(
            self.see(["node1"], ["--wrap", "env CUDA_VISIBLE_DEVICES=2,0"]),
            ["0 0 2 2,0", "1 1 2 2,0"])
        self.assertEqual(self.see(["node1"], ["--wrap", "env CUDA_VISIBLE_DEVICES="]), ["0 0 1 "])


class Lost(unittest.TestCase):
    """One of the three GPUs of node1 is lost; node2 has none, and one slot."""

    def setUp(self) -> None:
        self.bed = Bed(2)
        self.addCleanup(self.bed.close)
        self.gpus = Gpus(self.bed["node1"], ["GPU-a", "GPU-b", "GPU-c"])

    def lost(self, job: BedJob, xid: int) -> None:
        """Only slot 1 of node1 is lost; the others train on."""
        started = job.find("worker_started")
        others = {event["worker"]: event["pid"] for event in started}
        victim = next(event["worker"] for event in started
                      if (event["host"], event["slot"]) == ("node1", 1))
        del others[victim]
        said = job.wait_for("gpu_lost", host="node1", slot=1, xid=xid)
        self.assertEqual(said["gpu"], "GPU-b (0000:11:00.0)")
        world = job.wait_for("world_formed", size=3, planned=False)
        job.wait_for("sample", generation=world["generation"])
        job.wait_for("worker_exited", worker=victim)
        self.assertEqual(job.workers(), others)
        job.wait_said(r"node1: slot 1 is left out: GPU GPU-b \(0000:11:00\.0\) ")
        self.assertEqual(job.find("host_down"), [])

    def test_one_that_falls_off_the_bus_takes_its_slot_along(self) -> None:
        with BedJob(self.bed, ["node1", "node2"]) as job:
            job.wait_for("world_formed", size=4)
            self.gpus.fall_off_the_bus(1)
            self.lost(job, xid=0)

    def test_the_driver_has_let_it_go_and_its_worker_is_dead(self) -> None:
        with BedJob(self.bed, ["node1", "node2"]) as job:
            job.wait_for("world_formed", size=4)
            pid = job.find("worker_started", host="node1", slot=1)[0]["pid"]
            self.gpus.vanish(1)
            self.bed["node1"].run("kill", "-9", str(pid))
            self.lost(job, xid=0)

    def test_xids(self) -> None:
        with BedJob(self.bed, ["node1", "node2"]) as job:
            job.wait_for("world_formed", size=4)
            # First a fault of the program, then a GPU on an unknown bus, then the real one.
            self.gpus.xid(0, 31, "pid=77, name=train, Ch 00000008, MMU Fault")
            self.gpus.xid(9, 79, "GPU has fallen off the bus.")
            self.gpus.xid(1, 79, "pid=77, name=train, GPU has fallen off the bus.")
            self.lost(job, xid=79)
            job.wait_said(r"has fallen off the bus \(Xid 79\); switch the host off")
            self.assertEqual(len(job.find("gpu_lost")), 1)

    def test_a_free_slot_takes_over(self) -> None:
        with BedJob(self.bed, ["node1", "node2"], options=["--np", "1:3"]) as job:
            job.wait_for("world_formed", size=3, hosts=["node1"])
            self.gpus.fall_off_the_bus(0)
            world = job.wait_for("world_formed", size=3, hosts=lambda names: "node2" in names)
            # A replacement that is ready before the lost worker dies is in the forced world.
            self.assertIn((world["planned"], world["reason"]),
                          [(True, "a GPU was lost"), (False, "worker 1 lost its GPU")])

    def test_a_host_that_has_lost_all_is_back_when_it_comes_up_again(self) -> None:
        with BedJob(self.bed, ["node1", "node2"]) as job:
            job.wait_for("world_formed", size=4)
            for number in range(3):
                self.gpus.fall_off_the_bus(number)
            job.wait_for("world_formed", size=1, hosts=["node2"])
            for number in range(3):
                self.gpus.answer(number)
            watchdog = next(one for one in self.bed["node1"].programs()
                            if one.name == "er-watchdog")
            self.bed["node1"].run("kill", "-9", str(watchdog.inner))
            job.wait_for("world_formed", size=4, planned=True)

    def test_a_plain_program_that_hangs_ends(self) -> None:
        with BedJob(self.bed, ["node1"], ["sleep", "1000"]) as job:
            until("three workers", lambda: len(job.workers()) == 3, PATIENCE)
            self.gpus.fall_off_the_bus(2)
            self.assertEqual(job.wait(PATIENCE), 137)
            self.assertIn("node1 slot 2) lost its GPU", job.last_line())


if __name__ == "__main__":
    if reason := beds.missing():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main(verbosity=1)
