#!/usr/bin/env python3
"""Jobs that are stopped while nobody steps: in an evaluation after a call of train, in a long
on_epoch, while workers are still starting or the state is in no memory."""
import os
import re
import shutil
import signal
import tempfile
import time
import unittest
from typing import Any

from job import BIN, Job, kill, until

EVALUATES = os.path.join(BIN, "evaluates")


class Evaluates(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="er-save-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.state = os.path.join(self.folder, "state")

    def job(self, steps: int, options: list[str] | None = None, step_ms: int = 5,
            workers: int = 2) -> Job:
        return Job(["-H", f"localhost:{workers}", "--max-batch", "8", "--save", self.state,
                    *(options or [])], [EVALUATES, self.folder, str(steps), str(step_ms)])

    def close(self, place: str) -> None:
        with open(os.path.join(self.folder, place), "w", encoding="ascii"):
            pass

    def open(self, place: str) -> None:
        os.unlink(os.path.join(self.folder, place))

    def await_place(self, job: Job, place: str, times: int) -> None:
        until(f"{times} at {place}", lambda: job.out().count(f"waits at {place}") >= times, 60)

    def ended(self, job: Job, code: int, words: str, seconds: float = 60) -> None:
        self.assertEqual(job.wait(seconds), code, job.err())
        self.assertIn(words, job.last_line())
        self.assertEqual(job.leftovers(), [])
        self.assertEqual([name for name in os.listdir(self.state) if name.startswith(".saving")], [])

    def finish(self, steps: int, **more: Any) -> Job:
        """The next job goes on to the end; all jobs together have made that many steps."""
        with self.job(steps // 4, **more) as job:
            self.ended(job, 0, "")
            self.assertEqual(set(re.findall(r"^.*steps (\d+)$", job.out(), re.M)), {str(steps)})
        return job


class BetweenCalls(Evaluates):
    def test_what_was_trained_is_saved_before_a_long_evaluation(self) -> None:
        self.close("after1")
        with self.job(300, step_ms=10) as job:  # 6 s, so that the end of the call is saved
            self.await_place(job, "after1", 2)
            saved = job.wait_for("saved", step=600)
            self.assertFalse(saved["stop"])
            kill(job.process.pid, signal.SIGTERM)
            self.ended(job, 75, "the same command resumes from step 600", 10)
        self.open("after1")
        self.finish(1200, step_ms=1)

    def test_a_stop_in_the_evaluation_saves_in_the_next_step(self) -> None:
        self.close("after1")
        with self.job(40) as job:
            self.await_place(job, "after1", 2)
            kill(job.process.pid, signal.SIGTERM)
            job.wait_said("in the next step, unless the program ends before")
            self.assertEqual(job.find("saved"), [])
            self.open("after1")
            self.ended(job, 75, "the same command resumes from step 8")
        self.finish(160)

    def test_a_program_that_ends_meanwhile_has_ended(self) -> None:
        self.close("after2")
        with self.job(10) as job:
            self.await_place(job, "after2", 2)
            kill(job.process.pid, signal.SIGTERM)
            job.wait_said("unless the program ends before")
            self.open("after2")
            self.ended(job, 0, "")

    def test_a_death_between_two_calls_loses_no_stop(self) -> None:
        self.close("after1")
        with self.job(40, workers=3) as job:
            self.await_place(job, "after1", 3)
            kill(job.process.pid, signal.SIGTERM)
            job.wait_said("unless the program ends before")
            kill(min(job.workers().values()), signal.SIGKILL)
            job.wait_said("the job ends with 137, unless it trains again")
            self.open("after1")
            self.ended(job, 75, "the same command resumes from step 8")


class LongEpochEnds(Evaluates):
    def test_a_save_waits_for_the_end_of_on_epoch(self) -> None:
        self.close("epoch")
        with self.job(40, ["--save-every", "100ms", "--save-timeout", "300ms"]) as job:
            self.await_place(job, "epoch", 2)
            after = job.now()
            time.sleep(1)  # three times the limit
            self.assertEqual(job.find("save_failed"), [], job.err())
            self.open("epoch")
            job.wait_for("saved", after, step=lambda step: step >= 40)  # one of before may come yet
            self.ended(job, 0, "")

    def test_a_time_limit_that_ends_in_it(self) -> None:
        """The newest save is what the same command resumes from: that of the last step, if one
        became due in it."""
        self.close("epoch")
        with self.job(120, ["--save-every", "200ms", "--time-limit", "4s"]) as job:
            self.await_place(job, "epoch", 2)
            self.ended(job, 75, "the same command resumes from step")
            saved = job.find("saved")[-1]["step"]
            state = "the state is saved:" if saved == 120 else \
                "the state of step 120 is not saved: no step has ended since then;"
            self.assertIn(f"{state} the same command resumes from step {saved}", job.last_line())
        self.open("epoch")
        self.finish(480)

    def test_without_a_save_it_is_not_75(self) -> None:
        self.close("epoch")
        with self.job(40, ["--time-limit", "4s"]) as job:
            self.await_place(job, "epoch", 2)
            self.ended(job, 143, "there is no whole save")


class Starting(Evaluates):
    def test_a_worker_that_starts_is_not_waited_for(self) -> None:
        with self.job(10_000, ["--grace", "30s"]) as job:
            job.wait_for("sample", step=lambda step: step > 0)
            self.close("start")
            kill(min(job.workers().values()))
            self.await_place(job, "start", 1)
            kill(job.process.pid, signal.SIGTERM)
            self.ended(job, 75, "the state is saved", 15)

    def test_where_nobody_holds_the_state_the_newest_save_is_enough(self) -> None:
        with self.job(10_000, ["--save-every", "100ms"]) as job:
            job.wait_for("saved")
            self.close("start")
            for pid in job.workers().values():
                kill(pid)
            self.await_place(job, "start", 2)
            kill(job.process.pid, signal.SIGTERM)
            self.ended(job, 75, "the same command resumes from", 15)


if __name__ == "__main__":
    unittest.main()
