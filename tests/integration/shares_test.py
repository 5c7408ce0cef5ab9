#!/usr/bin/env python3
"""Workers of different speed get shares by which they finish together, and then keep them."""
import unittest
from typing import Any

from job import until
from training import BATCH, Training

QUICK = ["--np", "2", "--stragglers", "off", "--sample-interval", "100ms", "--settle", "1s"]


class Mixed(Training):
    """Two workers; rank 1 takes twice as long for a sample from the first step on."""

    def __init__(self, shares: str) -> None:
        super().__init__("localhost slots=2\\n", epochs=1000, device_ms=1,
                         more=["--slow", "1:2:0"], options=QUICK, shares=shares)

    def rounds(self, generation: int, count: int) -> list[dict[str, Any]]:
        """The first `count` rounds of the world."""
        return until(f"{count} rounds of world {generation}",
                     lambda: (found := self.find("sample", generation=generation))[count - 1:]
                     and found[:count], 120)


def apart(rounds: list[dict[str, Any]]) -> float:
    """How much longer than the fastest member the slowest computes in the middle of the rounds."""
    ratios = sorted(one["most_compute_ms"] / one["least_compute_ms"] for one in rounds)
    return ratios[len(ratios) // 2] - 1


class Shares(unittest.TestCase):
    def test_come_to_rest_where_all_finish_together(self) -> None:
        with Mixed("speed") as job:
            first = job.world(2)
            self.assertNotIn("shares", first)
            self.assertGreater(apart(job.rounds(first["generation"], 3)), 0.5)
            world = job.wait_for("world_formed", shares=bool)
            self.assertTrue(world["planned"])
            self.assertIn("shares by speed", world["reason"])
            self.assertEqual(sum(world["shares"]), BATCH)

            def rested() -> dict[str, Any] | None:
                newest = job.find("world_formed")[-1]
                rounds = job.rounds(newest["generation"], 20)
                return newest if apart(rounds) < 0.1 else None
            world = until("shares at rest", rested, 120)
            worlds = len(job.find("world_formed"))
            job.rounds(world["generation"], 100)
            self.assertEqual(len(job.find("world_formed")), worlds, "they stay")
            self.assertEqual(len(job.workers()), 2)
            change = job.find("change_started")[-1]
            self.assertEqual((change["add"], change["remove"]), (0, 0))
            job.process.terminate()
            self.assertEqual(job.wait(), 143, job.err())
            print(f"{worlds - 1} changes, shares {world['shares']}, "
                  f"compute {apart(job.find('sample', generation=world['generation'])):.1%} apart")

    def test_equal_where_that_is_wanted(self) -> None:
        with Mixed("equal") as job:
            world = job.world(2)
            rounds = job.rounds(world["generation"], 50)
            self.assertGreater(apart(rounds), 0.5)
            self.assertEqual(len(job.find("world_formed")), 1)
            job.process.terminate()
            self.assertEqual(job.wait(), 143, job.err())


if __name__ == "__main__":
    unittest.main(verbosity=1)
