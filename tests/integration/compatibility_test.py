#!/usr/bin/env python3
"""What earlier builds have written and linked: this build takes all of it.

Each folder below tests/data is a set of one commit: a save, events, a library and a program that
is linked with it (tests/data/make).
"""
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

from job import BIN, Job

TREE = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
DATA = os.path.join(TREE, "tests/data")
SETS = sorted(name for name in os.listdir(DATA) if os.path.isdir(os.path.join(DATA, name)))
LIBRARY = "libelasticrun.so.0"
# The line of an agent or a library whose peer has another protocol.
REFUSED = r"protocol \d+ \(version [^)]+\), .*protocol \d+ \(version [^)]+\); use one version"


class Sets(unittest.TestCase):
    def setUp(self) -> None:
        self.assertIn("e66e14c", SETS)
        self.folder = tempfile.mkdtemp(prefix="er-compatible-")
        self.addCleanup(shutil.rmtree, self.folder)

    def state(self, name: str) -> str:
        """A copy of the set's save, in a folder for --save."""
        return shutil.copytree(os.path.join(DATA, name, "state"),
                               tempfile.mkdtemp(dir=self.folder), dirs_exist_ok=True)

    def step(self, state: str) -> int:
        with open(os.path.join(state, "save-1", "manifest"), encoding="utf-8") as file:
            return int(json.loads(file.readline())["Manifest"]["step"])

    def program(self, name: str, library: str | None) -> str:
        """The set's program, beside its own library, or beside this one."""
        folder = tempfile.mkdtemp(dir=self.folder)
        with tarfile.open(os.path.join(DATA, name, "programs.tar.xz")) as archive:
            archive.extractall(folder)
        if library:
            os.remove(os.path.join(folder, LIBRARY))
            os.symlink(library, os.path.join(folder, LIBRARY))
        return os.path.join(folder, "updates")

    def goes_on(self, program: str, state: str, size: int) -> Job:
        """Trains one step on from the save, to the end; returns the job that has ended."""
        enough = os.path.join(self.folder, "enough")
        with open(enough, "w", encoding="ascii"):
            pass
        step = self.step(state)
        job = Job(["-H", f"localhost:{size}", "--label", "none", "--save", state],
                  [program, enough, "0"])
        with job:
            code = job.wait(60)
            if code != 0 and re.search(REFUSED, job.err()):
                return job
            self.assertEqual(code, 0, job.err())
            self.assertIn(f"going on from {state}/save-1: step {step}", job.err())
            self.assertEqual(set(job.out().splitlines()), {
                f"committed {step + 1} updates {step + 1} samples {24 * (step + 1)}"})
            self.assertEqual(job.leftovers(), [])
        return job

    def test_a_save_at_other_sizes(self) -> None:
        for name in SETS:
            for size in (1, 2, 4):
                with self.subTest(set=name, size=size):
                    self.goes_on(os.path.join(BIN, "updates"), self.state(name), size)

    def test_the_program_with_its_library_and_with_ours(self) -> None:
        if platform.machine() != "x86_64":
            self.skipTest("the programs are for x86-64")
        ours = os.path.join(os.path.dirname(BIN), "lib", LIBRARY)
        for name in SETS:
            for library in (None, ours):
                with self.subTest(set=name, library=library):
                    self.goes_on(self.program(name, library), self.state(name), 3)

    def test_export(self) -> None:
        for name in SETS:
            with self.subTest(set=name):
                path, state = os.path.join(self.folder, name + ".npz"), self.state(name)
                done = self.elasticctl("export", state, path)
                self.assertIn(f"step {self.step(state)} of {state}", done)
                with zipfile.ZipFile(path) as archive:
                    self.assertEqual(archive.namelist(), ["state.npy"])
                    with open(os.path.join(state, "save-1", "part-0"), "rb") as part:
                        self.assertTrue(archive.read("state.npy").endswith(part.read()))

    def test_plan(self) -> None:
        for name in SETS:
            with self.subTest(set=name):
                said = self.elasticctl("plan", os.path.join(DATA, name, "events"))
                rows = re.findall(r"^\*? +(\d+) .* measured$", said, re.MULTILINE)
                self.assertEqual(rows, ["1", "2", "3"], said)

    def elasticctl(self, *arguments: str) -> str:
        done = subprocess.run([os.path.join(BIN, "elasticctl"), *arguments], capture_output=True,
                              text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


if __name__ == "__main__":
    unittest.main()
