#!/usr/bin/env python3
"""PyTorch: what a job learns while its workers come, die and lose their connections is what the
samples say that they have computed, and without batch norm and dropout, what one worker alone
learns.

With LINEAGE_SEEDS=N each test of Seeds makes N jobs, which is 20 usually.
"""
import json
import os
import tempfile
import unittest
from typing import Any

from job import Job
from with_torch import ENVIRONMENT, PROGRAMS, PYTHON, TorchTest, alone

LINEAGE, REPLAY = (os.path.join(PROGRAMS, name) for name in ("lineage.py", "replay.py"))
SEEDS = range(1, 1 + int(os.environ.get("LINEAGE_SEEDS", "20")))
BATCH = 24
TOLERANCE = 1e-5
# Two workers die, one after the other, and connections break now and then.
TROUBLE = {"DEATHS": "2", "BREAKS": "0.05", "WAIT": "0.3"}

MOMENTUM = {"OPTIMIZER": "sgd", "SCHEDULE": "step", "CLIP": "0.5"}
ADAMW = {"OPTIMIZER": "adamw", "SCHEDULE": "epoch", "CLIP": "0.5"}
ACCUMULATED = {"OPTIMIZER": "adamw", "SCHEDULE": "step", "BATCH": "8", "ACCUMULATE": "3"}
# Rank 0 is slow, and has a smaller share after some steps.
NOISE = {"OPTIMIZER": "sgd", "SCHEDULE": "step", "BATCH": "8", "ACCUMULATE": "3", "CLIP": "1",
         "NOISE": "1", "LOADERS": "4", "SLOW": "0.002", "EPOCHS": "14", "SAMPLES": "194"}


class Lineage(TorchTest):
    def learned(self, shares: str = "equal", **variables: str) -> dict[str, Any]:
        """Runs a job, and learns again what it has learned; returns what replay.py has found."""
        with tempfile.TemporaryDirectory() as folder:
            variables |= {"RECORD": folder}
            with Job(["-H", "localhost:3", "--np", "1:3", "--policy", "fixed", "--shares", shares,
                      "--settle", "1s", "--sample-interval", "50ms", "--stragglers", "off",
                      "--max-batch", str(BATCH), "--label", "none"],
                     [PYTHON, LINEAGE], env=ENVIRONMENT | variables) as job:
                if shares == "speed":
                    job.wait_for("world_formed", shares=bool, seconds=120)
                with open(job.path("trouble"), "x", encoding="ascii"):
                    pass
                self.assertEqual(job.wait(240), 0, job.err())
                deaths = len(job.find("worker_exited", reason="was killed by signal 9 (SIGKILL)"))
                job.gone(10)
            replayed = alone(REPLAY, folder, **variables)
            self.assertEqual(replayed.returncode, 0, replayed.stderr)
        found = json.loads(replayed.stdout)
        final = found.pop("final")
        print(*(f"{name} {number:.3g}" for name, number in found.items()), f"deaths {deaths}")
        self.assertLess(found["apart"], TOLERANCE)
        self.assertGreater(found["repeated"], 0)
        self.assertGreater(found["empty"], 0)
        return found | {"final": final, "deaths": deaths}

    def undisturbed(self, **variables: str) -> dict[str, list[float]]:
        with tempfile.TemporaryDirectory() as folder:
            variables |= {"RECORD": folder, "BATCH": str(BATCH), "ACCUMULATE": "1"}
            ended = alone(LINEAGE, **variables)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            name, = os.listdir(folder)
            with open(os.path.join(folder, name), encoding="ascii") as file:
                return json.loads(file.readlines()[-1])["final"]

    def plain(self, seeds: range, **variables: str) -> None:
        expected = self.undisturbed(**variables)
        for seed in seeds:
            with self.subTest(seed):
                found = self.learned(SEED=str(seed), **TROUBLE | variables)
                self.assertGreater(found["deaths"], 0)
                self.assertEqual(found["final"]["counters"], expected["counters"])
                for one, other in zip(found["final"]["numbers"], expected["numbers"], strict=True):
                    self.assertAlmostEqual(one, other, delta=TOLERANCE)

    def scaled(self, seeds: range, **variables: str) -> None:
        if alone("-c", "import torch; torch.amp.GradScaler('cpu')").returncode != 0:
            self.skipTest("torch's own scaler is for GPUs only")
        self.plain(seeds, SCALER="torch", **variables)

    def noise(self, seeds: range, **variables: str) -> None:
        for seed in seeds:
            with self.subTest(seed):
                found = self.learned("speed", SEED=str(seed), **NOISE | TROUBLE | variables)
                self.assertGreater(found["deaths"], 0)
                self.assertGreater(found["uneven"], 0)


class Quick(Lineage):
    def test_plain(self) -> None:
        self.plain(range(1, 2), **ACCUMULATED, DEATHS="1")

    def test_noise(self) -> None:
        self.noise(range(2, 3), DEATHS="1", LOADERS="2")

    def test_scaler(self) -> None:
        self.scaled(range(3, 4), **MOMENTUM, DEATHS="1")

    def test_discarded(self) -> None:
        """Counters stay those of steps that happened, in workers that discard more than those."""
        found = self.learned(SEED="1", BREAKS="1", NOISE="1", SCHEDULE="epoch")
        self.assertEqual(found["ends"], 3)
        self.assertGreaterEqual(found["discarded"], 50)


class Seeds(Lineage):
    def test_momentum(self) -> None:
        self.plain(SEEDS, **MOMENTUM)

    def test_adamw(self) -> None:
        self.plain(SEEDS, **ADAMW)

    def test_accumulated(self) -> None:
        self.plain(SEEDS, **ACCUMULATED)

    def test_scaler(self) -> None:
        self.scaled(SEEDS, **MOMENTUM)

    def test_noise(self) -> None:
        self.noise(SEEDS)


if __name__ == "__main__":
    unittest.main()
