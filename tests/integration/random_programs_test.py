#!/usr/bin/env python3
"""Random programs, compared with what must happen: exit code, samples that count, what is on disk.

    random_programs_test.py --seeds 1:200

A seed draws a form of loop, sizes, saves and one thing that happens. The program adds the number of
each sample to its weight, so a sample that is lost or counted twice shows in the weight."""
import os
import random
import signal
import sys
import unittest
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from job import BIN, Job, Late, finals, kill, until

PROGRAM = os.path.join(BIN, "ways_to_end")
PATIENCE = 60.0  # seconds
SHORT = range(1, 21)
# What happens, with its weight in the draw.
HAPPENINGS = {"nothing": 1, "left": 4, "failed": 2, "twice": 1, "retried": 2, "killed": 3, "between": 2,
              "after": 2, "stopped": 2, "opened": 2, "nothread": 2}
CODES = {"none": 0, "three": 3, "crash": 139, "raise": 1}


@dataclass
class Drawn:
    """A program and its surroundings."""
    seed: int
    happening: str = ""
    form: str = ""
    workers: int = 2
    saved: bool = False
    fixed: bool = False
    samples: int = 80
    step: int = 5
    act: str = "none"
    pause_ms: int = 0
    early: bool = False
    free: int = 0  # slots that no worker needs
    differences: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        dice = random.Random(self.seed)
        self.happening = dice.choices(list(HAPPENINGS), list(HAPPENINGS.values()))[0]
        forms = {"between": ["calls"], "left": ["steps", "own"], "nothread": ["calls", "steps"],
                 "opened": ["calls", "steps"], "stopped": ["calls", "steps"]}
        self.form = dice.choice(forms.get(self.happening, ["calls", "steps", "own"]))
        self.workers = dice.choice([2, 3] if self.happening in ("killed", "between") else [1, 2, 3])
        self.saved = self.happening in ("opened", "stopped", "nothread") or dice.random() < 0.5
        self.fixed = dice.random() < 0.5
        self.step = dice.randint(2, 7)
        # Enough for the step in which something happens, at each size.
        self.samples = 4 * self.workers * dice.randint(20, 30) + dice.randint(0, 11)
        self.act = dice.choice(list(CODES))
        # Some saves are due after the step without threads.
        self.pause_ms = 20 if self.happening == "nothread" else dice.choice([0, 1])
        self.early = self.happening == "left" and self.workers > 1 and dice.random() < 0.4
        self.free = dice.choice([0, 0, 1])

    def __str__(self) -> str:
        return (f"seed {self.seed}: {self.happening} {self.form} {self.act} in step {self.step}, "
                f"{self.workers} workers{' and a free slot' if self.free else ''}"
                f"{' fixed' if self.fixed else ''}{' early' if self.early else ''}"
                f"{' saved' if self.saved else ''}, {self.samples} samples")

    # ------------------------------------------------------------ what must happen

    @property
    def act_code(self) -> int:
        return CODES[self.act]

    @property
    def whole(self) -> float:
        """The weight after all samples have counted once a call."""
        if self.form == "own":
            return self.samples // 8  # its steps
        return (2 if self.form == "calls" else 1) * self.samples * (self.samples - 1) / 2

    # ------------------------------------------------------------ running it

    def job(self, folder: str | None, place: str, act: str, shell: str = "") -> Job:
        options = ["-H", f"localhost:{self.workers + self.free}", "--label", "none", "--max-batch",
                   str(4 * self.workers), "--policy", "fixed", "--grace", "1s",
                   "--minimum-timeout", "20s"]
        options += ["--np", str(self.workers) if self.fixed else f"1:{self.workers}",
                    "--start", str(self.workers)]
        options += ["--save", "saves", "--save-every", "30ms"] if self.saved else []
        program = [PROGRAM, self.form, place, act]
        if shell:
            program = ["sh", "-c", shell.replace("P", '"$0" "$@"'), *program]
        variables = {"SAMPLES": str(self.samples), "STEP": str(self.step),
                     "PAUSE_MS": str(self.pause_ms)}
        return Job(options, program, folder=folder, env=variables)

    def await_hold(self, job: Job) -> None:
        """Until all workers wait in one step."""
        until("all are in the step", lambda: all(os.path.exists(job.path(f"at-{rank}"))
                                                 for rank in range(self.workers)), PATIENCE)

    def interrupt(self, job: Job) -> bool:
        """INT in a step. False: no report of the first step has arrived, so there is no state."""
        self.await_hold(job)
        kill(job.process.pid, signal.SIGINT)
        job.wait_said("saving the state|stopping gently")
        self.let_go(job)
        saves = "saving the state" in job.err()
        self.end(job, 75 if saves else 130)
        return saves

    def let_go(self, job: Job) -> None:
        with open(job.path("go"), "w", encoding="ascii"):
            pass

    def expect(self, what: str, found: object, wanted: object) -> None:
        if found != wanted:
            self.differences.append(f"{what} is {found}, not {wanted}")

    def end(self, job: Job, *codes: int) -> None:
        try:
            code = job.wait(PATIENCE)
        except Late:
            self.differences.append(f"it did not end within {PATIENCE} s")
            return
        if code not in codes:
            self.differences.append(f"exit code {code}, not {' or '.join(map(str, codes))}: "
                                    f"{job.last_line()}")

    def weights(self, job: Job, count: int, wanted: float | None = None) -> None:
        """That many workers have ended well; all have the weight of a whole training, or this one."""
        found = sorted(numbers[0] for numbers in finals(job.out()))
        right = self.whole if wanted is None else wanted
        if len(found) < count or any(abs(one - right) > 1e-3 for one in found):
            self.differences.append(f"weights {found}, not {count} times {right}")

    def finished(self, job: Job, wanted: bool) -> None:
        if self.saved and any(name.startswith("save-") for name in os.listdir(job.path("saves"))):
            self.expect("the mark of a finished job", os.path.exists(job.path("saves/finished")),
                        wanted)

    def run(self) -> "Drawn":
        getattr(self, self.happening)()
        return self

    def nothing(self) -> None:
        with self.job(None, "none", "none") as job:
            self.end(job, 0)
            self.weights(job, self.workers)
            self.finished(job, True)

    def left(self) -> None:
        """All leave in a step; the first one may fail after that. Early: the first one alone leaves,
        before its first step, and the others train."""
        if self.early:
            with self.job(None, "early", "none") as job:
                self.end(job, 0)
                self.weights(job, self.workers - 1)
                self.finished(job, True)
            return
        with self.job(None, "left", self.act) as job:
            self.end(job, self.act_code)
            self.expect("the model is there", os.path.exists(job.path("model")), self.act == "none")
            self.finished(job, self.act == "none")

    def failed(self) -> None:
        """All fail in the same step."""
        self.act = "three" if self.act == "none" else self.act
        with self.job(None, "step", f"all:{self.act}") as job:
            self.end(job, self.act_code)
            self.expect("the model is there", os.path.exists(job.path("model")), False)
            self.finished(job, False)

    def twice(self) -> None:
        """Two trainings in one command: the second one is refused."""
        with self.job(None, "none", "none", "P && P") as job:
            self.end(job, 1)
            self.weights(job, self.workers)

    def retried(self) -> None:
        """All fail in one step, and the command tries again."""
        with self.job(None, "step", "all:three", "P || P") as job:
            self.end(job, 1)
            self.expect("the model is there", os.path.exists(job.path("model")), False)

    def killed(self) -> None:
        """One worker, while all are in one step."""
        with self.job(None, "step", "all:hold") as job:
            self.await_hold(job)
            kill(random.Random(self.seed).choice(sorted(job.workers().values())))
            self.let_go(job)
            self.end(job, 0)
            self.weights(job, 1)
            self.finished(job, True)

    def between(self) -> None:
        """A worker dies between two calls of train, and the others train again."""
        act = "kill" if self.act == "none" else self.act
        with self.job(None, "between", act) as job:
            self.end(job, 0)
            self.weights(job, self.workers - 1)
            self.finished(job, True)

    def after(self) -> None:
        """The first one may fail after the training."""
        with self.job(None, "end", self.act) as job:
            self.end(job, self.act_code)
            self.finished(job, self.act == "none")

    def stopped(self) -> None:
        """INT, and the same command again."""
        with self.job(None, "step", "all:hold") as job:
            if not self.interrupt(job):
                return
            with self.job(job.folder, "none", "none") as again:
                self.end(again, 0)
                self.weights(again, self.workers)
                self.expect("the mark of a finished job",
                            os.path.exists(job.path("saves/finished")), True)

    def opened(self) -> None:
        """A stopped job; then a program that only opens a job; then the same command again."""
        with self.job(None, "step", "all:hold") as job:
            if not self.interrupt(job):
                return
            with self.job(job.folder, "opened", "all:zero") as other:
                self.end(other, 0)
            self.expect("the mark of a finished job", os.path.exists(job.path("saves/finished")),
                        False)
            with self.job(job.folder, "none", "none") as again:
                self.end(again, 0)
                self.weights(again, self.workers)

    def nothread(self) -> None:
        """From one step on no thread can be had: saves fail, and training continues."""
        with self.job(None, "step", "all:nothread") as job:
            self.end(job, 0)
            self.weights(job, self.workers)



def run(seeds: range) -> list[Drawn]:
    """Those that differ from what must happen."""
    with ThreadPoolExecutor(2) as pool:
        drawn = list(pool.map(lambda seed: Drawn(seed).run(), seeds))
    seen = Counter(one.happening for one in drawn)
    wrong = [one for one in drawn if one.differences]
    for one in wrong:
        print(f"{one}: {'; '.join(one.differences)}")
    differing = Counter(one.happening for one in wrong)
    print(f"{len(wrong)} of {len(drawn)} programs differ: "
          + ", ".join(f"{name} {differing[name]} of {seen[name]}" for name in HAPPENINGS))
    return wrong


class RandomPrograms(unittest.TestCase):
    def test_short(self) -> None:
        self.assertEqual([str(one) for one in run(SHORT)], [])


if __name__ == "__main__":
    if "--seeds" in sys.argv:
        first, _, last = sys.argv[sys.argv.index("--seeds") + 1].partition(":")
        sys.exit(bool(run(range(int(first), int(last) + 1))))
    unittest.main()
