#!/usr/bin/env python3
"""Every end is judged: programs that leave, fail, exit or crash at each place of each form of loop.

A row says which exit code the job has, and whether the model and the mark of a finished job are on
disk. The exit code 0 means that the program has done what it had to do."""
import os
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from job import BIN, Job

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = [sys.executable, os.path.join(HERE, "python_programs/ways_to_end.py")]
ENVIRONMENT = {"PATH": f"{BIN}:{os.environ['PATH']}",
               "PYTHONPATH": os.path.join(HERE, "../../worker/python")}
SANITIZED = "ELASTICRUN_SANITIZE" in os.environ  # the library needs its runtime in the program
SIZES = {"fixed": ["--np", "2"], "elastic": ["--np", "1:2"]}
SAVES = {"unsaved": [], "saved": ["--save", "saves", "--save-every", "50ms"]}


@dataclass(frozen=True)
class Row:
    form: str
    place: str
    act: str
    code: int
    model: bool = True
    words: str = ""


ROWS = [
    *(Row(form, "end", "none", 0) for form in ("calls", "steps", "own")),
    Row("calls", "opened", "all:zero", 0, False),
    Row("calls", "opened", "all:three", 3, False),
    *(Row(form, "step", f"all:{act}", code, False)
      for form in ("calls", "steps", "own")
      for act, code in {"three": 3, "raise": 1, "crash": 139}.items()),
    *(Row(form, "left", act, code, code == 0)
      for form in ("steps", "own")
      for act, code in {"none": 0, "slow": 0, "three": 3, "raise": 1, "crash": 139,
                        "all:three": 3}.items()),
    Row("calls", "between", "three", 0),
    Row("calls", "between", "kill", 0),
    Row("calls", "between", "all:three", 3, False),
    Row("calls", "end", "three", 3, False),
    Row("steps", "end", "crash", 139, False),
    Row("own", "end", "raise", 1, False),
    Row("steps", "end", "slow", 0),
]
SHORT = [row for row in ROWS if row.form == "steps" or row.place in ("opened", "between")]


@unittest.skipIf(SANITIZED, "the interpreter is not built with the sanitizer")
class Ends(unittest.TestCase):
    def one(self, row: Row, size: str, save: str) -> list[str]:
        """What differs."""
        options = ["-H", "localhost:2", *SIZES[size], *SAVES[save], "--max-batch", "8",
                   "--grace", "1s", "--minimum-timeout", "20s", "--label", "none"]
        with Job(options, [*PROGRAM, row.form, row.place, row.act], env=ENVIRONMENT) as job:
            code = job.process.wait(60)
            there = {name: os.path.exists(job.path(name)) for name in ("model", "saves/finished")}
            trained = code == 0 and row.place != "opened"
            saves = save == "saved" and any(name.startswith("save-")
                                            for name in os.listdir(job.path("saves")))
            wanted = {"code": row.code, "model": row.model, "saves/finished": trained and saves}
            found = {"code": code, **there}
            lines = [f"{row.form} {row.place} {row.act} {size} {save}: {name} is {found[name]}, "
                     f"not {wanted[name]}" for name in wanted if found[name] != wanted[name]]
            return [*lines, job.err()] if lines else []

    def test_short(self) -> None:
        for number, row in enumerate(SHORT):
            with self.subTest(row):
                size, save = list(SIZES)[number % 2], list(SAVES)[number // 2 % 2]
                found = self.one(row, size, save)
                self.assertEqual(found, [], "\n".join(found))

    def test_all(self) -> None:
        cases = [(row, size, save) for row in ROWS for size in SIZES for save in SAVES]
        with ThreadPoolExecutor(2) as pool:
            for found in pool.map(lambda case: self.one(*case), cases):
                with self.subTest():
                    self.assertEqual(found, [], "\n".join(found))


if __name__ == "__main__":
    unittest.main()
