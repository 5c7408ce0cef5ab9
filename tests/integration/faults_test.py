#!/usr/bin/env python3
"""A running job is broken in two random ways at the same moment, and ends as it would without.

    faults_test.py Quick     four pairs that are always the same
    faults_test.py Chance    60 pairs of FAULTS_SEED; FAULTS_PAIRS=17 or 1-20,33: only these
    FAULTS_KEEP=DIR          keeps the files of jobs that failed

Each single fault has tests of its own; here a fault comes while another one is being dealt with.
Whatever comes, four hosts of six keep their state and can be reached: so the job ends with 0, has
used each image of each epoch once, has learnt as much as without faults, and leaves nothing on any
host. Some pairs destroy the state: these jobs end with the code and the message for that, and do
not hang.
"""
import glob
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
import unittest
from collections import defaultdict
from dataclasses import dataclass

import bed as beds
from bed import Bed, Host, Spec, programs
from bed.job import QUICK, BedJob, slots
from faults import HOSTS, LONG, NEWCOMER, Fault, Pair, Stage, draw_pair
from job import BIN, FASHION, Late, read, resume, until
from training import BATCH, LINEAGE, accuracies

EPOCHS, SAMPLES = 3, 2560
DEVICE_MS = 2.0  # per image: a step of six workers takes 43 ms
DEADLINES = [*QUICK, "--abort-timeout", "1s", "--prepare-timeout", "2s", "--transfer-timeout", "2s",
             "--hung", "3s", "--start-timeout", "20s", "--settle", "0s",
             "--sample-interval", "100ms"]
RECORD = "/tmp/record"  # on each host
# Hosts that have a /tmp of their own do not see programs in this machine's /tmp.
SHIP = ["--ship"] if BIN.startswith("/tmp/") else []
PATIENCE = 60.0  # seconds for a job that takes five
CLEARED = 12.0  # until a host is clean: lease, grace time, a kill, and a busy machine
TOLERANCE = 0.5  # per cent of accuracy


def example(device_ms: float) -> list[str]:
    return [FASHION, "--samples", str(SAMPLES), "--epochs", str(EPOCHS), "--batch", str(BATCH),
            "--device-ms", str(device_ms)]


class Faulty(BedJob):
    """The example on one slot of each of these hosts, with a record."""

    def __init__(self, bed: Bed, hosts: tuple[str, ...]) -> None:
        self.bed = bed
        super().__init__(
            bed, slots(1, *hosts), [*example(DEVICE_MS), "--record", RECORD],
            ["--policy", "fixed", "--shares", "equal", "--max-batch", str(BATCH), "--base-batch",
             "32", "--lr-rule", "none", "--explain", *SHIP], DEADLINES)

    def lineage(self) -> str:
        """The summary of the lineage checker, or what it found."""
        for host in self.bed.hosts:
            for path in glob.glob(host.path(RECORD) + ".*"):
                shutil.move(path, self.path(os.path.basename(path)))
        return subprocess.run(
            [sys.executable, LINEAGE, self.path(os.path.basename(RECORD)),
             "--samples", str(SAMPLES), "--epochs", str(EPOCHS)],
            capture_output=True, text=True, check=False).stdout.strip()



def make_bed() -> Bed:
    """Each host has a /tmp of its own, in which leftovers can be seen."""
    return Bed([Spec(slots=1, tmp="own") for _ in HOSTS])


@dataclass
class Outcome:
    pair: Pair
    code: int
    still: float  # the longest time without a step since the faults
    worlds: int
    seconds: float  # for the whole job


def left_on(bed: Bed) -> list[str]:
    """What is left on hosts when no job runs there; it must be empty."""
    left = []
    for host in bed.hosts:
        left += [f"{host.name}: {one.pid} {one.command}" for one in host.programs()]
        left += [f"{host.name}: socket {line}"
                 for line in read(f"/proc/{host.pid}/net/unix").splitlines()
                 if "elasticrun" in line]
        left += [f"{host.name}: {path}" for path in temporary_files(host)]
    return left


def temporary_files(host: Host) -> list[str]:
    """Files in /tmp, except those that the thread sanitizer writes at a start and a kill leaves, and
    the folders in which the host sees our programs."""
    shown = {path.split("/")[2] for path in programs() if path.startswith("/tmp/")}
    return [f"/tmp/{name}" for name in os.listdir(host.path("/tmp"))
            if not name.startswith("tsan.rodata.") and name not in shown]


def remove_abandoned(bed: Bed, pair: Pair) -> None:
    """Removes the folder of an agent that was killed together with its watchdog. The next agent
    that starts on the host a minute later would remove it, which takes too long here."""
    for fault in pair.faults:
        host = bed[fault.host]
        for path in temporary_files(host) if fault.kind == "kill_both" else []:
            if path.startswith(f"/tmp/elasticrun-{host.name}-"):
                shutil.rmtree(host.path(path))


class Faults(unittest.TestCase):
    """What all runs of pairs have in common."""
    bed: Bed | None = None
    calm: list[float] = []

    @classmethod
    def setUpClass(cls) -> None:
        cls.outcomes: list[Outcome] = []
        cls.bed = make_bed()
        with BedJob(cls.bed, slots(1, HOSTS[0]), example(0),
                  ["--policy", "fixed", "--max-batch", str(BATCH), "--base-batch", "32",
                   "--lr-rule", "none", *SHIP]) as job:
            code = job.wait(PATIENCE)
            cls.calm = accuracies(job.out())
            if code != 0 or len(cls.calm) != EPOCHS:
                raise AssertionError(f"without faults: exit code {code}\n{job.err()}")

    @classmethod
    def tearDownClass(cls) -> None:
        if cls.bed:
            cls.bed.close()
        if cls.outcomes:
            print(table(cls.outcomes))

    def run_pair(self, pair: Pair) -> None:
        """Runs one pair. After a failure the next pair gets a new bed."""
        try:
            with Faulty(self.bed, pair.hosts) as job:
                try:
                    self.see(pair, job)
                except BaseException:
                    keep(job)
                    raise
        except BaseException:
            self.bed.close()
            type(self).bed = make_bed()
            raise

    def see(self, pair: Pair, job: Faulty) -> None:
        begin = time.monotonic()
        job.wait_for("world_formed", 0, PATIENCE, size=len(pair.hosts))
        until(f"step {pair.step}", lambda: job.progress() >= pair.step, PATIENCE)
        (port,) = listening_of(job)
        stage = Stage(self.bed, job, list(pair.hosts), port)
        still = Still(job)
        stage.throw(list(pair.faults))

        def ended() -> bool:
            stage.act()
            still.look()
            return job.process.poll() is not None
        until("the end of the job", ended, PATIENCE)
        still.look()
        code = job.wait()
        mend(self.bed)
        self.outcomes.append(Outcome(pair, code, still.longest, len(job.find("world_formed")),
                                     time.monotonic() - begin))
        print(f"  {time.monotonic() - begin:5.1f} s, exit code {code}, stood still "
              f"{still.longest:.1f} s, {len(job.find('world_formed'))} worlds", flush=True)
        self.assertEqual(code, pair.code, job.err())
        self.assertNotIn("internal error", job.err())
        if pair.words:
            self.assertRegex(job.err(), pair.words)
        else:
            self.check_training(job)
        remove_records(self.bed)
        until_cleared(self.bed, pair)
        self.assertEqual(job.leftovers({port}), [])

    def check_training(self, job: Faulty) -> None:
        steps = EPOCHS * SAMPLES // BATCH
        self.assertRegex(job.lineage(),
                         rf"^{steps} steps in {EPOCHS} epochs of {SAMPLES} samples, each used once")
        # A line that was on its way when its host was lost does not appear.
        said = accuracies(job.out())
        self.assertIn(EPOCHS, said, job.out())
        for epoch, here in said.items():
            self.assertAlmostEqual(here, self.calm[epoch], delta=TOLERANCE, msg=job.out())


class Still:
    """Measures the longest time in which no step is reported."""

    def __init__(self, job: Faulty) -> None:
        self.job, self.step, self.since, self.longest = job, job.progress(), time.monotonic(), 0.0

    def look(self) -> None:
        now, step = time.monotonic(), self.job.progress()
        if step > self.step:
            self.longest = max(self.longest, now - self.since)
            self.step, self.since = step, now


def listening_of(job: BedJob) -> set[int]:
    """The ports on which the controller listens."""
    return until("the controller listens", job.listening, PATIENCE)


def mend(bed: Bed) -> None:
    """Repairs everything that does not recover by itself."""
    bed.network.widen()
    for host in bed.hosts:
        host.thaw()
        for one in host.programs():
            resume(one.pid)
        host.fast()
        host.heal()


def until_cleared(bed: Bed, pair: Pair) -> None:
    try:
        until("no process", lambda: not [one for host in bed.hosts for one in host.programs()],
              CLEARED)
        remove_abandoned(bed, pair)
        until("nothing left", lambda: not left_on(bed), CLEARED)
    except Late:
        raise Late(f"left after {CLEARED} s: {left_on(bed)}") from None


def remove_records(bed: Bed) -> None:
    for host in bed.hosts:
        for path in glob.glob(host.path(RECORD) + ".*"):
            os.remove(path)


def keep(job: Faulty) -> None:
    """Keeps the files of a job that failed, if FAULTS_KEEP is set."""
    if folder := os.environ.get("FAULTS_KEEP"):
        shutil.copytree(job.folder, os.path.join(folder, os.path.basename(job.folder)),
                        ignore=shutil.ignore_patterns("tmp"))
        print(f"kept: {os.path.join(folder, os.path.basename(job.folder))}")


def table(outcomes: list[Outcome]) -> str:
    """A row for each kind of fault: a pair counts in the rows of both of its kinds."""
    rows: dict[str, list[Outcome]] = defaultdict(list)
    for one in outcomes:
        for kind in {fault.kind for fault in one.pair.faults}:
            rows[kind].append(one)
    lines = [f"{'kind':<14} pairs  exit codes        stood still, s    worlds   in all, s",
             f"{'':<14}                          median   most  median most"]
    for kind, of in sorted(rows.items()) + [("all", outcomes)]:
        codes = defaultdict(int)
        for one in of:
            codes[one.code] += 1
        words = " ".join(f"{code}:{count}" for code, count in sorted(codes.items()))
        still, worlds = [one.still for one in of], [one.worlds for one in of]
        lines.append(f"{kind:<14} {len(of):5}  {words:<16} {statistics.median(still):7.1f}"
                     f" {max(still):6.1f} {statistics.median(worlds):7.0f} {max(worlds):4}"
                     f" {sum(one.seconds for one in of):10.0f}")
    return "\n".join(lines)


class Quick(Faults):
    def test_a_crash_and_a_reset(self) -> None:
        self.run_pair(Pair((Fault("crash", "node2"), Fault("reset", "node1", delay=0.02))))

    def test_a_cut_and_a_killed_agent(self) -> None:
        self.run_pair(Pair((Fault("cut", "node3", lasts=LONG), Fault("kill_agent", "node1"))))

    def test_a_newcomer_beside_a_bad_link_and_a_crash(self) -> None:
        """The newcomer gets the state, but cannot reach its neighbour in the ring."""
        self.run_pair(Pair((Fault("newcomer", NEWCOMER, "node5"), Fault("crash", "node2")),
                           tuple(HOSTS[:-1])))

    def test_both_holders_at_once(self) -> None:
        self.run_pair(Pair((Fault("crash", "node1"), Fault("kill_agent", "node2")),
                           tuple(HOSTS[:2]), 122, "state lost"))


class Chance(Faults):
    def test_pairs(self) -> None:
        seed = int(os.environ.get("FAULTS_SEED") or "1")
        for number in numbers(os.environ.get("FAULTS_PAIRS") or "1-60"):
            pair = draw_pair(seed, number)
            again = (f"pair {number} of seed {seed}: {pair}; again: FAULTS_SEED={seed} "
                     f"FAULTS_PAIRS={number} faults_test.py Chance")
            print(again, flush=True)
            with self.subTest(again):
                self.run_pair(pair)


def numbers(text: str) -> list[int]:
    """1-3,7 are 1, 2, 3 and 7."""
    found = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


if __name__ == "__main__":
    if reason := beds.missing():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main(verbosity=1)
