#!/usr/bin/env python3
"""Scripts that people have written for torchrun, unmodified: they run under elasticrun as there.

Each one runs under both launchers with two processes on this machine, and must print the same. They
need PyTorch: TORCH_PYTHON names a Python that has it, /usr/bin/python3 with Debian's python3-torch
otherwise; without one the test is skipped.
"""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from job import Job, kill, until

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = os.path.join(HERE, "torchrun_scripts")
PYTHON = os.environ.get("TORCH_PYTHON", "/usr/bin/python3")
# With -r and -t Debian's torch 1.13 on Python 3.11 requires a rank; it need not exist. Later versions
# do not recover with the shared store of their default.
TORCHRUN = [PYTHON, "-m", "torch.distributed.run", "-r", "9:1", "-t", "9:1"]
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
               "PYTHONDONTWRITEBYTECODE": "1"}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def script(name: str) -> str:
    return os.path.join(SCRIPTS, name + ".py")


def said(text: str) -> list[str]:
    """The lines of the scripts, in no order, without those of launchers and warnings."""
    return sorted(line for line in text.splitlines()
                  if re.match(r"(epoch|step|rank|loss|evaluation|counted|restarts|hits) ?", line))


def leftovers(job: Job) -> list[str]:
    """What is left of the job, but for the cache of torch's own compiler."""
    return [one for one in job.leftovers() if "torchinductor" not in one]


class Scripts(unittest.TestCase):
    maxDiff = None

    def under_torchrun(self, options: list[str], program: list[str]) -> list[str]:
        done = subprocess.run(
            [*TORCHRUN, "--nproc_per_node", "2", "--master_port", str(free_port()), *options,
             *program],
            env=os.environ | ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return said(done.stdout)

    def check(self, name: str, *arguments: str, options: tuple[str, ...] = ()) -> list[str]:
        torch_options = [option.replace("--max-restarts", "--max_restarts") for option in options]
        expected = self.under_torchrun(torch_options, [script(name), *arguments])
        self.assertTrue(expected, "the script has said nothing")
        with Job(["-H", "localhost:2", "--label", "none", *options],
                 [PYTHON, script(name), *arguments], env=ENVIRONMENT) as job:
            self.assertEqual(job.wait(120), 0, job.err() + job.out())
            self.assertEqual(said(job.out()), expected)
            self.assertEqual(leftovers(job), [])
            return expected

    def test_they_say_what_they_say_under_torchrun(self) -> None:
        for name in ("ddp_gloo", "nccl_or_gloo", "env_url", "uneven_exits", "processes_inside",
                     "barrier_at_the_end", "objects", "accumulates"):
            with self.subTest(name):
                print(f"{name}: {self.check(name)[-1]}", file=sys.stderr)

    def test_an_error_is_shown_and_restarts_all(self) -> None:
        with Job(["-H", "localhost:2", "--label", "none", "--max-restarts", "1"],
                 [PYTHON, script("recorded_error")], env=ENVIRONMENT) as job:
            self.assertEqual(job.wait(120), 0, job.err())
            self.assertIn("the last rank fails in its first run", job.err())
            self.assertIn("restarts 1 of 1", job.out())
        with Job(["-H", "localhost:2", "--label", "none"], [PYTHON, script("recorded_error")],
                 env=ENVIRONMENT) as job:
            self.assertEqual(job.wait(120), 1, job.err())
            self.assertIn("ValueError", job.last_line())


class Checkpoints(unittest.TestCase):
    """A script with snapshots of its own survives kills and changes of the hosts."""

    def curve(self, text: str) -> dict[int, str]:
        """The last loss of each epoch: what follows the newest snapshot is trained again."""
        return dict(re.findall(r"^epoch (\d+) loss ([0-9.]+) ", text, re.M))

    def sizes(self, text: str) -> list[int]:
        return [int(size) for size in re.findall(r"^epoch \d+ loss [0-9.]+ size (\d+) ", text, re.M)]

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="er-torch-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        done = subprocess.run([PYTHON, script("own_checkpoints"), self.folder + "/alone"],
                              env=os.environ | ENVIRONMENT | {
                                  "RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1",
                                  "MASTER_PORT": "29876"},
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.expected = self.curve(done.stdout)
        self.assertEqual(len(self.expected), 8)

    def program(self) -> list[str]:
        return [PYTHON, script("own_checkpoints"), self.folder + "/snapshot", "slow"]

    def epochs(self, job: Job, count: int) -> None:
        until(f"{count} epochs", lambda: len(self.curve(job.out())) >= count, 60)

    def test_a_killed_worker(self) -> None:
        with Job(["-H", "localhost:2", "--label", "none", "--max-restarts", "2"], self.program(),
                 env=ENVIRONMENT) as job:
            for kills in (1, 2):
                self.epochs(job, 3 * kills)
                workers = job.workers()
                kill(workers[max(workers)] if kills == 1 else workers[min(workers)])
                job.wait_for("restarted", restarts=kills)
            self.assertEqual(job.wait(120), 0, job.err())
            self.assertEqual(self.curve(job.out()), self.expected)
            self.assertEqual(leftovers(job), [])

    def test_a_growing_host_file(self) -> None:
        with Job(["--hosts", "hosts", "--np", "1:3", "--settle", "1s", "--label", "none",
                  "--policy", "fixed"], self.program(), env=ENVIRONMENT,
                 start=["sh", "-c", 'printf "localhost:1\\n" > hosts; exec "$@"', "sh"]) as job:
            self.epochs(job, 2)
            with open(job.path("hosts.new"), "w", encoding="ascii") as file:
                file.write("localhost:3\n")
            os.rename(job.path("hosts.new"), job.path("hosts"))
            job.wait_for("restarted", counted=False)
            self.assertEqual(job.wait(120), 0, job.err())
            self.assertEqual(self.curve(job.out()), self.expected)
            self.assertEqual(sorted(set(self.sizes(job.out()))), [1, 3])

    def test_term_stops_it(self) -> None:
        with Job(["-H", "localhost:2", "--label", "none"], self.program(), env=ENVIRONMENT) as job:
            self.epochs(job, 1)
            begin = time.monotonic()
            kill(job.process.pid, signal.SIGTERM)
            self.assertEqual(job.wait(30), 143, job.err())
            self.assertLess(time.monotonic() - begin, 10)
            self.assertEqual(leftovers(job), [])


class Variables(unittest.TestCase):
    """The variables of a worker beside torchrun's, dumped under both."""

    # Ours, and those of this test.
    OURS = re.compile(r"ELASTICRUN_|NCCL_SOCKET_IFNAME$|JOB_UNDER_TEST$|TMPDIR$")
    # Both have them, with values of their own.
    VALUES = {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE"}
    # Of the agent in torchrun's own process: its store, which a worker without the variable makes
    # itself, and the signals that it takes.
    THEIRS = {"TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_SIGNALS_TO_HANDLE"}
    # It has its new name since torch 2.2, and workers of that version warn of the old one.
    RENAMED = {"NCCL_ASYNC_ERROR_HANDLING": "TORCH_NCCL_ASYNC_ERROR_HANDLING"}

    PROGRAM = """import json, os, sys
with open(sys.argv[1] + os.environ["RANK"], "w") as file:
    json.dump(dict(os.environ), file)
"""

    def dumped(self, prefix: str) -> list[dict[str, str]]:
        environments = []
        for rank in range(2):
            with open(f"{prefix}{rank}", encoding="utf-8") as file:
                environments.append(json.load(file))
        return environments

    def test_table(self) -> None:
        with tempfile.TemporaryDirectory(prefix="er-torch-") as folder:
            program = os.path.join(folder, "dump.py")
            with open(program, "w", encoding="utf-8") as file:
                file.write(self.PROGRAM)
            theirs, ours = os.path.join(folder, "torchrun"), os.path.join(folder, "elasticrun")
            subprocess.run(
                [*TORCHRUN, "--nproc_per_node", "2", "--max_restarts", "3", program, theirs],
                env=os.environ | ENVIRONMENT, capture_output=True, timeout=60, check=True)
            with Job(["-H", "localhost:2", "--label", "none", "--max-restarts", "3"],
                     [PYTHON, program, ours], env=ENVIRONMENT) as job:
                self.assertEqual(job.wait(60), 0, job.err())
            pairs = list(zip(self.dumped(theirs), self.dumped(ours), strict=True))
        self.assertEqual(len(pairs), 2)
        for rank, (there_all, here_all) in enumerate(pairs):
            for old, new in self.RENAMED.items():
                if old in there_all:
                    there_all[new] = there_all.pop(old)
            # What both pass on as it is, and what only this test has for its own.
            caller = {name for name in os.environ if there_all.get(name) == here_all.get(name)}
            caller |= {name for name in os.environ if name.startswith("ELASTICRUN_")}
            for name in sorted((there_all.keys() | here_all.keys()) - caller):
                there, here = there_all.get(name, "-"), here_all.get(name, "-")
                print(f"rank {rank}: {name}: torchrun {there}, elasticrun {here}",
                      file=sys.stderr)
                with self.subTest(name):
                    if self.OURS.match(name):
                        self.assertEqual(there, "-")
                    elif name in self.THEIRS:
                        self.assertEqual(here, "-")
                    elif name in self.VALUES:
                        self.assertNotIn("-", (there, here))
                    else:
                        self.assertEqual(here, there)


if __name__ == "__main__":
    probe = subprocess.run([PYTHON, "-c", "import torch.distributed.run"], capture_output=True,
                           check=False)
    if probe.returncode != 0:
        print(f"skipped: {PYTHON} has no torch (python3-torch)")
        sys.exit(77)
    unittest.main()
