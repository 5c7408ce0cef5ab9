#!/usr/bin/env python3
"""Odd programs, odd command lines, odd surroundings: each job ends with the exit code and the
message that the manual promises, and leaves nothing behind.

Most cases are in one table: a command line, what it must print, and the last line of its errors.
Cases that need surroundings (a taken port, a full disk, a worker that exits in mid-training) follow
it.
"""
import os
import select
import re
import signal
import socket
import subprocess
import unittest
from dataclasses import dataclass, field

from job import BIN, FASHION, Job, Late, kill, read, until

QUITTER = os.path.join(BIN, "quitter")
MISTAKEN = os.path.join(BIN, "mistaken")


@dataclass
class Case:
    options: list[str]
    program: list[str]
    code: int
    words: str = ""        # a regular expression that the last line on standard error matches
    out: str | None = None  # all of standard output
    starts: bool = True    # something may have been started
    files: dict[str, str] = field(default_factory=dict)


HOSTS = ["--hosts", "hosts"]
CASES = {
    "true": Case([], ["true"], 0, "^$", ""),
    "false": Case([], ["false"], 1, "localhost.*exited with code 1"),
    "exit 7": Case([], ["sh", "-c", "exit 7"], 7, "worker 1 .*localhost.*exited with code 7"),
    "killed": Case([], ["sh", "-c", "kill -9 $$"], 137, "localhost.*killed by signal 9 .SIGKILL."),
    "segmentation fault": Case([], ["sh", "-c", "kill -SEGV $$"], 139, "SIGSEGV"),
    "words": Case(["--label", "none"], ["echo", "a b"], 0, "^$", "a b\n"),
    "flags of the program": Case(["--label", "none"], ["echo", "--np", "9", "-H"], 0, "^$",
                                 "--np 9 -H\n"),
    "two dashes": Case(["--label", "none"], ["--", "printf", "x"], 0, "^$", "x\n"),
    "label": Case([], ["printf", "half"], 0, "^$", "localhost:0: half\n"),
    "first failure counts": Case(
        ["-H", "localhost:3"], ["sh", "-c", "[ $RANK = 1 ] && exit 9; exec sleep 60"], 9,
        "rank 1.*exited with code 9"),
    "closes its output": Case([], ["sh", "-c", "exec >&- 2>&-; exit 5"], 5, "exited with code 5"),
    "not there": Case([], ["no-such-program-here"], 127,
                      "localhost: program 'no-such-program-here' not found"),
    "not there, with a path": Case([], ["./nothing"], 127, "localhost: program './nothing' not"),
    "not executable": Case([], ["./plain"], 126, "localhost: program './plain' cannot be run: Perm",
                           files={"plain": "text\n"}),
    "a folder": Case([], ["/tmp"], 126, "'/tmp' cannot be run"),
    "no program": Case([], [], 2, "no program given", starts=False),
    "unknown flag": Case(["--max-bach", "64"], ["true"], 2,
                         "unknown flag --max-bach; did you mean --max-batch[?]", starts=False),
    "flag without a value": Case(["--np"], [], 2, "--np needs a value", starts=False),
    "not a number": Case(["--np", "many"], ["true"], 2, "--np.*many", starts=False),
    "no policy": Case(["--policy", "thruput"], ["true"], 2, "thruput", starts=False),
    "no time": Case(["--grace", "soon"], ["true"], 2, "--grace.*soon", starts=False),
    "deadlines": Case(["--agent-timeout", "20s"], ["true"], 2,
                      "--agent-timeout.*shorter than --lease", starts=False),
    "more than there is": Case(["-H", "localhost:2", "--np", "3"], ["true"], 2, "2",
                               starts=False),
    "far away": Case(["-H", "no-such-host.invalid:2"], ["true"], 121, "no-such-host.invalid",
                     starts=False),
    "no host file": Case(HOSTS, ["true"], 2, "hosts.*No such file", starts=False),
    "duplicate host": Case(HOSTS, ["true"], 2, "hosts:3: localhost is given twice.*line 1",
                           starts=False, files={"hosts": "localhost:2\n\nlocalhost:2\n"}),
    "bad slots": Case(HOSTS, ["true"], 2, "hosts:2: .*slots", starts=False,
                      files={"hosts": "# mine\nlocalhost slots=-2\n"}),
    "slots that are no number": Case(HOSTS, ["true"], 2, "hosts:1: .*slots", starts=False,
                                     files={"hosts": "localhost slots=all\n"}),
    "empty host file": Case(HOSTS, ["true"], 2, "hosts: no host in it", starts=False,
                            files={"hosts": "# nobody\n"}),
    "event file in no folder": Case(["--events", "no/folder/events"], ["true"], 2,
                                    "--events no/folder/events: No such", starts=False),
    "logs under a file": Case(["--log-dir", "plain/logs"], ["true"], 2, "--log-dir plain/logs",
                              starts=False, files={"plain": ""}),
}


class Table(unittest.TestCase):
    def run_case(self, case: Case) -> None:
        # A shell makes the files before the program starts.
        script = "".join(f"cat > {name} <<'END'\n{text}END\n" for name, text in case.files.items())
        start = ["sh", "-c", script + 'exec "$@"', "sh"] if script else []
        with Job(case.options, case.program, start=start) as job:
            self.assertEqual(job.wait(30), case.code, job.err())
            self.assertRegex(job.last_line(), case.words)
            if case.code in (0, 2):
                self.assertLessEqual(len(job.err().splitlines()), 1, "one line says it")
            if case.out is not None:
                self.assertEqual(job.out(), case.out)
            if not case.starts:
                self.assertFalse(job.find("host_up"), "nothing may have been started")
            self.assertNotRegex(job.err(), r"terminate called|what\(\)|Aborted|internal error")
            self.assertEqual(job.leftovers(), [])

    def test_cases(self) -> None:
        for name, case in CASES.items():
            with self.subTest(name):
                self.run_case(case)


class Plain(unittest.TestCase):
    """Programs without the library get what torchrun gives them."""

    def test_environment(self) -> None:
        with Job(["-H", "localhost:4", "--label", "none"], ["env"]) as job:
            self.assertEqual(job.wait(), 0, job.err())
            lines = job.out().splitlines()
            self.assertEqual(job.leftovers(), [])
        self.assertEqual(sorted(line for line in lines if line.startswith("RANK=")),
                         [f"RANK={rank}" for rank in range(4)])
        for name in ("LOCAL_RANK", "ROLE_RANK"):
            self.assertEqual(len({line for line in lines if line.startswith(name + "=")}), 4, name)
        for line in ("WORLD_SIZE=4", "LOCAL_WORLD_SIZE=4", "GROUP_RANK=0", "GROUP_WORLD_SIZE=1",
                     "ROLE_WORLD_SIZE=4", "MASTER_ADDR=127.0.0.1", "TORCHELASTIC_RESTART_COUNT=0",
                     "TORCHELASTIC_MAX_RESTARTS=0"):
            self.assertEqual(lines.count(line), 4, line)
        for name in ("MASTER_PORT", "TORCHELASTIC_RUN_ID", "ELASTICRUN_JOB_ID"):
            self.assertEqual(len({line for line in lines if line.startswith(name + "=")}), 1, name)

    def test_every_event_names_its_job(self) -> None:
        with Job(["--label", "none"], ["sh", "-c", "echo $ELASTICRUN_JOB_ID"]) as job:
            self.assertEqual(job.wait(), 0, job.err())
            self.assertEqual({event.get("job") for event in job.all_events()},
                             {job.out().strip()})
            self.assertTrue(job.find("job_started"))

    def test_standard_input_is_empty(self) -> None:
        with Job(["-H", "localhost:2", "--label", "none"], ["sh", "-c", "cat; echo end"]) as job:
            self.assertEqual(job.wait(), 0, job.err())
            self.assertEqual(job.out(), "end\nend\n")

    def test_a_flood_of_output_arrives_whole(self) -> None:
        count = 200_000
        with Job(["-H", "localhost:2"], ["seq", str(count)]) as job:
            self.assertEqual(job.wait(), 0, job.err())
            lines = [line.split(": ")[1] for line in job.out().splitlines()]
            self.assertEqual(len(lines), 2 * count)
            self.assertEqual(sum(map(int, lines)), count * (count + 1))
            self.assertEqual(job.leftovers(), [])


    def test_a_long_command_line_arrives_whole(self) -> None:
        with Job([], ["sh", "-c", "echo $#", "sh", *["x"] * 100_000]) as job:
            self.assertEqual(job.wait(), 0, job.err())
            self.assertEqual(job.out(), "localhost:0: 100000\n")


class Readers(unittest.TestCase):
    """The reader of the output may be slow, late, gone or full."""

    def setUp(self) -> None:
        self.reader, self.writer = os.pipe()
        self.addCleanup(os.close, self.reader)

    def started(self, program: list[str]) -> Job:
        """A job that writes into the pipe."""
        job = Job(["--label", "none"], program, stdout=self.writer)
        os.close(self.writer)
        return job

    def test_one_that_comes_late_gets_all(self) -> None:
        count = 400_000
        os.set_blocking(self.writer, False)  # as another user of the same terminal may have done
        with self.started(["seq", str(count)]) as job:
            job.wait_for("job_finished")
            with self.assertRaises(Late):
                job.wait(1.5)
            with open(self.reader, "rb", closefd=False) as file:
                self.assertEqual(sum(map(int, file)), count * (count + 1) // 2)
            self.assertEqual(job.wait(), 0, job.err())
            self.assertEqual(job.err(), "")
            self.assertEqual(job.leftovers(), [])

    def test_one_that_never_comes_does_not_keep_an_interrupted_job(self) -> None:
        probe = os.dup(self.writer)
        self.addCleanup(os.close, probe)
        with self.started(["sh", "-c", "seq 100000; exec sleep 100"]) as job:
            until("a full pipe", lambda: not select.select([], [probe], [], 0)[1], 20)
            kill(job.process.pid, signal.SIGINT)
            self.assertEqual(job.wait(20), 130)
            self.assertEqual(job.leftovers(), [])

    def test_one_that_goes_away(self) -> None:
        with self.started(["sh", "-c", "seq 100000; exit 3"]) as job:
            os.read(self.reader, 10)
            with open(os.devnull, "rb") as nothing:
                os.dup2(nothing.fileno(), self.reader)
            self.assertEqual(job.wait(), 3)
            self.assertEqual(len(job.err().splitlines()), 1, job.err())

    def test_a_full_disk_is_said(self) -> None:
        os.close(self.writer)
        with open("/dev/full", "wb") as full, Job([], ["seq", "100000"], stdout=full) as job:
            self.assertEqual(job.wait(), 0)
            self.assertEqual(len(re.findall("No space left", job.err())), 1, job.err())

    def test_closed_output_is_nowhere(self) -> None:
        os.close(self.writer)
        with Job([], ["sh", "-c", "echo lost; exit 3"],
                 start=["sh", "-c", 'exec "$@" <&- >&-', "sh"]) as job:
            self.assertEqual(job.wait(), 3)
            self.assertEqual(len(job.err().splitlines()), 1, job.err())
            self.assertEqual(job.leftovers(), [])


class Surroundings(unittest.TestCase):
    def test_a_port_in_use(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            with Job(["--port", str(port)], ["true"]) as job:
                self.assertEqual(job.wait(), 121, job.err())
                self.assertRegex(job.last_line(), f"{port}.*in use")
                self.assertFalse(job.find("host_up"))
                self.assertEqual(job.leftovers(), [])

    def test_a_port_of_a_range_is_free(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            with Job(["--port", f"{port}-{min(port + 50, 65535)}"], ["true"]) as job:
                self.assertEqual(job.wait(), 0, job.err())

    def test_bind_where_all_hosts_are_this_machine(self) -> None:
        own = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=True)
        for address in ["127.0.0.1", *own.stdout.split()[:1]]:
            with self.subTest(address), Job(["--bind", address], ["true"]) as job:
                self.assertEqual(job.wait(), 0, job.err())

    def test_a_parent_that_ignores_the_ends_of_children(self) -> None:
        with Job(["-H", "localhost:2"], ["true"], start=["env", "--ignore-signal=CHLD"]) as job:
            self.assertEqual(job.wait(), 0, job.err())
            self.assertEqual(job.leftovers(), [])

    def test_a_parent_that_blocks_signals(self) -> None:
        with Job(["-H", "localhost:2"], ["sleep", "100"], start=["env", "--block-signal=TERM"]) as job:
            job.wait_for("worker_started")
            kill(job.process.pid, signal.SIGTERM)
            self.assertEqual(job.wait(30), 143, job.err())
            self.assertEqual(job.leftovers(), [])

    def test_a_full_disk_costs_the_record_and_not_the_training(self) -> None:
        train = [FASHION, "--samples", "1600", "--epochs", "1", "--batch", "32"]
        with Job(["-H", "localhost:2", "--events", "/dev/full"], train) as job:
            self.assertEqual(job.wait(), 0, job.err())
            told = re.findall("No space left", job.err())
            self.assertEqual(len(told), 1, job.err())
            self.assertIn("test accuracy", job.out())

    @unittest.skipIf(os.geteuid() != 0, "a device of one's own needs root")
    def test_full_logs(self) -> None:
        chatter = ["sh", "-c", "for i in 1 2 3 4 5; do echo $i; done"]
        full = "mknod logs/localhost.0.worker1.out c 1 7"  # as /dev/full; links are not followed
        script = ["sh", "-c", f'mkdir logs; {full}; exec "$@"', "sh"]
        with Job(["--log-dir", "logs"], chatter, start=script) as job:
            self.assertEqual(job.wait(), 0, job.err())
            self.assertEqual(len(re.findall("No space left", job.err())), 1, job.err())
            self.assertEqual(len(job.out().splitlines()), 5)

    def test_logs_hold_all_output(self) -> None:
        chatter = ["sh", "-c", "echo out $RANK; echo err $RANK >&2; printf half"]
        with Job(["-H", "localhost:2", "--log-dir", "logs/deep"], chatter) as job:
            self.assertEqual(job.wait(), 0, job.err())
            folder = job.path("logs/deep")
            logs = {name: read(os.path.join(folder, name)) for name in os.listdir(folder)}
        self.assertEqual(logs, {"localhost.0.worker1.out": "out 0\nhalf\n",
                                "localhost.0.worker1.err": "err 0\n",
                                "localhost.1.worker2.out": "out 1\nhalf\n",
                                "localhost.1.worker2.err": "err 1\n"})


class Quitters(unittest.TestCase):
    """A worker that exits 0 in mid-training has failed, whatever its code says."""

    def test_once(self) -> None:
        with Job(["-H", "localhost:3", "--max-batch", "12"], [QUITTER, "once"]) as job:
            self.assertEqual(job.wait(), 0, job.err())
            self.assertIn("exited with 0 in mid-training without leave()", job.err())
            self.assertIn("forced", job.last_line())
            self.assertEqual(len(job.find("worker_exited", expected=False)), 1)
            self.assertEqual(job.leftovers(), [])

    def test_always(self) -> None:
        with Job(["-H", "localhost:2", "--np", "2", "--max-batch", "12", "--max-restarts", "1"],
                 [QUITTER, "always"]) as job:
            self.assertEqual(job.wait(), 123, job.err())
            self.assertRegex(job.last_line(), "more than --max-restarts 1.*exited with 0")
            self.assertEqual(len(job.find("restart_refused")), 1)
            self.assertEqual(job.leftovers(), [])

    def test_all_fail_alike(self) -> None:
        """When all make the same mistake, the job reports it, not the loss of the state."""
        for how, code in (("fail", 3), ("differ", 1)):
            with self.subTest(how), Job(["-H", "localhost:4", "--max-batch", "12"],
                                        [QUITTER, how]) as job:
                self.assertEqual(job.wait(), code, job.err())
                first = job.find("worker_exited")[0]["worker"]
                self.assertRegex(job.last_line(), rf"^elasticrun: worker {first} \(rank \d, localhost "
                                 rf"slot \d\) exited with code {code}, and so did the others")
                self.assertEqual(job.leftovers(), [])

    def test_a_step_that_kills_whoever_computes_it(self) -> None:
        """The step is tried three times, with a keeper of the state from the second time on."""
        with Job(["-H", "localhost:3", "--max-batch", "12"], [QUITTER, "poison"]) as job:
            self.assertEqual(job.wait(), 123, job.err())
            end = job.find("job_finished")[0]
            found = re.match(r"step (\d+) has killed its workers 3 times: (.*); in epoch 0, (.*)$",
                             end["reason"])
            self.assertIsNotNone(found, end["reason"])
            step, dead, samples = found.groups()
            self.assertEqual(int(step), end["steps"] + 1)
            self.assertRegex(dead, r"^(worker \d+ \(rank \d, localhost slot \d\) was killed by "
                                   r"signal 6 \(SIGABRT\)(; |$)){3}$")
            # One of these ranks had the sample; the keeper of the state had none. The last world
            # may have ended before all members were in it.
            self.assertRegex(samples, r"rank \d had samples (\d+ )*100( |,|$)")
            world = 1 + job.find("change_started", planned=True)[-1]["add"]
            self.assertLess(len(re.findall(r"rank \d had samples \d", samples)), world)
            self.assertIn(end["reason"], job.last_line())
            # Another worker that computed that step the third time may also die while the job ends;
            # and one that came to it before the others had made the one before, which they repeat.
            killed = job.find("worker_exited", signal=signal.SIGABRT, expected=False)
            ahead = [world for world in job.find("world_formed")[1:] if world["step"] < end["steps"]]
            self.assertLessEqual(len(ahead), 1)
            self.assertEqual(len(killed), 3 + len(ahead))
            self.assertEqual(job.leftovers(), [])

    def test_the_end_of_an_epoch_that_kills_is_told_from_a_step(self) -> None:
        with Job(["-H", "localhost:4", "--np", "2:4"], [QUITTER, "save"]) as job:
            self.assertEqual(job.wait(), 123, job.err())
            # The others may hear of the first death before they have applied the epoch's last step.
            self.assertRegex(job.find("job_finished")[0]["reason"],
                             r"^step [67], or on_epoch before it, has killed its workers 3 times: ")
            self.assertEqual(job.leftovers(), [])

    def test_state_that_differs_is_replaced(self) -> None:
        with Job(["-H", "localhost:3", "--max-batch", "12"], [QUITTER, "flip"]) as job:
            self.assertEqual(job.wait(), 0, job.err())
            (told,) = job.find("state_differs")
            self.assertTrue(told["repaired"])
            self.assertEqual((told["step"], told["where"]), (6, "bytes 0 to 799 of 'weights'"))
            (odd,) = told["workers"]
            self.assertRegex(job.err(), rf"after 6 steps the state of worker {odd} \(rank 1, "
                                        r"localhost slot \d\) differs from the others' somewhere "
                                        r"in bytes")
            self.assertEqual([world["step"] for world in job.find("world_formed")], [0, 6])
            self.assertEqual(job.find("worker_exited", expected=False), [])

    def test_of_two_states_nobody_knows_which_is_right(self) -> None:
        with Job(["-H", "localhost:2", "--max-batch", "12"], [QUITTER, "flip"]) as job:
            self.assertEqual(job.wait(), 124, job.err())
            self.assertRegex(job.last_line(), r"after 6 steps the members' states differ from each "
                                              r"other somewhere in bytes 0 to 799 of 'weights', "
                                              r"and none is in the majority")
            self.assertEqual(job.leftovers(), [])

    def test_a_step_that_kills_once(self) -> None:
        with Job(["-H", "localhost:3", "--max-batch", "12"], [QUITTER, "crash"]) as job:
            self.assertEqual(job.wait(), 0, job.err())
            self.assertEqual(len(job.find("worker_exited", expected=False)), 1)
            self.assertEqual(job.find("job_finished")[0]["steps"], 4 * 20)
            self.assertEqual(job.leftovers(), [])

    def test_forks(self) -> None:
        with Job(["-H", "localhost:3", "--max-batch", "12"], [QUITTER, "fork"]) as job:
            self.assertEqual(job.wait(), 0, job.err())
            self.assertRegex(job.last_line(), "^elasticrun: 80 steps in ")
            self.assertEqual(len(job.find("world_formed")), 1)
            self.assertEqual(job.leftovers(), [])

    def test_leaves(self) -> None:
        with Job(["-H", "localhost:3", "--max-batch", "12"], [QUITTER, "leave"]) as job:
            self.assertEqual(job.wait(), 0, job.err())
            self.assertFalse(job.find("worker_exited", expected=False))
            self.assertEqual(job.leftovers(), [])

    def test_a_loop_of_a_fixed_number_ends(self) -> None:
        """No worker is left behind in the last step, and none is replaced because it has ended."""
        with Job(["-H", "localhost:3", "--np", "3", "--max-batch", "12"],
                 [QUITTER, "finish"]) as job:
            self.assertEqual(job.wait(), 0, job.err())
            self.assertRegex(job.last_line(), "^elasticrun: 40 steps in ")
            self.assertEqual(len(job.find("worker_started")), 3)
            self.assertEqual(len(job.find("world_formed")), 1)

    def test_what_follows_the_training_may_take_long(self) -> None:
        with Job(["-H", "localhost:2", "--lease", "2s",
                  "--agent-timeout", "1s"], [QUITTER, "outlive"]) as job:
            self.assertEqual(job.wait(), 0, job.err())
            self.assertEqual(job.out().count("has ended by itself"), 2)
            self.assertEqual(job.leftovers(), [])

    def test_the_last_words_count_all_steps(self) -> None:
        """Steps since the last report count too, when the loop is over before the next one."""
        with Job(["-H", "localhost:1"], [QUITTER, "stop"]) as job:
            self.assertEqual(job.wait(), 0, job.err())
            self.assertRegex(job.last_line(), "^elasticrun: 40 steps in ")
            self.assertEqual(job.find("job_finished")[0]["steps"], 40)


class Mistakes(unittest.TestCase):
    """Programs that would end with wrong weights are refused, in a line that says why."""

    WORDS = {
        "stateless": "no state is registered",
        "gradientless": "no gradients are registered",
        "resized": r"'weights': .* has changed its size \(800 to 1600 bytes\)",
        "compute": "compute has changed the registered state 'weights' in step 0",
        "calls": "commit: the ranks have not made the same calls in step 2; rank ([02] of 3 has made: "
                 "all_reduce of 300 float64|1 of 3 has made: all_reduce of 600 float32); ",
        "sums": "step.sum: ('hits' stands where rank 0 has 'loss'|1 workers have other names)",
    }

    def test_each(self) -> None:
        for how, words in self.WORDS.items():
            with self.subTest(how), Job(["-H", "localhost:3", "--max-batch", "12"],
                                        [MISTAKEN, how]) as job:
                self.assertEqual(job.wait(), 1, job.err())
                said = [line for line in job.err().splitlines() if "mistaken: " in line]
                self.assertTrue(said)
                for line in said:
                    self.assertRegex(line, words)
                self.assertEqual(job.leftovers(), [])

    def test_a_newcomer(self) -> None:
        """It leaves, and the others train to the end; but its failure counts."""
        with Job(["-H", "localhost:2", "--np", "1:2"], [MISTAKEN, "caller"]) as job:
            self.assertEqual(job.wait(), 1, job.err())
            self.assertRegex(job.err(), r"worker 3 \(.*\) left: commit: the ranks have not made the same "
                             r"calls in step \d+; rank 1 of 2 has made: all_reduce of 300 float64, "
                             r"all_reduce of 0 float64; ")
            self.assertEqual(job.leftovers(), [])
        with Job(["-H", "localhost:2", "--np", "1:2", "--max-batch", "12"],
                 [MISTAKEN, "newcomer"]) as job:
            self.assertEqual(job.wait(), 1, job.err())
            self.assertRegex(job.err(), r"worker 3 \(.*\) left: train: the workers do not agree on "
                             r"epochs \(3 here\); all must be the same program")
            self.assertEqual(job.leftovers(), [])

    def test_none(self) -> None:
        with Job(["-H", "localhost:3", "--max-batch", "12"], [MISTAKEN, "right"]) as job:
            self.assertEqual(job.wait(), 0, job.err())
            self.assertRegex(job.last_line(), "^elasticrun: 40 steps in ")


if __name__ == "__main__":
    unittest.main()
