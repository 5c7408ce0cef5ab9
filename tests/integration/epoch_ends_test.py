#!/usr/bin/env python3
"""The end of an epoch when the worker that saves the weights dies in the middle of it.

The example evaluates, prints the accuracy, writes its weights beside their file and renames them. A
FIFO in place of the new file stops the save there, and the worker is killed before the save is
complete, 20 times.
"""
import os
import sys
import unittest

from job import SANITIZED, kill, until
from training import Training

# A save that is not stopped in time costs another epoch.
KILLS, EPOCHS = (6, 12) if SANITIZED else (20, 30)
FOUR = "localhost slots=4\\n"
QUIET = ["--max-restarts", "100", "--settle", "0s"]


def trained(hosts: str, device_ms: float) -> Training:
    return Training(hosts, epochs=EPOCHS, samples=1280, device_ms=device_ms,
                    more=["--save", "weights"], options=QUIET)


class EpochEnds(unittest.TestCase):
    def hold(self, saved: str) -> None:
        """From now on a worker that saves waits for a reader."""
        try:
            os.mkfifo(saved + ".new")
        except FileExistsError:
            pass  # a save is under way; the next one is stopped

    def kill_in_save(self, job: Training, epoch: int, saved: str) -> bool:
        """False: the FIFO came too late, and the save is complete."""
        until(f"epoch {epoch} is said", lambda: epoch in job.accuracies(), 60)
        inside = not os.path.exists(saved)
        if inside:
            victim = job.pid_of_rank(0)
            os.unlink(saved + ".new")
            kill(victim)
        until(f"epoch {epoch} is saved", lambda: os.path.exists(saved), 60)
        os.rename(saved, f"{saved}.{epoch}")
        return inside

    def test_rank_0_dies_in_its_save(self) -> None:
        with trained("localhost slots=1\\n", 0) as calm:
            self.assertEqual(calm.wait(90), 0, calm.err())
            expected = calm.accuracies()
            with trained(FOUR, 2) as job:
                saved, killed, epoch = job.path("weights"), 0, 0
                while killed < KILLS:
                    self.hold(saved)
                    epoch += 1
                    killed += self.kill_in_save(job, epoch, saved)
                self.assertEqual(job.wait(90), 0, job.err())
                self.assertEqual(len(job.unexpected_ends()), KILLS)
                found = job.accuracies()
                self.assertEqual(sorted(found), sorted(expected))
                for epoch, here in found.items():
                    self.assertAlmostEqual(here, expected[epoch], delta=0.5)
                words = job.lineage("--same-as", calm.record, "--tolerance", "5e-3")
                self.assertIn(f"in {EPOCHS} epochs of 1280 samples, each used once", words)
                self.assertEqual(job.leftovers(), [])
        print(words, file=sys.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=1)
