#!/usr/bin/env python3
"""Workers that send false messages: neither the job nor another worker is lost."""
import os
import re
import signal
import sys
import unittest

from job import Job, kill, until

LIAR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lying_worker.py")


class Lies(unittest.TestCase):
    def run_job(self, lie: str) -> Job:
        return Job(["-H", "localhost:2", "--grace", "1s", "--explain"], [sys.executable, LIAR, lie])

    def finish(self, job: Job) -> None:
        kill(job.process.pid, signal.SIGTERM)
        self.assertEqual(job.wait(30), 143, job.err())

    def test_a_reason_forges_no_line(self) -> None:
        with self.run_job("forged") as job:
            until("the worker leaves", lambda: "left: " in job.err(), 20)
            self.finish(job)
            line = next(line for line in job.err().splitlines() if "left: " in line)
            self.assertTrue(line.startswith("elasticrun: worker "), line)
            self.assertIn("left:   elasticrun: forged ?[31m ?2Jxxx", line)
            self.assertLess(len(line), 5000)
            for odd in ("\x1b", "\x9b", "\nelasticrun: forged"):
                self.assertNotIn(odd, job.err())

    def test_a_flood_costs_no_host(self) -> None:
        with self.run_job("flood") as job:
            until("all is sent", lambda: "lied" in job.out(), 60)
            pids = [event["pid"] for event in job.find("worker_started")]
            self.finish(job)
            self.assertEqual(len(pids), 2, job.err())
            self.assertEqual(job.find("host_lost"), [], job.err())
            self.assertIsNone(re.search("lost|too much", job.err()), job.err())

    def test_an_impossible_step_ends_no_training(self) -> None:
        with self.run_job("steps") as job:
            fenced = job.wait_for("fenced")
            self.assertIn("reported what cannot be: step 9223372036854775807", fenced["reason"])
            self.finish(job)
            self.assertNotIn("9223372036854775807 steps", job.err())


if __name__ == "__main__":
    unittest.main()
