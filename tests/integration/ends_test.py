#!/usr/bin/env python3
"""Every end is judged: programs that leave, fail, exit or crash at each place of each form of loop.

A row says which exit code the job has, and whether the model and the mark of a finished job are on
disk. The exit code 0 means that the program has done what it had to do."""
import os
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from job import BIN, Job, Late
from with_torch import ENVIRONMENT, PROGRAMS, PYTHON, has_torch

SANITIZED = "ELASTICRUN_SANITIZE" in os.environ  # the library needs its runtime in the program
IN_PYTHON = os.path.join(PROGRAMS, "ways_to_end.py")
COMMANDS = {"c": [os.path.join(BIN, "ways_to_end_in_c")],
            "c++": [os.path.join(BIN, "ways_to_end")], "python": [sys.executable, IN_PYTHON],
            "torch": [PYTHON, IN_PYTHON]}
SIZES = {"fixed": ["--np", "2"], "elastic": ["--np", "1:2"]}
SAVES = {"unsaved": [], "saved": ["--save", "saves", "--save-every", "50ms"]}
SETTINGS = [(size, save) for size in SIZES for save in SAVES]


@dataclass(frozen=True)
class Row:
    form: str
    place: str
    act: str
    code: int
    model: bool = True


ROWS = [
    *(Row(form, "end", "none", 0) for form in ("calls", "steps", "own", "torch")),
    Row("calls", "opened", "all:zero", 0, False),
    Row("calls", "opened", "all:three", 3, False),
    *(Row(form, "step", f"all:{act}", code, False)
      for form in ("calls", "steps", "own", "torch")
      for act, code in {"three": 3, "raise": 1, "crash": 139}.items()),
    *(Row(form, "left", act, code, code == 0)
      for form in ("steps", "own", "torch")
      for act, code in {"none": 0, "slow": 0, "three": 3, "raise": 1, "crash": 139,
                        "all:three": 3}.items()),
    *(Row(form, "left", "all:zero", 0, False) for form in ("steps", "own", "torch")),
    Row("calls", "between", "three", 0),
    Row("calls", "between", "kill", 0),
    Row("calls", "between", "all:three", 3, False),
    Row("calls", "end", "three", 3, False),
    Row("steps", "end", "crash", 139, False),
    Row("own", "end", "raise", 1, False),
    Row("steps", "end", "slow", 0),
]


TORCH = ["torch"] if not SANITIZED and has_torch() else []


def languages(row: Row) -> list[str]:
    if row.form == "torch":
        return TORCH
    return ["c", "c++"] if SANITIZED else ["c", "c++", "python"]


class Ends(unittest.TestCase):
    def one(self, row: Row, language: str, size: str, save: str) -> list[str]:
        """What differs."""
        options = ["-H", "localhost:2", *SIZES[size], *SAVES[save], "--max-batch", "8",
                   "--grace", "1s", "--minimum-timeout", "20s", "--label", "none"]
        with Job(options, [*COMMANDS[language], row.form, row.place, row.act], env=ENVIRONMENT) as job:
            code = self.code_of(job)
            there = {name: os.path.exists(job.path(name)) for name in ("model", "saves/finished")}
            trained = code == 0 and row.place != "opened"
            saves = save == "saved" and any(name.startswith("save-")
                                            for name in os.listdir(job.path("saves")))
            wanted = {"code": row.code, "model": row.model, "saves/finished": trained and saves}
            found = {"code": code, **there}
            lines = [f"{name} is {found[name]}, not {wanted[name]}"
                     for name in wanted if found[name] != wanted[name]]
            return [*lines, job.err()] if lines else []

    def code_of(self, job: Job) -> int | None:
        try:
            return job.wait(60)
        except Late:
            return None

    def rows(self, cases: list[tuple[Row, str, str, str]]) -> None:
        with ThreadPoolExecutor(2) as pool:
            for case, found in zip(cases, pool.map(lambda case: self.one(*case), cases)):
                with self.subTest(case):
                    self.assertEqual(found, [], "\n".join(found))

    def test_short(self) -> None:
        """Each row once: languages, sizes and saves change from row to row."""
        self.rows([(row, known[number % len(known)], *SETTINGS[number % len(SETTINGS)])
                   for number, row in enumerate(ROWS) if (known := languages(row))])

    def test_all(self) -> None:
        self.rows([(row, language, *setting) for row in ROWS for language in languages(row)
                   for setting in SETTINGS])


@unittest.skipUnless(TORCH, "no torch")
class Together(unittest.TestCase):
    """Workers that leave at the same place, which some reach later than others: each keeps its rank,
    and the last step."""

    def leaves_at(self, place: str) -> None:
        program = [PYTHON, os.path.join(PROGRAMS, "leaves_together.py"), place]
        for number in range(2):
            with self.subTest(number), Job(["-H", "localhost:4", "--np", "3", "--label", "none"],
                                           program, env=ENVIRONMENT) as job:
                self.assertEqual(job.wait(60), 0, job.err())
                ends = [line.split(" ", 1) for line in job.out().splitlines()]
                self.assertEqual(sorted(rank for rank, _ in ends),
                                 [f"rank={rank}" for rank in range(3)], job.err())
                self.assertEqual(len({rest for _, rest in ends}), 1, ends)
                self.assertIn("step=30 ", ends[0][1])
                started = len(job.find("worker_started"))
                self.assertEqual(started, 3, "a worker that left was replaced")

    def test_after_a_step(self) -> None:
        self.leaves_at("step")

    def test_after_a_mean_at_the_end_of_an_epoch(self) -> None:
        self.leaves_at("end")

    def test_at_the_end_of_an_epoch(self) -> None:
        self.leaves_at("alone")


if __name__ == "__main__":
    unittest.main()
