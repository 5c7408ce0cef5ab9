#!/usr/bin/env python3
"""Hosts with GPUs: slots, what each worker sees of them, and a GPU that is lost."""
import sys
import unittest

import bed as beds
from bed import Bed
from bed_gpus import Gpus
from bed_job import Away

PATIENCE = 60
SHOW = ["sh", "-c", 'echo "see $RANK $LOCAL_RANK $LOCAL_WORLD_SIZE'
        ' ${CUDA_VISIBLE_DEVICES-unset}"']


def seen(job: Away) -> list[str]:
    """What the workers say, by rank."""
    lines = [line.partition("see ")[2] for line in job.out().splitlines() if "see " in line]
    return sorted(lines, key=lambda line: int(line.split()[0]))


class Visible(unittest.TestCase):
    def setUp(self) -> None:
        self.bed = Bed(2)
        self.addCleanup(self.bed.close)

    def see(self, lines: list[str], options: list[str] | None = None) -> list[str]:
        with Away(self.bed, lines, SHOW, options or []) as job:
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
        # Fewer workers than slots: the others' GPUs come last.
        self.assertEqual(self.see(["node1"], ["-np", "2"]),
                         ["0 0 2 GPU-a,GPU-b,GPU-c", "1 1 2 GPU-a,GPU-b,GPU-c"])
        self.assertEqual(self.see(["node1 slots=1"], ["-x", "CUDA_VISIBLE_DEVICES=7"]),
                         ["0 0 1 7"])

    def test_a_list_that_is_set_on_the_host(self) -> None:
        Gpus(self.bed["node1"], ["GPU-a", "GPU-b", "GPU-c"])
        self.assertEqual(
            self.see(["node1"], ["--wrap", "env CUDA_VISIBLE_DEVICES=2,0"]),
            ["0 0 2 2,0", "1 1 2 2,0"])
        self.assertEqual(self.see(["node1"], ["--wrap", "env CUDA_VISIBLE_DEVICES="]), ["0 0 1 "])


if __name__ == "__main__":
    if reason := beds.missing():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main(verbosity=1)
