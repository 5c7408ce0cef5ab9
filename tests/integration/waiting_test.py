#!/usr/bin/env python3
"""Each state in which something waits has an end, can be interrupted, and costs no processor time.

    waiting_test.py Manual Quick    the deadline of some rows, and one signal of each
    waiting_test.py Agents All      all rows: the deadline, INT, TERM and HUP; and agents by hand

ROW in the environment, a regular expression, chooses rows.

There is one table, that of elasticrun(1), WAITING: a row brings a real job into a state and holds
it there. Then its deadline must end the state in time, with the exit code and the line that the
manual promises; each signal must end the job within the grace time; and while it waits, the
controller must use hardly any processor time (IDLE_SHARE).

Times are printed. They may be 100 ms late on an idle machine; WAITING_FACTOR multiplies this
allowance (default: 20, for machines that do something else as well).
"""
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
import unittest
from collections.abc import Callable
from dataclasses import dataclass, field

from job import (BIN, FASHION, MARK, SANITIZED, Job, fields_of, kill, parent_of, read, replace_file,
                 until)

FACTOR = float(os.environ.get("WAITING_FACTOR", "60" if SANITIZED else "20"))
LATE = 0.1 * FACTOR  # seconds
GRACE = 1.0
REPORT = 0.5  # --sample-interval: what a worker does is known from its reports
DEADLINE = 2.0  # of each row, where it can be set
PATIENCE = 60
IDLE_SHARE = 0.05 if SANITIZED else 0.015  # of a processor, by each process that waits
MANUAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../man/elasticrun.1")
AGENT = os.path.join(BIN, "elasticrun-agent")
QUITTER = os.path.join(BIN, "quitter")
TICK = 1 / os.sysconf("SC_CLK_TCK")  # of the kernel's account of processor time, seconds
SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 143}
TRAIN = [FASHION, "--samples", "2560", "--epochs", "10000", "--batch", "32", "--device-ms", "0.5"]
TRAIN_ONCE = [FASHION, "--samples", "256", "--epochs", "1", "--batch", "32"]
DEAF = ["sh", "-c", "trap '' TERM INT HUP; echo deaf; while :; do sleep 0.1; done"]
# All deadlines that a row is not about keep their long defaults, so that they end nothing.
COMMON = ["--grace", "1s", "--policy", "fixed"]
DEADLINE_TEXT = "2s"
QUICK_LEASE = ["--heartbeat", "200ms", "--agent-timeout", "1s", "--lease", DEADLINE_TEXT,
               "--standstill-timeout", "100ms"]
QUICK_HUNG = ["--abort-timeout", "1s", "--prepare-timeout", "1s", "--transfer-timeout", "1s",
              "--hung", DEADLINE_TEXT]


@dataclass
class Row:
    """A state: `options` and `program` lead to it, and `reach` waits for it or makes it."""
    options: list[str]
    program: list[str]
    reach: Callable[[Job], object]
    # How it ends: an exit code and the last line, or a line after which the job continues (None).
    code: int | None = None
    words: str = ""
    deadline: float | None = DEADLINE  # None: the state may last
    more: float = 0.0                  # seconds that the end itself may take
    more_on_signal: float = 0.0
    quick: bool = False
    idle: bool = False  # workers wait as well, and must not spin either
    pipe: bool = False  # its standard output goes into a pipe that is not read
    files: dict[str, str] = field(default_factory=dict)
    signals: dict[int, int] = field(default_factory=lambda: dict(SIGNALS))


def said(words: str) -> Callable[[Job], object]:
    return lambda job: until(f"{words} is said", lambda: re.search(words, job.err()), PATIENCE)


def printed(words: str) -> Callable[[Job], object]:
    return lambda job: until(f"{words} is printed", lambda: words in job.out(), PATIENCE)


def runs(name: str) -> Callable[[Job], object]:
    """Waits for a process of that name."""
    return lambda job: until(f"{name} runs", lambda: job.named(name), PATIENCE)


def trains(size: int) -> Callable[[Job], object]:
    return lambda job: job.wait_for("world_formed", size=size) and job.wait_for("sample")


def started(size: int) -> Callable[[Job], object]:
    return lambda job: until("workers", lambda: len(job.workers()) == size, PATIENCE)


def stop_worker(job: Job) -> None:
    trains(2)(job)
    kill(max(job.workers().values()), signal.SIGSTOP)


def stop_agent(job: Job) -> None:
    trains(1)(job)
    for pid in job.agents() + job.watchdogs():
        kill(pid, signal.SIGSTOP)


def fall_below_minimum(job: Job) -> None:
    """A worker dies when its slot is not in the file any more."""
    trains(2)(job)
    replace_file(job.path("hosts"), "localhost:1\n")
    said("1 of at least 2 workers; the job continues")(job)
    workers = job.workers()
    kill(workers[max(workers)])
    said("1 of at least 2 workers are left")(job)


def break_with_one_silent(job: Job) -> None:
    trains(3)(job)
    workers = job.workers()
    kill(workers[1], signal.SIGSTOP)
    kill(workers[2])
    job.wait_for("change_started", planned=False)


def stop_before_a_change(job: Job) -> None:
    """The only member is stopped, so it does not hear that the next group is to be formed."""
    trains(1)(job)
    kill(job.workers()[1], signal.SIGSTOP)
    after = job.now()
    replace_file(job.path("hosts"), "localhost:2\n")
    job.wait_for("change_started", after, planned=True)


def stop_agent_of_second(job: Job) -> None:
    """Its worker goes on and hears nothing, and no process is left that could kill it."""
    trains(2)(job)
    worker = max(job.workers().values())
    while parent_of(worker) != job.process.pid:
        worker = parent_of(worker)
        kill(worker, signal.SIGSTOP)


def stop_with_one_silent(job: Job) -> None:
    """The members cannot agree on a step after which they save."""
    stop_worker(job)
    kill(job.process.pid, signal.SIGTERM)
    said("saving the state within 2.0 s")(job)


def fill_the_pipe(job: Job) -> None:
    until("a full pipe", lambda: not select.select([], [job.pipe], [], 0)[1], PATIENCE)
    runs("sleep")(job)


def one_ready(job: Job) -> None:
    printed("begins")(job)
    until("a worker that waits for the other", lambda: job.named("fashion"), PATIENCE)


class Mute:
    """A server that accepts connections and sends nothing."""

    def __init__(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.server.getsockname()[1]
        self.clients: list[socket.socket] = []

    def accepted(self) -> bool:
        """Whether a new connection has come."""
        if select.select([self.server], [], [], 0)[0]:
            self.clients.append(self.server.accept()[0])
            return True
        return False


MUTE = Mute()
SH_ONE_TRAINS = ["sh", "-c", 'if [ "$RANK" = 1 ]; then echo begins; exec sleep 1000; fi; '
                 'exec "$0" "$@"', *TRAIN]
# In the manual, and not held here: tests/scenarios/membership/transfer_fails.txt has a transfer that does
# not move, tests/scenarios/job/dies_and_never_ends.txt a process that stays.
NOT_HELD = ["a state transfer", "the end of a worker that has died"]
ROWS = {
    # ---- before the first world
    "the first hosts that are discovered": Row(
        ["--host-discovery", "sleep 1000", "--discovery-timeout", DEADLINE_TEXT], ["true"],
        runs("sleep"), 2, "took longer than 2.0 s .--discovery-timeout.", quick=True),
    "hosts for the minimum": Row(
        ["--host-discovery", "echo localhost:1", "--np", "2", "--minimum-timeout", DEADLINE_TEXT,
         "--discovery-interval", "20s"],
        ["true"], said("1 of at least 2 workers are there"), 122, "fewer than 2 workers for 2.0 s",
        quick=True),
    "more hosts, and discovery hangs": Row(
        ["--host-discovery", "if [ -e asked ]; then sleep 1000; fi; : > asked; echo localhost:1",
         "--np", "2", "--minimum-timeout", DEADLINE_TEXT, "--discovery-interval", "50ms"], ["true"],
        runs("sleep"), 122, "fewer than 2 workers for 2.0 s"),
    "a host to greet by ssh": Row(
        ["--hosts", "hosts"], ["true"], said("waiting for 1 host"), 121,
        "nothing could be started: 127.0.0.1: ", deadline=10 - 3,  # said after 3 seconds
        files={"hosts": f"127.0.0.1 slots=1 port={MUTE.port}\n"}),
    "a plain program": Row([], ["sleep", "1000"], runs("sleep"), deadline=None, quick=True),
    "a worker to be ready": Row(
        ["-H", "localhost:2", "--np", "2", "--start-timeout", DEADLINE_TEXT, "--max-restarts", "0"],
        SH_ONE_TRAINS, one_ready, 123,
        "was not ready to train within 2.0 s", quick=True, idle=True),
    # ---- between two worlds
    "workers for the minimum": Row(
        ["--hosts", "hosts", "--np", "2", "--minimum-timeout", DEADLINE_TEXT], TRAIN,
        fall_below_minimum, 122, "fewer than 2 workers for 2.0 s", quick=True, idle=True,
        more=GRACE, files={"hosts": "localhost:2\n"}),
    "a worker's answer in a broken world": Row(
        ["-H", "localhost:3", "--abort-timeout", DEADLINE_TEXT], TRAIN, break_with_one_silent, None,
        "did not answer|has not answered"),
    "a worker to form the next group": Row(
        ["--hosts", "hosts", "--prepare-timeout", DEADLINE_TEXT], TRAIN, stop_before_a_change, None,
        "change dropped: ", files={"hosts": "localhost:1\n"}),
    "a silent agent, others answer": Row(
        ["-H", "localhost:1,127.0.0.1:1", "--heartbeat", "200ms", "--agent-timeout", DEADLINE_TEXT],
        TRAIN, stop_agent_of_second, None, "world 2: 1 worker", more_on_signal=2.0, quick=True),
    # ---- training
    "the end of a step": Row(
        ["-H", "localhost:1", *QUICK_HUNG, "--max-restarts", "0"],
        [*TRAIN[:-1], "1000"], lambda job: job.wait_for("world_formed"), 122,
        "was in one step for longer than --hung 2.0 s", more=REPORT),
    "the end of on_epoch": Row(
        ["-H", "localhost:2", "--epoch-timeout", DEADLINE_TEXT], [QUITTER, "evaluate"],
        printed("hangs"), None, "was in on_epoch for longer than --epoch-timeout 2.0 s",
        more=REPORT, idle=True),
    "a silent library": Row(
        ["-H", "localhost:2", "--np", "2", *QUICK_LEASE], TRAIN, stop_worker, None,
        ": its library sent nothing"),
    "silent agents, none answers": Row(
        ["-H", "localhost:1", "--np", "1", *QUICK_LEASE], TRAIN, stop_agent, 122, "state lost",
        more_on_signal=2.0),
    "a save of the state": Row(
        ["-H", "localhost:2", "--save", "state", "--save-timeout", DEADLINE_TEXT], TRAIN,
        stop_with_one_silent, 143, "the state is not saved: no step has ended since then", more=GRACE,
        signals=dict.fromkeys(SIGNALS, 143)),
    "a collective one worker does not call": Row(
        ["-H", "localhost:2", *QUICK_HUNG], [QUITTER, "hang"], printed("hangs"), None,
        "was in one step for longer than --hung 2.0 s", more=REPORT, idle=True),
    # ---- at the end
    "finish, if one worker does not call it": Row(
        ["-H", "localhost:2", *QUICK_HUNG], [QUITTER, "linger"], printed("hangs"), None,
        "was in one step for longer than --hung 2.0 s", more=REPORT, quick=True,
        idle=True),
    "a program after its training": Row(
        [], ["sh", "-c", '"$0" "$@"; echo trained; exec sleep 1000', *TRAIN_ONCE],
        printed("trained"), deadline=None),
    "a reader of the output": Row(
        [], ["sh", "-c", "seq 100000; exec sleep 1000"], fill_the_pipe, deadline=None,
        more_on_signal=1.0, pipe=True),
    "a program that ignores signals": Row([], DEAF, printed("deaf"), deadline=None, quick=True),
}


def processor_time(pids: list[int]) -> float:
    """Processor time in seconds that all their threads have used."""
    parts = [fields_of(pid) for pid in pids]
    return sum(int(part[11]) + int(part[12]) for part in parts if part) * TICK


class Waiting(unittest.TestCase):
    def job(self, row: Row) -> Job:
        script = "".join(f"printf '{text}' > {name}; " for name, text in row.files.items())
        start = ["sh", "-c", script.replace("\n", "\\n") + 'exec "$@"', "sh"]
        if not row.pipe:
            return Job([*COMMON, *row.options], row.program, start=start)
        reader, writer = os.pipe()
        for end in (reader, writer):
            self.addCleanup(os.close, end)
        job = Job([*COMMON, *row.options], row.program, start=start, stdout=writer)
        job.pipe = writer
        return job

    def report(self, name: str, what: str, took: float, limit: float) -> None:
        print(f"{name}: {what}: {took:.2f} s (promised {limit:.2f} s)", file=sys.stderr)
        self.assertLessEqual(took, limit + LATE)

    def check_deadline(self, name: str, row: Row) -> None:
        if row.deadline is None:
            return
        with self.subTest(name), self.job(row) as job:
            row.reach(job)
            begin = time.monotonic()
            limit = row.deadline + row.more
            if row.code is None:
                until(row.words, lambda: re.search(row.words, job.err()), limit + PATIENCE)
                self.report(name, "the deadline", time.monotonic() - begin, limit)
                kill(job.process.pid, signal.SIGTERM)
                job.wait(PATIENCE)
            else:
                code = job.wait(limit + PATIENCE)
                took = time.monotonic() - begin
                self.assertEqual(code, row.code, job.err())
                self.assertRegex(job.last_line(), row.words)
                self.report(name, "the deadline", took, limit)
            self.check_end(job)

    def check_end(self, job: Job) -> None:
        self.assertNotIn("elasticrun was stopped", job.err())
        job.gone(5)

    def check_signal(self, name: str, row: Row, number: int) -> None:
        what = signal.Signals(number).name
        with self.subTest(f"{name}, {what}"), self.job(row) as job:
            row.reach(job)
            self.check_processor(name, row, job)
            begin = time.monotonic()
            kill(job.process.pid, number)
            limit = GRACE + row.more_on_signal
            code = job.wait(limit + PATIENCE)
            self.report(name, what, time.monotonic() - begin, limit)
            self.assertEqual(code, row.signals[number], job.err())
            self.check_end(job)

    def check_processor(self, name: str, row: Row, job: Job) -> None:
        """Looks at the two halves of a second of the state, or less if it ends before. A process that
        spins does so in both; one that still ends what was before is calm in the second."""
        pids = {"elasticrun": [job.process.pid]}
        if row.idle:
            pids["all processes"] = job.pids()
        used: dict[str, list[float]] = {who: [] for who in pids}
        for _ in range(2):
            before = {who: processor_time(some) for who, some in pids.items()}
            end = time.monotonic() + 0.5
            until("half a second",
                  lambda end=end: time.monotonic() > end or job.process.poll() is not None, 10)
            if job.process.poll() is not None:
                return
            for who, some in pids.items():
                used[who].append(processor_time(some) - before[who])
        for who, halves in used.items():
            print(f"{name}: {who}: processor {200 * min(halves):.0f} %", file=sys.stderr)
            self.assertLess(min(halves), 0.5 * IDLE_SHARE * len(pids[who]) + TICK,
                            f"{who} must not spin: {halves}")


class Manual(unittest.TestCase):
    """The table here has the rows of the manual."""

    def test_table(self) -> None:
        with open(MANUAL, encoding="ascii") as file:
            section = file.read().split("\n.Sh WAITING\n")[1].split("\n.Sh ")[0]
        lines = re.findall(r'^\.It "(.*?)" Ta ', section, re.MULTILINE)
        self.assertEqual(sorted(lines), sorted([*ROWS, *NOT_HELD]))


class Agents(Waiting):
    """Agents that were started by hand, and agents whose controller is stopped."""

    def agent(self, job: Job, place: str, key: str) -> subprocess.Popen[bytes]:
        env = {**os.environ, "TMPDIR": job.temporary, MARK: job.mark}
        with open(job.path("agent"), "ab") as words:
            return subprocess.Popen([AGENT, "--join", place, "--key", key, "--name", "extra"],
                                    stderr=words, stdin=subprocess.DEVNULL, env=env,
                                    start_new_session=True)

    def joinable(self) -> Job:
        job = Job(["-H", "localhost:1", *COMMON, *QUICK_LEASE, "--join-key", "job.key"], TRAIN)
        until("it says how to join", lambda: " --join " in job.err(), PATIENCE)
        return job

    def ends(self, agent: subprocess.Popen[bytes], code: int, what: str, limit: float) -> None:
        begin = time.monotonic()
        self.assertEqual(agent.wait(limit + PATIENCE), code)
        self.report("an agent", what, time.monotonic() - begin, limit)

    def test_nobody_answers(self) -> None:
        with self.joinable() as job:
            for number, code, limit in ((None, 1, 5.0), (signal.SIGINT, 130, GRACE),
                                        (signal.SIGTERM, 143, GRACE)):
                agent = self.agent(job, f"127.0.0.1:{MUTE.port}", job.path("job.key"))
                until("it waits", MUTE.accepted, PATIENCE)
                if number:
                    agent.send_signal(number)
                self.ends(agent, code, f"nobody answers, signal {number}", limit)
            self.assertRegex(read(job.path("agent")), "cannot reach the controller: ")

    def test_the_controller_is_silent(self) -> None:
        """Workers end with the lease; an agent may take one more to hand over their last output."""
        for number, code in ((None, 1), (signal.SIGTERM, 143)):
            with self.joinable() as job:
                place = job.err().split(" --join ")[1].split()[0]
                agent = self.agent(job, place, job.path("job.key"))
                job.wait_for("world_formed", size=2)
                kill(job.process.pid, signal.SIGSTOP)
                begin = time.monotonic()
                if number:
                    agent.send_signal(number)
                until("the workers have gone", lambda: not job.named("fashion"), PATIENCE)
                self.report("a worker", f"silence, signal {number}", time.monotonic() - begin,
                            DEADLINE)
                self.assertEqual(agent.wait(PATIENCE), code)
                until("the agents have gone", lambda: job.pids() == [job.process.pid], PATIENCE)
                self.report("an agent", f"silence, signal {number}", time.monotonic() - begin,
                            2 * DEADLINE)


class Quick(Waiting):
    def test_rows(self) -> None:
        for index, (name, row) in enumerate(ROWS.items()):
            if row.quick:
                self.check_deadline(name, row)
                self.check_signal(name, row, list(SIGNALS)[index % len(SIGNALS)])


class All(Waiting):
    def test_rows(self) -> None:
        for name, row in ROWS.items():
            self.check_deadline(name, row)
            for number in SIGNALS:
                self.check_signal(name, row, number)


if __name__ == "__main__":
    if "ROW" in os.environ:
        ROWS = {name: row for name, row in ROWS.items() if re.search(os.environ["ROW"], name)}
    unittest.main()
