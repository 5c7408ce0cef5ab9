#!/usr/bin/env python3
"""Sources of hosts while a job runs: a program that prints them, and a choice among those of a
file. Whatever the program does, training goes on and nothing of it is left."""
import os
import signal
import subprocess
import unittest
from typing import Any

from job import ELASTICRUN, Job, kill, lives, read, replace_file, until
from training import Training

# Prints `hosts`, or executes the file `trouble` if there is one. Each run adds a line to `runs`.
PROGRAM = "echo run >> runs; if [ -e trouble ]; then . ./trouble; else cat hosts; fi"
QUICK = ["--discovery-interval", "50ms", "--discovery-timeout", "1s"]
STAYS = "; the hosts stay as they are"


class Discovering(Training):
    """Trains on the hosts that PROGRAM prints."""

    def __init__(self, hosts: str, options: list[str] | None = None) -> None:
        super().__init__(hosts, epochs=10000, device_ms=0.2,
                         where=("--host-discovery", PROGRAM), options=[*QUICK, *(options or [])])

    def runs(self) -> int:
        return read(self.path("runs")).count("\n")

    def make_trouble(self, script: str) -> None:
        replace_file(self.path("trouble"), script)

    def end_trouble(self) -> None:
        os.unlink(self.path("trouble"))

    def of_program(self) -> list[int]:
        """The processes of a run of the program, with those that it has started."""
        return [pid for pid in self.pids() if read(f"/proc/{pid}/comm").strip() in
                ("sh", "cat", "sleep", "yes", "setsid")]


def stop(case: unittest.TestCase, job: Training) -> None:
    kill(job.process.pid, signal.SIGTERM)
    case.assertEqual(job.wait(30), 143, job.err())
    case.assertEqual(job.unexpected_ends(), [])
    job.gone(5)


def set_and_wait(job: Training, text: str, size: int) -> dict[str, Any]:
    after = job.now()
    job.set_hosts(text)
    world = job.world(size, after)
    until("who left has gone", lambda: len(job.workers()) == size, 20)
    return world


class Discovery(unittest.TestCase):
    def test_grows_and_shrinks(self) -> None:
        with Discovering("localhost:2\\n") as job:
            job.world(2)
            stay = dict(job.workers())
            both = set_and_wait(job, "localhost:2\n127.0.0.1:1\n", 3)
            self.assertTrue(both["planned"])
            self.assertEqual(both["hosts"], ["localhost", "127.0.0.1"])
            self.assertTrue(set_and_wait(job, "localhost:2\n", 2)["planned"])
            self.assertTrue(set_and_wait(job, "localhost:3", 3)["planned"])  # no newline
            self.assertLessEqual(stay.items(), job.workers().items(), "nobody is restarted")
            stop(self, job)

    def check_trouble(self, job: Discovering, script: str, words: str) -> None:
        """It is reported once, training goes on with the same workers, and new hosts count."""
        stay, worlds = dict(job.workers()), len(job.find("world_formed"))
        said = job.err().count(words)
        job.make_trouble(script)
        until(f"{words} is said", lambda: job.err().count(words) > said, 20)
        runs, step = job.runs(), job.newest_step()
        until("more runs", lambda: job.runs() > runs + 2, 30)
        until("training goes on", lambda: job.newest_step() > step + 1, 20)
        self.assertEqual(job.err().count(words), said + 1, job.err())
        self.assertEqual((len(job.find("world_formed")), job.workers()), (worlds, stay))
        job.end_trouble()
        runs = job.runs()
        until("a run without trouble", lambda: job.runs() > runs + 2, 20)

    def test_troubles(self) -> None:
        with Discovering("localhost:2\\n") as job:
            job.world(2)
            self.check_trouble(job, "exit 7", "ended with exit code 7" + STAYS)
            self.check_trouble(job, "echo cloud is down >&2; false",
                               "ended with exit code 1: cloud is down" + STAYS)
            self.check_trouble(job, "echo 'a b c'", "--host-discovery:1: 'b' is not understood")
            self.check_trouble(job, r"printf '\001\377\n'", "--host-discovery:1: '?")
            self.check_trouble(job, ":", "--host-discovery: no host in it")
            self.check_trouble(job, "cat hosts; exec sleep 1000", "took longer than 1.0 s")
            self.check_trouble(job, "(trap '' TERM; sleep 1001) | sleep 1002; :",
                               "took longer than 1.0 s")
            self.check_trouble(job, "yes", "printed more than 1 MiB")
            self.check_trouble(job, "yes >&2", "took longer than 1.0 s (--discovery-timeout): y")
            self.assertEqual(set_and_wait(job, "localhost:3\n", 3)["size"], 3)
            stop(self, job)

    def test_garbage_that_is_another_each_time(self) -> None:
        with Discovering("localhost:1\\n") as job:
            job.world(1)
            job.make_trouble("echo host $(wc -l < runs)")
            until("it is said", lambda: "until it works again" in job.err(), 20)
            runs = job.runs()
            until("more runs", lambda: job.runs() > runs + 2, 20)
            self.assertEqual(job.err().count(STAYS), 5, job.err())
            stop(self, job)

    def test_words_are_shown_when_they_change(self) -> None:
        with Discovering("localhost:1\\n") as job:
            job.world(1)
            for words in ("one region is full", "two regions are full"):
                job.make_trouble(f"echo {words} >&2; cat hosts")
                until(words, lambda w=words: f"host discovery: {w}\n" in job.err(), 20)
                runs = job.runs()
                until("more runs", lambda r=runs: job.runs() > r + 3, 20)
                self.assertEqual(job.err().count(words), 1)
            self.assertNotIn(STAYS, job.err())
            stop(self, job)

    def test_one_at_a_time_and_none_left_behind(self) -> None:
        """What a run has started ends with it, is killed with it, and ends with the job."""
        slow = "sleep 2000 & cat hosts; sleep 2001 & exit 0"
        with Discovering("localhost:1\\n") as job:
            job.world(1)
            job.make_trouble(slow)
            runs = job.runs()
            until("runs", lambda: job.runs() > runs + 3, 20)
            self.assertLessEqual(len(job.named("sleep")), 2)
            job.make_trouble("exec sleep 2002")
            until("a run hangs", lambda: job.named("sleep"), 20)
            stop(self, job)

    def test_nothing_is_left_when_we_are_killed(self) -> None:
        script = "sleep 2000 | sleep 2001; :"
        with Discovering("localhost:1\\n", ["--discovery-timeout", "10m"]) as job:
            job.world(1)
            job.make_trouble(script)
            left = until("a run hangs", lambda: len(job.named("sleep")) == 2 and job.of_program(),
                         20)
            kill(job.process.pid)
            until("nothing of it lives", lambda: not any(map(lives, left)), 5)
            job.wait(5)


class First(unittest.TestCase):
    """The first run, before the start of the job."""

    def test_its_failure_is_a_line_and_code_2(self) -> None:
        for program, words in (
                ("./gone", "'./gone' ended with exit code 127: sh: 1: ./gone: not found"),
                ("exit 3", "'exit 3' ended with exit code 3"),
                ("sleep 3000", "'sleep 3000' took longer than 1.0 s (--discovery-timeout)")):
            with Job([*QUICK, "--host-discovery", program], ["true"]) as job:
                self.assertEqual(job.wait(20), 2)
                self.assertEqual(job.err(), f"elasticrun: --host-discovery: {words}\n")
                job.gone(2)

    def test_an_interrupt_ends_it(self) -> None:
        with Job(["--host-discovery", "sleep 3001 | sleep 3002"], ["true"]) as job:
            until("it runs", lambda: len(job.named("sleep")) == 2, 10)
            kill(job.process.pid, signal.SIGINT)
            self.assertEqual(job.wait(5), 130)
            job.gone(2)

    def test_it_has_no_input_and_no_terminal(self) -> None:
        script = "cat; (: < /dev/tty) 2>/dev/null && echo tty; ps -o sid= -p $$ | tr -d ' ' >&2; " \
            "echo localhost"
        env = {key: value for key, value in os.environ.items() if key != "ELASTICRUN_BIN"}
        done = subprocess.run([ELASTICRUN, "--host-discovery", script, "--label", "none", "true"],
                              input="garbage\n", capture_output=True, text=True, timeout=30,
                              check=False, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        session = int(done.stderr.split("host discovery: ")[1].split()[0])
        self.assertNotEqual(session, os.getsid(0))

    def test_waits_for_the_minimum(self) -> None:
        with Discovering("localhost:1\\n", ["--np", "2"]) as job:
            until("runs", lambda: job.runs() > 3, 20)
            self.assertEqual(job.find("world_formed"), [])
            job.set_hosts("localhost:1\n127.0.0.1:1\n")
            job.world(2)
            stop(self, job)


class Choice(unittest.TestCase):
    def test_of_a_file_that_changes(self) -> None:
        names = "localhost:2\n127.0.0.1:1\n127.0.0.2:1\n127.0.0.3:1\n"
        options = ["--include", "localhost:1,127.0.0.[1-2]", "--exclude", "127.0.0.2"]
        with Training(names.replace("\n", "\\n"), epochs=10000, device_ms=0.2,
                      options=options) as job:
            self.assertEqual(job.world(2)["hosts"], ["localhost", "127.0.0.1"])
            # A host in a filter that is not in the file, now or ever, is no error.
            world = set_and_wait(job, "localhost:4\n127.0.0.3:1\n127.0.0.4:1\n", 1)
            self.assertEqual(world["hosts"], ["localhost"])
            world = set_and_wait(job, "localhost:2\n127.0.0.1:3\n127.0.0.4:1\n", 4)
            self.assertEqual(world["hosts"], ["localhost", "127.0.0.1"])
            job.set_hosts("127.0.0.2:2\n127.0.0.3:2\n")
            until("it is said", lambda: "--include and --exclude leave no host" + STAYS
                  in job.err(), 20)
            step = job.newest_step()
            until("training goes on", lambda: job.newest_step() > step + 1, 20)
            self.assertEqual(len(job.workers()), 4)
            stop(self, job)

    def test_of_hosts_that_are_discovered(self) -> None:
        with Discovering("localhost:1\\n127.0.0.2:1\\n",
                         ["--exclude", "127.0.0.2", "--nnodes", "1:2"]) as job:
            self.assertEqual(job.world(1)["hosts"], ["localhost"])
            hosts = "localhost:1\n127.0.0.1:1\n127.0.0.2:1\n127.0.0.3:1\n"
            self.assertEqual(set_and_wait(job, hosts, 2)["hosts"], ["localhost", "127.0.0.1"])
            stop(self, job)

    def test_of_a_number_of_hosts(self) -> None:
        hosts = "localhost:2\n127.0.0.1:1\n127.0.0.2:3\n"
        with Training(hosts.replace("\n", "\\n"), epochs=10000, device_ms=0.2,
                      options=["--nnodes", "2"]) as job:
            self.assertEqual(job.world(3)["hosts"], ["localhost", "127.0.0.1"])
            set_and_wait(job, "localhost:2\n127.0.0.1:2\n127.0.0.2:3\n", 4)
            stop(self, job)

    def test_a_file_without_a_last_newline_is_followed(self) -> None:
        with Training("localhost:1", epochs=10000, device_ms=0.2) as job:
            job.world(1)
            set_and_wait(job, "localhost:2\n", 2)
            stop(self, job)


if __name__ == "__main__":
    unittest.main()
