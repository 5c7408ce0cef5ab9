#!/usr/bin/env python3
"""Jobs that are stopped and go on from their saves.

    save_test.py Sizes Loops Rules Trouble Export    what a user meets
    save_test.py Kills.test_two_hundred       200 kills while jobs save and go on

The records of all jobs of a row prove that each sample of each epoch was used once in what the final
weights were made of, and the weights are those of a job that was never stopped.
"""
import ast
import io
import json
import os
import pickletools
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile
from typing import Any

import lineage
import slow_files
from job import BIN, SANITIZED, Job, kill, read, until
from same_answer_test import PRECISE, TOLERANCE, relative_difference
from training import Training

UPDATES = os.path.join(BIN, "updates")


def read_bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


class Folder(unittest.TestCase):
    """A folder of --save, and the jobs that use it one after the other."""

    epochs, samples = 2, 1280

    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="er-save-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.state = os.path.join(self.folder, "state")
        self.records: list[str] = []

    def training(self, workers: int, options: list[str] | None = None, **more: Any) -> Training:
        """The next job of the row."""
        self.records.append(os.path.join(self.folder, f"record{len(self.records)}"))
        more = {"epochs": self.epochs, "samples": self.samples, "more": PRECISE} | more
        return Training(f"localhost slots={workers}\\n", record=self.records[-1],
                        options=["--save", self.state, *(options or [])], **more)

    def stop(self, job: Job, number: int = signal.SIGTERM) -> int:
        """Stops the job, which saves its state; returns the step."""
        kill(job.process.pid, number)
        self.assertEqual(job.wait(60), 75, job.err())
        saved = job.find("saved")[-1]
        self.assertTrue(saved["stop"])
        self.assertEqual(self.whole()[-1], saved["path"])
        self.assertEqual(job.leftovers(), [])
        return int(saved["step"])

    def finish(self, job: Training) -> str:
        """Waits for the end of the row's last job, and checks the records of all of them."""
        self.assertEqual(job.wait(120), 0, job.err())
        self.assertEqual(job.leftovers(), [])
        return job.lineage(before=self.records[:-1])

    def whole(self) -> list[str]:
        """The whole saves, the newest last."""
        names = [name for name in os.listdir(self.state) if re.fullmatch(r"save-\d+", name)]
        return [os.path.join(self.state, name)
                for name in sorted(names, key=lambda name: int(name[5:]))]

    def manifest(self, save: str) -> dict[str, Any]:
        return dict(json.loads(read(os.path.join(save, "manifest")).splitlines()[0])["Manifest"])

    def steps(self, job: Training, count: int) -> None:
        """Waits for that many steps in all; a job that went on from a save must have heard of one of
        its own, or a stop would find none."""
        until(f"{count} steps", lambda: job.newest_step() >= count, 60)
        begun = job.wait_for("world_formed")["step"]
        if begun > 0:
            until(f"a sample after step {begun}", lambda: any(
                sample["step"] > begun for sample in job.find("sample")), 60)


class Sizes(Folder):
    """From four workers to one, two, three and eight."""

    def test_the_answer_is_that_of_a_job_that_was_never_stopped(self) -> None:
        calm = self.calm()
        for size in (1, 2, 3, 8):
            with self.subTest(size):
                self.setUp()
                with self.training(4, device_ms=3) as job:
                    self.steps(job, 7)
                    step = self.stop(job)
                with self.training(size, device_ms=0) as job:
                    print(f"{size}: from step {step}: {self.finish(job).strip()}", file=sys.stderr)
                    world = job.find("world_formed")[0]
                    self.assertEqual((world["size"], world["step"]), (size, step))
                    self.assertIn(f"going on from {self.whole()[-1]}: step {step}", job.err())
                    weights = lineage.weights(self.records[-1], "d")
                self.assertLess(relative_difference(weights, calm), TOLERANCE)

    def calm(self) -> Any:
        with Training("localhost slots=1\\n", self.epochs, self.samples, device_ms=0,
                      more=PRECISE) as job:
            self.assertEqual(job.wait(120), 0, job.err())
            return lineage.weights(job.record, "d")

    def test_a_large_state_travels_through_a_row_of_sizes(self) -> None:
        more = [*PRECISE, "--state-mb", "40"]
        for size in (3, 1, 4):
            with self.training(size, device_ms=3, more=more, epochs=3) as job:
                before = (job.wait_for("world_formed")["step"], 0)[0]
                self.steps(job, before + 4)
                self.stop(job)
        with self.training(2, device_ms=0, more=more, epochs=3) as job:
            print(self.finish(job).strip(), file=sys.stderr)

    def test_epochs_that_have_ended_are_not_trained_again(self) -> None:
        with self.training(2, device_ms=2) as job:
            until("the first epoch", lambda: job.accuracies(), 60)
            self.stop(job)
        self.assertEqual(self.manifest(self.whole()[-1])["epoch"], 1)
        with self.training(2, device_ms=0) as job:
            self.finish(job)
            self.assertIn(2, job.accuracies())


class Loops(Folder):
    def test_a_loop_of_its_own(self) -> None:
        """Its state counts its updates; it ends with 9 when they are not the committed steps."""
        steps = []
        for size in (4, 1, 3):
            with Job(["-H", f"localhost:{size}", "--label", "none", "--save", self.state],
                     [UPDATES, "enough", "1000"]) as job:
                job.wait_for("world_formed")
                job.wait_for("sample", step=lambda step, n=len(steps): step > sum(steps[n - 1:n]))
                steps.append(self.stop(job))
        with Job(["-H", "localhost:2", "--label", "none", "--save", self.state],
                 [UPDATES, "enough"]) as job:
            job.wait_for("world_formed", step=steps[-1])
            with open(job.path("enough"), "w", encoding="ascii"):
                pass
            self.assertEqual(job.wait(60), 0, job.err())
            ends = set(re.findall(r"^committed (\d+) updates (\d+) samples (\d+)$", job.out(), re.M))
            self.assertEqual(len(ends), 1, job.out())
            committed, updates, samples = map(int, ends.pop())
            self.assertEqual((updates, samples), (committed, 24 * committed))
            self.assertGreater(committed, steps[-1])
        self.assertEqual(steps, sorted(steps))


class Rules(Folder):
    """When a job saves, and what it says about a folder."""

    def test_other_ways_to_stop(self) -> None:
        for name, options, number in (
                ("INT", [], signal.SIGINT), ("HUP", [], signal.SIGHUP),
                ("USR1", ["--stop-signal", "USR1"], signal.SIGUSR1),
                ("XCPU", ["--stop-signal", "SIGXCPU"], signal.SIGXCPU)):
            with self.subTest(name), self.training(2, options, device_ms=2, epochs=1000) as job:
                after = job.wait_for("world_formed")["step"]
                self.steps(job, after + 2)
                self.stop(job, number)
                self.assertIn(f"stopped by SIG{name}", job.last_line())

    def test_a_time_limit(self) -> None:
        with self.training(2, ["--time-limit", "6s"], device_ms=2, epochs=1000) as job:
            begin = time.monotonic()
            self.assertEqual(job.wait(60), 75, job.err())
            if not SANITIZED:
                self.assertLess(time.monotonic() - begin, 6)
            self.assertIn("stopped before --time-limit", job.last_line())

    def test_inside_slurm_usr1_stops(self) -> None:
        with self.training(2, device_ms=2, epochs=1000, env={"SLURM_JOB_ID": "1"}) as job:
            self.steps(job, 2)
            self.stop(job, signal.SIGUSR1)

    def test_a_later_signal_does_not_wait(self) -> None:
        with self.training(1, device_ms=20, epochs=1000) as job:  # a step takes 2.5 s
            self.steps(job, 2)
            until("it stops", lambda: kill(job.process.pid, signal.SIGTERM)
                  or "SIGTERM again: stopping at once" in job.err(), 30)
            self.assertEqual(job.wait(30), 143, job.err())
            self.assertEqual(self.whole(), [])

    def test_a_signal_comes_twice(self) -> None:
        """As timeout(1) sends it: to its child, and to the group of both."""
        with self.training(2, device_ms=2, epochs=1000) as job:
            self.steps(job, 2)
            for number in (signal.SIGTERM, signal.SIGINT):  # two of a kind could come as one
                kill(job.process.pid, number)
            self.assertEqual(job.wait(30), 75, job.err())

    def test_a_job_without_a_new_step_is_not_stopped_for_ever(self) -> None:
        with self.training(2, device_ms=2) as job:
            self.steps(job, 3)
            step = self.stop(job)
        with self.training(1, device_ms=400) as job:
            job.wait_for("world_formed")
            kill(job.process.pid, signal.SIGTERM)
            self.assertEqual(job.wait(30), 123, job.err())
            self.assertIn(f"without a new step since it went on from step {step}", job.last_line())

    def test_the_same_command_after_the_end_begins_afresh(self) -> None:
        with self.training(2, device_ms=2) as job:
            self.steps(job, 3)
            self.stop(job)
        with self.training(2, device_ms=0) as job:
            self.finish(job)
        with self.training(2, device_ms=0) as job:
            self.assertEqual(job.wait(120), 0, job.err())
            self.assertIn("beginning afresh", job.err())
            job.lineage()

    def test_a_program_that_does_not_train_finishes_nothing(self) -> None:
        with self.training(1, device_ms=2) as job:
            self.steps(job, 3)
            step = self.stop(job)
        with Job(["-H", "localhost:1", "--save", self.state], ["true"]) as job:
            self.assertEqual(job.wait(30), 0, job.err())
        with self.training(2, device_ms=0) as job:
            self.assertEqual(job.wait_for("world_formed")["step"], step)
            self.finish(job)

    def test_a_torn_save_takes_the_place_of_no_whole_one(self) -> None:
        with self.training(1, ["--save-every", "100ms"], device_ms=2, epochs=1000) as job:
            job.wait_for("saved", job.now())
            self.stop(job)
        older, newest = self.whole()
        os.truncate(os.path.join(newest, "part-0"), 10)
        with self.training(1, device_ms=2, epochs=1000) as job:
            self.steps(job, job.wait_for("world_formed")["step"] + 2)
            self.stop(job)
        self.assertIn(older, self.whole())

    def test_while_it_runs(self) -> None:
        with self.training(3, ["--save-every", "300ms"], device_ms=2, epochs=1000) as job:
            saves = [job.wait_for("saved", job.now()) for _ in range(3)]
            self.assertLessEqual(len(self.whole()), 3)
            steps = [save["step"] for save in saves]
            self.assertEqual(steps, sorted(set(steps)))
            for pid in [*job.workers().values(), *job.watchdogs(), job.process.pid]:
                kill(pid)  # all at once, as with the power of a rack
            job.gone(30)
        newest = self.whole()[-1]
        with self.training(2, device_ms=0, epochs=1000, samples=self.samples) as job:
            world = job.wait_for("world_formed")
            self.assertEqual(world["step"], self.manifest(newest)["step"])
            self.steps(job, world["step"] + 2)
            self.stop(job)

    def test_all_workers_lost_at_once(self) -> None:
        with self.training(2, ["--save-every", "200ms"], device_ms=2, epochs=6) as job:
            job.wait_for("saved")
            after = job.now()
            for pid in job.workers().values():
                kill(pid)
            world = job.wait_for("world_formed", after)
            self.assertGreater(world["step"], 0)
            self.finish(job)

    def test_another_program(self) -> None:
        with self.training(2, device_ms=2) as job:
            self.steps(job, 3)
            self.stop(job)
        with self.training(2, device_ms=2, more=[*PRECISE, "--hidden", "7"]) as job:
            self.assertEqual(job.wait(60), 2, job.err())
            self.assertIn("is the save of another program", job.last_line())
        with self.training(2, device_ms=2, samples=640) as job:
            self.assertEqual(job.wait(60), 2, job.err())
            self.assertIn("an epoch had 1280 samples, and has 640 now", job.last_line())

    def test_a_second_job(self) -> None:
        with self.training(1, device_ms=2, epochs=1000) as job:
            job.wait_for("world_formed")
            with Job(["--save", self.state], ["true"]) as second:
                self.assertEqual(second.wait(30), 2)
                self.assertIn(f"another job uses {self.state}: job ", second.err())
                self.assertIn(f"process {job.process.pid}", second.err())

    def test_damaged_saves(self) -> None:
        with self.training(2, ["--save-every", "200ms"], device_ms=2, epochs=1000) as job:
            for _ in range(2):
                job.wait_for("saved", job.now())
            self.stop(job)
        older, newest = self.whole()
        for name, seen in (("part-0", "worker"), ("manifest", "a save is not used")):
            with self.subTest(name):
                shutil.rmtree(self.folder + "/copy", ignore_errors=True)
                shutil.copytree(self.state, self.folder + "/copy")
                with open(os.path.join(newest, name), "r+b") as file:
                    file.seek(100)
                    byte = file.read(1)
                    file.seek(100)
                    file.write(bytes([byte[0] ^ 1]))
                with self.training(2, device_ms=2, epochs=1000) as job:
                    world = job.wait_for("world_formed")
                    self.assertEqual(world["step"], self.manifest(older)["step"])
                    job.wait_said(re.escape(newest))
                    job.wait_said(seen)
                    self.steps(job, world["step"] + 2)
                    self.stop(job)
                self.assertIn(older, self.whole())
                shutil.rmtree(self.state)
                shutil.move(self.folder + "/copy", self.state)

    def test_nothing_whole_is_left(self) -> None:
        with self.training(2, device_ms=2, epochs=1000) as job:
            self.steps(job, 2)
            self.stop(job)
        with open(os.path.join(self.whole()[-1], "part-0"), "r+b") as file:
            file.write(b"damaged")
        with self.training(2, device_ms=2, epochs=1000) as job:
            self.assertEqual(job.wait(60), 2, job.err())
            self.assertIn("could be read; start the job again if that can be mended", job.last_line())
        os.truncate(os.path.join(self.whole()[-1], "manifest"), 10)
        with self.training(2, device_ms=2, epochs=1000) as job:
            self.assertEqual(job.wait(60), 2, job.err())


class Trouble(Folder):
    """File systems that are full, read-only or not shared: one clear line each, and training continues
    where it can."""

    def small(self, commands: str) -> list[str]:
        """Starts a job in a mount namespace of its own, with these commands first."""
        if os.geteuid() != 0:
            self.skipTest("needs root")
        os.mkdir(self.state)
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                commands.replace("STATE", self.state) + '; exec "$@"', "sh"]

    def test_a_full_disk(self) -> None:
        start = self.small("mount -t tmpfs -o size=3m none STATE")
        with self.training(2, ["--save-every", "200ms"], device_ms=2, epochs=1000, start=start,
                           more=["--state-mb", "8"]) as job:
            reason = job.wait_for("save_failed")["reason"]
            self.assertIn("No space left on device", reason)
            step = job.newest_step()
            self.steps(job, step + 3)
            job.wait_said("training continues")
            kill(job.process.pid, signal.SIGTERM)
            self.assertEqual(job.wait(30), 143, job.err())
            self.assertIn("the state is not saved", job.last_line())

    def test_a_read_only_folder(self) -> None:
        start = self.small("mount -t tmpfs -o ro none STATE")
        with self.training(2, start=start) as job:
            self.assertEqual(job.wait(30), 2, job.err())
            self.assertIn("Read-only file system", job.last_line())
            self.assertEqual(job.find("host_up"), [])

    def slow(self, bytes_per_s: float) -> slow_files.SlowFolder:
        if why := slow_files.missing():
            self.skipTest(why)
        os.mkdir(self.state)
        return slow_files.SlowFolder(self.state, bytes_per_s)

    def test_a_slow_disk(self) -> None:
        """Training goes on while a save is written; when it stops, the save is life enough for
        --grace."""
        with self.slow(4e6), \
                self.training(2, ["--save-every", "200ms", "--grace", "500ms"], device_ms=2,
                              epochs=1000, more=["--state-mb", "8"]) as job:
            until("a save that is written", lambda: any(
                name.startswith(".saving") for name in os.listdir(self.state)), 30)
            step = job.newest_step()
            saved = job.wait_for("saved")
            self.assertGreater(saved["took_ms"], 1500)
            self.assertGreater(job.newest_step(), step + 3)
            self.stop(job)
            job.wait_said("saving the state within 10 m")
            self.assertGreater(job.find("saved")[-1]["took_ms"], 1500)

    def test_a_file_system_that_does_not_answer(self) -> None:
        """One line after --save-timeout, and training continues; so it is when the job is stopped."""
        with self.slow(50e6) as folder, \
                self.training(2, ["--save-every", "200ms", "--save-timeout", "1s"], device_ms=2,
                              epochs=1000) as job:
            job.wait_for("saved")
            after = job.now()
            with folder.hung():
                reason = job.wait_for("save_failed", after)["reason"]
                self.assertIn("not whole within --save-timeout 1.0 s", reason)
                self.steps(job, job.newest_step() + 3)
            job.wait_for("saved", job.now())
            self.stop(job)

    def test_the_folder_disappears_and_comes_back(self) -> None:
        with self.training(2, ["--save-every", "200ms"], device_ms=2, epochs=1000) as job:
            job.wait_for("saved")
            after = job.now()
            os.rename(self.state, self.state + "-away")
            reason = job.wait_for("save_failed", after)["reason"]
            self.assertIn(f"cannot make {self.state}/", reason)
            self.steps(job, job.newest_step() + 3)
            os.rename(self.state + "-away", self.state)
            job.wait_for("saved", job.now())
            self.stop(job)


class Export(Folder):
    """A save as arrays that other programs read."""

    def export(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([os.path.join(BIN, "elasticctl"), "export", *arguments],
                              capture_output=True, text=True, check=False, timeout=60)

    def saved(self) -> None:
        with self.training(2, device_ms=2) as job:
            self.steps(job, 3)
            self.stop(job)

    def parts(self) -> bytes:
        save = self.whole()[-1]
        names = [file["name"] for file in self.manifest(save)["files"]][1:]
        return b"".join(read_bytes(os.path.join(save, name)) for name in names)

    def test_npz(self) -> None:
        """Read as numpy documents it: a header that is a literal of Python, then the elements."""
        self.saved()
        path = self.folder + "/model.npz"
        done = self.export(self.state, path, "--as", "float32")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(self.whole()[-1], done.stdout)
        elements = b""
        with zipfile.ZipFile(path) as archive:
            self.assertIsNone(archive.testzip())
            for member in archive.namelist():
                text = archive.read(member)
                self.assertEqual(text[:8], b"\x93NUMPY\x01\x00")
                length = int.from_bytes(text[8:10], "little")
                self.assertEqual((10 + length) % 64, 0)
                header = ast.literal_eval(text[10:10 + length].decode())
                self.assertEqual((header["descr"], header["fortran_order"]), ("<f4", False))
                self.assertEqual(header["shape"], ((len(text) - 10 - length) // 4,))
                elements += text[10 + length:]
            self.assertIn("weights.npy", archive.namelist())
        self.assertEqual(elements, self.parts())
        self.assertEqual([name for name in os.listdir(self.folder) if "model" in name],
                         ["model.npz"])

    def test_pt(self) -> None:
        """The pickle is one that pickletools takes, and names each file of elements; torch itself
        reads one where it is installed."""
        self.saved()
        path = self.folder + "/model.pt"
        done = self.export(self.whole()[-1], path, "--as", "float32")
        self.assertEqual(done.returncode, 0, done.stderr)
        with zipfile.ZipFile(path) as archive:
            self.assertIsNone(archive.testzip())
            names = archive.namelist()
            program = archive.read("archive/data.pkl")
            pickletools.dis(program, io.StringIO())
            count = sum(op.name == "BINPERSID" for op, _, _ in pickletools.genops(program))
            self.assertEqual(names, ["archive/data.pkl", "archive/byteorder",
                                     *(f"archive/data/{i}" for i in range(count)),
                                     "archive/version"])
            self.assertEqual(b"".join(archive.read(name) for name in names[2:-1]), self.parts())

    def test_mistakes(self) -> None:
        self.saved()
        path = self.folder + "/model.npz"
        for arguments, said in (
                ((self.state, self.folder + "/model.txt"), "ends in .npz"),
                ((self.folder, path), "is no save and has none in it"),
                ((self.state, path, "--as", "float31"), "'float31' is no type"),
                ((self.state, path, "--as", "wights=float32"), "the save has no 'wights'"),
                ((self.state, path, "--as", "bfloat16"), "numpy has no bfloat16"),
                ((self.state, "/nowhere/model.npz"), "cannot write /nowhere/model.npz")):
            with self.subTest(said):
                done = self.export(*arguments)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(said, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        with open(os.path.join(self.whole()[-1], "part-0"), "r+b") as file:
            file.write(b"damaged")
        done = self.export(self.state, path)
        self.assertEqual(done.returncode, 2)
        self.assertIn("part-0 is damaged", done.stderr)
        self.assertEqual([name for name in os.listdir(self.folder) if "model" in name], [])


class Kills(Folder):
    """kill -9 at any moment of saving and going on: there is always a whole save, and always the
    newest one is used."""

    def victims(self, job: Training, chance: random.Random) -> tuple[str, list[int]]:
        workers = sorted(job.workers().values())
        kind = chance.choice(["worker", "worker", "agent", "controller", "all"])
        if kind == "worker":
            return kind, [chance.choice(workers)] if workers else []
        if kind == "agent":
            agents = sorted([*job.agents(), *job.watchdogs()])
            return kind, [chance.choice(agents)] if agents else []
        everybody = [*workers, *job.watchdogs()] if kind == "all" else []
        return kind, [job.process.pid, *everybody]

    def newest_by_hand(self) -> str | None:
        """The newest save whose files are all there with their sizes."""
        for save in reversed(self.whole() if os.path.exists(self.state) else []):
            files = self.manifest(save)["files"]
            if all(os.path.getsize(os.path.join(save, file["name"])) == file["bytes"]
                   for file in files):
                return save
        return None

    def run_with(self, kills: int, seed: int) -> None:
        chance = random.Random(seed)
        killed: dict[str, int] = {}
        more = [*PRECISE, "--state-mb", str(chance.choice([0, 4]))]
        while sum(killed.values()) < kills or self.newest_by_hand() is None:
            newest = self.newest_by_hand()
            with self.training(chance.randint(1, 4), ["--save-every", "60ms", "--max-restarts", "99"],
                               device_ms=0.5, epochs=100_000, more=more) as job:
                until("an agent or the end", lambda: job.agents() or job.process.poll(), 30)
                if sum(killed.values()) >= kills:
                    job.wait_for("saved")  # on a slow machine all others were killed before
                while job.process.poll() is None and sum(killed.values()) < kills:
                    # A random time, so that the kill comes at any moment of a save.
                    time.sleep(chance.uniform(0, 0.4))
                    kind, pids = self.victims(job, chance)
                    for pid in pids:
                        kill(pid)
                    killed[kind] = killed.get(kind, 0) + bool(pids)
                if job.process.poll() is None:
                    kill(job.process.pid, signal.SIGTERM)
                # 75: stopped; 121: the agent was killed before it was up; 123: without a new step;
                # 137: the controller was killed; 143: stopped before the first step; 122: all workers
                # were lost before there was a save to go on from.
                code, none = job.wait(60), self.newest_by_hand() is None
                self.assertIn(code, (75, 121, 123, 137, 143, *([122] if none else [])), job.err())
                job.gone(30)
                if newest:
                    self.assertIn(f"going on from {newest}:", job.err())
                    self.assertNotIn("not used", job.err())
                    self.assertIsNotNone(self.newest_by_hand())
                if not [name for name in os.listdir(self.folder)
                        if name.startswith(os.path.basename(self.records[-1]) + ".")]:
                    self.records.pop()  # it was killed before its first step
        # A job that was killed may have been in a later epoch than its newest save, and the last one has
        # something to do in any case.
        epochs = 2 + max(int(line.split()[3]) for name in os.listdir(self.folder)
                         if name.startswith("record")
                         for line in read(os.path.join(self.folder, name)).splitlines()
                         if line.startswith(("applied", "computed")) and len(line.split()) > 6)
        with self.training(2, device_ms=0, epochs=epochs, more=more) as job:
            summary = self.finish(job)
        print(f"{killed} killed, {len(self.records)} jobs: {summary.strip()}", file=sys.stderr)

    def test_twenty(self) -> None:
        self.run_with(20, seed=1)

    def test_two_hundred(self) -> None:
        for seed in range(4):
            with self.subTest(seed):
                self.setUp()
                self.run_with(50, seed=10 + seed)


if __name__ == "__main__":
    unittest.main()
