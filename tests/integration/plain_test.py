#!/usr/bin/env python3
"""Programs without the library: what torchrun does for them when a worker fails or hosts change.

The program of most tests is a small one in the way of torch.distributed: rank 0 listens at
MASTER_ADDR:MASTER_PORT, the others connect to it, all wait for each other, and whoever loses a peer
fails. It says when all have met, and ends when a file is there.
"""
import os
import re
import signal
import sys
import unittest

from job import Job, kill, until

MEET = [sys.executable, "-u", "-c", r"""
import json, os, select, signal, socket, sys
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    server = socket.create_server(address)
    peers = [server.accept()[0] for _ in range(size - 1)]
    for peer in peers:
        peer.sendall(b"!")
else:
    while True:
        try:
            peers = [socket.create_connection(address)]
            break
        except ConnectionRefusedError:
            pass
    assert peers[0].recv(1) == b"!"
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK", "GROUP_WORLD_SIZE", "MASTER_PORT",
         "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS")
print("met " + json.dumps({name: int(os.environ[name]) for name in names}))
while not os.path.exists(sys.argv[1]):
    lost = peers and select.select(peers, [], [], 0.01)[0]
    if lost and not os.path.exists(sys.argv[1]):  # else the peer has come to its end
        with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
            json.dump({"message": {"message": "RuntimeError: lost a peer"}}, file)
        sys.exit(1)
if rank == 0 and peers:
    select.select([], [], [], 0.05)
""", "stop"]
MET = re.compile(r'met (\{.*\})$', re.MULTILINE)


class Plain(unittest.TestCase):
    def met(self, job: Job, run: int, size: int) -> list[dict[str, int]]:
        """What the workers of the run (0, 1, ...) have said; the runs before had these sizes."""
        import json
        skip = sum(self.sizes[:run])
        until(f"run {run} of {size} meets",
              lambda: len(MET.findall(job.out())) >= skip + size, 30)
        self.sizes[run:] = [size]
        said = [json.loads(text) for text in MET.findall(job.out())[skip:skip + size]]
        self.assertEqual(sorted(one["RANK"] for one in said), list(range(size)))
        self.assertEqual({one["WORLD_SIZE"] for one in said}, {size})
        return said

    def setUp(self) -> None:
        self.sizes: list[int] = []

    def stop(self, job: Job) -> None:
        with open(job.path("stop"), "w", encoding="utf-8"):
            pass

    def test_a_killed_worker_restarts_all(self) -> None:
        with Job(["-H", "localhost:3", "--max-restarts", "3"], MEET) as job:
            ports = set()
            for run in range(3):
                said = self.met(job, run, 3)
                ports |= {one["MASTER_PORT"] for one in said}
                self.assertEqual({one["TORCHELASTIC_RESTART_COUNT"] for one in said}, {run})
                self.assertEqual({one["TORCHELASTIC_MAX_RESTARTS"] for one in said}, {3})
                if run == 2:
                    break
                workers = job.workers()
                victim = sorted(workers)[1]
                kill(workers[victim])
                restarted = job.wait_for("restarted", restarts=run + 1)
                self.assertTrue(restarted["counted"])
                self.assertRegex(restarted["reason"], rf"^worker {victim} \(rank 1, .*SIGKILL")
                self.assertFalse(set(workers) & set(job.workers()), "all are new")
            self.assertEqual(len(ports), 3, "each run has its own port")
            self.stop(job)
            self.assertEqual(job.wait(), 0, job.err())
            self.assertRegex(job.err(), "restart 2 of 3: worker 5 .*SIGKILL")
            self.assertEqual(job.leftovers(), [])

    def test_the_end_of_the_budget_has_the_code_of_the_culprit(self) -> None:
        program = ["sh", "-c", "[ $RANK = 0 ] && exec sleep 60; exit 7"]
        with Job(["-H", "localhost:2", "--max-restarts", "2"], program) as job:
            self.assertEqual(job.wait(), 7, job.err())
            self.assertEqual(len(job.find("restarted")), 2)
            self.assertRegex(job.last_line(), "rank 1.*exited with code 7")
            self.assertEqual(job.leftovers(), [])

    def test_without_max_restarts_a_failure_ends_the_job_with_its_message(self) -> None:
        with Job(["-H", "localhost:2"], MEET) as job:
            self.met(job, 0, 2)
            workers = job.workers()
            kill(workers[min(workers)], signal.SIGSTOP)
            self.addCleanup(kill, workers[min(workers)])
            os.kill(workers[max(workers)], signal.SIGKILL)
            self.assertEqual(job.wait(), 137, job.err())
            self.assertEqual(job.leftovers(), [])

    def test_what_a_worker_wrote_about_its_failure_is_shown(self) -> None:
        program = [sys.executable, "-c", """
import json, os
with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
    json.dump({"message": {"message": "RuntimeError: boom", "extraInfo": {}}}, file)
raise SystemExit(1)"""]
        with Job([], program) as job:
            self.assertEqual(job.wait(), 1)
            self.assertTrue(job.last_line().endswith("exited with code 1: RuntimeError: boom"),
                            job.last_line())
            self.assertEqual(job.leftovers(), [])

    def test_the_worker_that_wrote_first_is_the_cause(self) -> None:
        """Though it is still ending when its peer has failed for it."""
        program = ["sh", "-c", """
if [ $RANK = 1 ]; then
  echo boom > $TORCHELASTIC_ERROR_FILE; touch written; exec sleep 60
fi
while [ ! -e written ]; do sleep 0.01; done
echo a peer is gone > $TORCHELASTIC_ERROR_FILE; exit 3"""]
        with Job(["-H", "localhost:2"], program) as job:
            self.assertEqual(job.wait(), 1)
            self.assertRegex(job.last_line(), r"worker 2 \(rank 1.*\) was killed .*: boom; 1 other")
            self.assertEqual(job.leftovers(), [])

    def test_a_growing_and_shrinking_host_file(self) -> None:
        def edit(text: str) -> None:
            with open(job.path("new"), "w", encoding="utf-8") as file:
                file.write(text)
            os.rename(job.path("new"), job.path("hosts"))

        make = ["sh", "-c", 'echo localhost:2 > hosts; exec "$@"', "sh"]
        with Job(["--hosts", "hosts", "--np", "1:4", "--settle", "200ms"], MEET,
                 start=make) as job:
            self.met(job, 0, 2)
            edit("localhost:2\n127.0.0.1:1\n")
            said = self.met(job, 1, 3)
            self.assertEqual({one["GROUP_WORLD_SIZE"] for one in said}, {2})
            self.assertEqual({one["TORCHELASTIC_RESTART_COUNT"] for one in said}, {0})
            kill(job.agents()[-1])  # one of the two hosts is lost, and comes back
            job.wait_for("host_down")
            job.wait_for("restarted", reason=lambda text: "was lost with its host" in text)
            edit("localhost:2\n")
            until("a run of two", lambda: job.out().count('"WORLD_SIZE": 2') >= 4, 60)
            self.assertTrue(all(not event["counted"] for event in job.find("restarted")))
            self.stop(job)
            self.assertEqual(job.wait(), 0, job.err())
            self.assertEqual(job.leftovers(), [])

    def test_a_worker_that_is_deaf_is_killed_after_the_grace_time(self) -> None:
        program = ["sh", "-c", "trap '' TERM; [ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; "
                               "[ $RANK = 1 ] && exit 3; while :; do sleep 0.1; done"]
        with Job(["-H", "localhost:2", "--max-restarts", "1", "--grace", "300ms"], program) as job:
            self.assertEqual(job.wait(), 0, job.err())
            self.assertRegex(job.find("restarted")[0]["reason"], "rank 1.*exited with code 3$")
            self.assertEqual(job.leftovers(), [])

    def test_a_policy_sizes_a_program_that_says_how_it_gets_on(self) -> None:
        program = ["sh", "-c", "while [ ! -e stop ]; do echo samples=8 >&$ELASTICRUN_PROGRESS_FD; "
                               "sleep 0.02; done"]
        options = ["-H", "localhost:3", "--np", "1:3", "--start", "1", "--policy", "throughput",
                   "--settle", "300ms"]
        with Job(options, program) as job:
            job.wait_for("sample", global_batch=8)
            job.wait_for("decision", target=2)
            job.wait_for("sample", global_batch=24)
            self.assertTrue(all(not event["counted"] for event in job.find("restarted")))
            job.wait_said("throughput: ")
            self.stop(job)
            self.assertEqual(job.wait(), 0, job.err())
            self.assertEqual(job.leftovers(), [])

    def test_streams_go_where_torchruns_flags_say(self) -> None:
        program = ["sh", "-c", "echo out $RANK; echo err $RANK >&2"]
        shown = {"-r 3": set(), "-t 3": {"out 0", "out 1", "err 0", "err 1"},
                 "-r 0:1,1:2": {"err 0", "out 1"},
                 "-r 3 --local-ranks-filter 0 -t 1": {"out 0"},
                 "--local-ranks-filter 1": {"out 1", "err 1"}}
        logged = {"-r 3": 4, "-t 3": 4, "-r 0:1,1:2": 2, "-r 3 --local-ranks-filter 0 -t 1": 4,
                  "--local-ranks-filter 1": 4}
        for flags, lines in shown.items():
            options = ["-H", "localhost:2", "--label", "none", "--log-dir", "logs", *flags.split()]
            with self.subTest(flags), Job(options, program) as job:
                self.assertEqual(job.wait(), 0, job.err())
                self.assertEqual(set((job.out() + job.err()).splitlines()), lines)
                self.assertEqual(len(os.listdir(job.path("logs"))), logged[flags])
        with Job(["-r", "3"], ["true"]) as job:
            self.assertEqual(job.wait(), 2)
            self.assertIn("--redirects: there are no log files; add --log-dir DIR", job.err())
        with Job(["--tee", "4", "--log-dir", "logs"], ["true"]) as job:
            self.assertEqual(job.wait(), 2)
            self.assertIn("'4' names no streams", job.err())


if __name__ == "__main__":
    unittest.main(verbosity=2)
