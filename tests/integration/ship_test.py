#!/usr/bin/env python3
"""--ship: the program gets to hosts that lack it, once, and to no others.

The hosts are those of a test bed (bed); one with a private root does not see the folder where
the programs under test were built. The bed needs root; without root ctest reports the test as
skipped.
"""
import contextlib
import glob
import os
import signal
import sys
import unittest

import bed as beds
from bed import Bed, Host, Spec
from job import FASHION, SANITIZED, Job, until

PATIENCE = 60
QUICK = ["--heartbeat", "200ms", "--agent-timeout", "5s", "--grace", "1s"]
TRAINING = [FASHION, "--samples", "2560", "--batch", "32"]
MANY_EPOCHS = [*TRAINING, "--device-ms", "0.5", "--epochs", "10000"]
PYTHON = "/usr/bin/python3"  # a host with a private root has it, too
PATH = "/usr/bin:/bin"


def lacking(**more: str) -> Spec:
    return Spec(private_root=True, **more)


class Shipping(Job):
    """A job on all hosts of a bed."""

    def __init__(self, bed: Bed, program: list[str], *options: str, folder: str = "",
                 env: dict[str, str] | None = None) -> None:
        super().__init__(["--hosts", bed.hosts_file, "--ssh-config", bed.ssh_config,
                          "--policy", "fixed", *QUICK, *options], program, folder=folder or None,
                         env=env or {})


def script(bed: Bed, text: str, megabytes: int = 0) -> str:
    """Writes ./script with so many megabytes of padding behind it; returns its folder."""
    folder = os.path.join(bed.folder, "work")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "script"), "wb") as file:
        file.write(f"#!/bin/sh\n{text}\nexit\n".encode() + os.urandom(megabytes << 20))
    os.chmod(os.path.join(folder, "script"), 0o755)
    return folder


def python_folder(bed: Bed) -> str:
    """Writes ./train.py, a module beside it, and a package with a data file; returns its folder."""
    folder = os.path.join(bed.folder, "work")
    for name, text in {
            "train.py": "import os, sys, helper, nets.sizes\n"
                        "place = os.path.dirname(os.path.abspath(__file__))\n"
                        "print(helper.WORD, nets.sizes.TOTAL, *sys.argv[1:], 'in', place)\n",
            "helper.py": "WORD = 'first'\n",
            "nets/__init__.py": "",
            "nets/sizes.py": "import json, os\n"
                             "with open(os.path.dirname(__file__) + '/data/sizes.json') as file:\n"
                             "    TOTAL = sum(json.load(file))\n",
            "nets/train.py": "from .sizes import TOTAL\nprint('module', TOTAL)\n",
            "nets/data/sizes.json": "[3, 4]"}.items():
        write(os.path.join(folder, name), text)
    return folder


def write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def bundles(host: Host) -> list[str]:
    """Folders of bundles on the host's disk, whole or not."""
    return glob.glob(os.path.join(host.folder, "home", ".cache", "elasticrun", "bundle-*"))


def state_of(folder: str) -> dict[str, tuple[int, int]]:
    return {name: (entry.st_ino, entry.st_mtime_ns) for name in os.listdir(folder)
            if (entry := os.stat(os.path.join(folder, name)))}


def executables(host: Host) -> list[str]:
    """What the host's workers run, as the host sees it."""
    found = []
    for process in host.programs():
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/{process.pid}/exe"))
    return [path for path in found if "agent" not in os.path.basename(path)]


class Ship(unittest.TestCase):
    def test_trains_where_the_program_is_not(self) -> None:
        with Bed([Spec(), lacking()]) as bed:
            here, lacks = bed["node1"], bed["node2"]
            with Shipping(bed, MANY_EPOCHS, "--ship", "--max-batch", "128") as job:
                job.wait_for("world_formed", size=4)
                self.assertEqual(set(executables(here)), {FASHION})
                [bundle] = bundles(lacks)
                inside = bundle[bundle.index("/.cache"):]
                self.assertEqual(set(executables(lacks)), {f"/root{inside}/fashion"})
                job.process.terminate()
                self.assertEqual(job.wait(PATIENCE), 143, job.err())
            self.assertEqual(bundles(here), [])
            self.assertEqual(sorted(name.partition(".so")[0] for name in os.listdir(bundle)),
                             ["fashion", "libelasticrun"])
            before = state_of(bundle)
            with Shipping(bed, [*TRAINING, "--epochs", "1"], "--ship",
                          "--max-batch", "128") as job:
                self.assertEqual(job.wait(PATIENCE), 0, job.err())
                self.assertEqual(len(job.find("world_formed", size=4)), 1)
            self.assertEqual(bundles(lacks), [bundle])
            self.assertEqual(state_of(bundle), before, "the second run copied it again")

    def test_without_ship_it_is_suggested(self) -> None:
        with Bed([Spec(), lacking()]) as bed, Shipping(bed, TRAINING) as job:
            self.assertEqual(job.wait(PATIENCE), 127)
            self.assertIn(f"node2: program '{FASHION}' not found; --ship copies it", job.err())

    def test_what_cannot_be_copied_starts_nothing(self) -> None:
        with Bed([lacking()]) as bed:
            for program, code, words in (("./none", 127, "not found on this machine"),
                                         ("none.py", 127, "not found on this machine"),
                                         ("/etc/passwd", 126, "Permission denied")):
                kind = "script" if program == "none.py" else "program"
                with Shipping(bed, [program], "--ship") as job:
                    self.assertEqual(job.wait(PATIENCE), code)
                    self.assertEqual(job.err(), f"elasticrun: --ship: {kind} '{program}' "
                                     f"{'cannot be run: ' if code == 126 else ''}{words}\n")
            self.assertFalse(bed["node1"].programs())

    def test_a_copy_with_other_bytes_is_replaced(self) -> None:
        with Bed([lacking()]) as bed:
            folder = script(bed, "echo right")
            for _ in range(2):
                with Shipping(bed, ["./script"], "--ship", folder=folder) as job:
                    self.assertEqual(job.wait(PATIENCE), 0, job.err())
                    self.assertEqual(job.out().count("right\n"), 2, job.out())
                [bundle] = bundles(bed["node1"])
                with open(os.path.join(bundle, "script"), "r+b") as file:
                    file.write(b"#!/bin/sh\necho wrong")  # the size stays

    def run_python(self, bed: Bed, program: list[str], folder: str) -> str:
        """Runs it with --ship; returns what the workers printed, without labels, each line once."""
        with Shipping(bed, program, "--ship", "--label", "none", folder=folder,
                      env={"PATH": PATH, "PYTHONDONTWRITEBYTECODE": ""}) as job:
            self.assertEqual(job.wait(PATIENCE), 0, job.err())
            return "".join(sorted(set(job.out().splitlines(keepends=True))))

    def test_a_python_script_comes_with_its_modules(self) -> None:
        with Bed([Spec(), lacking()]) as bed:
            folder = python_folder(bed)
            out = self.run_python(bed, ["train.py", "a", "b"], folder)
            [bundle] = bundles(bed["node2"])
            inside = "/root" + bundle[bundle.index("/.cache"):]
            self.assertEqual(out, f"first 7 a b in {inside}\nfirst 7 a b in {folder}\n")
            self.assertEqual(bundles(bed["node1"]), [])
            before = os.stat(os.path.join(bundle, "train.py"))
            # The modules that Python has compiled there do not make it another bundle.
            self.assertIn("__pycache__", os.listdir(bundle))
            self.assertIn(f"in {inside}\n", self.run_python(bed, [PYTHON, "./train.py"], folder))
            self.assertEqual(os.stat(os.path.join(bundle, "train.py")), before)
            self.assertEqual(bundles(bed["node2"]), [bundle])

    def test_a_changed_module_is_copied(self) -> None:
        with Bed([lacking()]) as bed:
            folder = python_folder(bed)
            self.assertIn("first 7 in", self.run_python(bed, ["train.py"], folder))
            write(os.path.join(folder, "helper.py"), "WORD = 'other'\n")
            self.assertIn("other 7 in", self.run_python(bed, ["train.py"], folder))
            self.assertEqual(len(bundles(bed["node1"])), 2)

    def test_a_python_module_comes_with_its_package(self) -> None:
        with Bed([lacking()]) as bed:
            out = self.run_python(bed, ["-m", "nets.train"], python_folder(bed))
            self.assertEqual(out, "module 7\n")
            [bundle] = bundles(bed["node1"])
            self.assertEqual(os.listdir(bundle), ["nets"])

    def test_a_host_with_the_script_uses_its_own(self) -> None:
        with Bed([lacking()]) as bed:
            folder = python_folder(bed)
            write(bed["node1"].path(os.path.join(folder, "train.py")), "print('own')\n")
            self.assertEqual(self.run_python(bed, ["train.py"], folder), "own\n")
            self.assertEqual(bundles(bed["node1"]), [])

    def test_the_interpreter_is_not_copied(self) -> None:
        with Bed([lacking()]) as bed:
            folder = python_folder(bed)
            python = os.path.join(folder, "python3")
            os.symlink(PYTHON, python)
            for options in (["--ship"], []):
                with Shipping(bed, [python, "train.py"], *options, folder=folder) as job:
                    self.assertEqual(job.wait(PATIENCE), 127)
                    self.assertRegex(job.err(), f"node1: program '{python}' not found\n")

    def test_two_jobs_at_once(self) -> None:
        with Bed([lacking(), lacking()]) as bed:
            folder = script(bed, 'echo "$1 on $(uname -n)"', megabytes=20)
            with Shipping(bed, ["./script", "a"], "--ship", folder=folder) as one, \
                    Shipping(bed, ["./script", "b"], "--ship", folder=folder) as two:
                for job, word in ((one, "a"), (two, "b")):
                    self.assertEqual(job.wait(PATIENCE), 0, job.err())
                    for host in ("node1", "node2"):
                        self.assertEqual(job.out().count(f"{word} on {host}\n"), 2, job.out())
            for host in bed.hosts:
                [bundle] = bundles(host)
                self.assertEqual(os.listdir(bundle), ["script"])

    @unittest.skipIf(SANITIZED, "a sanitizer's agent needs more room")
    def test_a_full_home(self) -> None:
        with Bed([lacking(home="full")]) as bed:
            folder = script(bed, 'echo "$0"')
            with Shipping(bed, ["./script"], "--ship", folder=folder) as job:
                self.assertEqual(job.wait(PATIENCE), 0, job.err())
                self.assertIn("/tmp/elasticrun-0/bundle-", job.out())
            self.assertFalse(bundles(bed["node1"]))
            # No place on that host has enough room.
            folder = script(bed, "", megabytes=16)
            with Shipping(bed, ["./script"], "--ship", folder=folder) as job:
                self.assertEqual(job.wait(PATIENCE), 126)
                self.assertIn("node1: copy of the program: no place for 17 MiB (", job.err())
                self.assertIn("/tmp/elasticrun-0: not enough room", job.err())

    def test_a_slow_line_does_not_cost_the_host(self) -> None:
        """Heartbeats are not held up: a megabyte alone takes longer than the timeout."""
        with Bed([lacking()]) as bed:
            folder = script(bed, "echo done", megabytes=3)
            with Shipping(bed, ["./script"], "--ship", "--agent-timeout", "2s", "--lease", "4s",
                          folder=folder) as job:
                job.wait_for("host_up")
                bed["node1"].slow("4mbit")
                self.assertEqual(job.wait(PATIENCE), 0, job.err())
                self.assertEqual(job.out().count("done\n"), 2)

    def test_ended_in_the_midst_of_a_copy(self) -> None:
        with Bed([lacking()]) as bed:
            host = bed["node1"]
            folder = script(bed, "", megabytes=30)
            with Shipping(bed, ["./script"], "--ship", folder=folder) as job:
                job.wait_for("host_up")
                host.slow("8mbit")  # the copy would take half a minute
                until("a part of it is there", lambda: bundles(host), PATIENCE)
                self.assertRegex(bundles(host)[0], r"/bundle-[0-9a-f]{32}\.\w+$")
                job.process.terminate()
                self.assertEqual(job.wait(10), 143, job.err())
            until("nothing is left", lambda: not host.programs() and not bundles(host), 10)

    def test_the_agent_is_killed_in_the_midst_of_a_copy(self) -> None:
        with Bed([lacking()]) as bed:
            host = bed["node1"]
            folder = script(bed, "", megabytes=30)
            with Shipping(bed, ["./script"], "--ship", folder=folder) as job:
                job.wait_for("host_up")
                host.slow("8mbit")
                until("a part of it is there", lambda: bundles(host), PATIENCE)
                for process in host.programs():
                    if process.name.startswith("agent-"):
                        os.kill(process.pid, signal.SIGKILL)
                self.assertNotEqual(job.wait(PATIENCE), 0)
            until("nothing is left", lambda: not host.programs() and not bundles(host), 10)


if __name__ == "__main__":
    if reason := beds.missing():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main(verbosity=1)
