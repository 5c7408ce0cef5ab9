"""One job of elasticrun under test: start it, follow its events, find its processes, see it end.

Every process of a job, however far it has moved away (setsid, a double fork, a killed parent),
carries a mark in its environment that only this job has; /proc shows it. Process groups, sessions
or parents would not do: the tests let processes get away from those. Temporary files are found
because the job has a TMPDIR of its own.

Nothing here sleeps for a fixed time: every wait looks for a condition until a deadline.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Self, TypeVar

BIN = os.environ.get("ELASTICRUN_BIN", "")
ELASTICRUN = os.path.join(BIN, "elasticrun")
FASHION = os.path.join(BIN, "fashion")
# Programs with a sanitizer are large and slow, and need much memory.
SANITIZED = bool(os.environ.get("ELASTICRUN_SANITIZE"))
# Ends the job when the test is killed, as ctest does with a test that takes too long.
TETHER = ["setpriv", "--pdeathsig", "TERM"]
# One process in its own session, one without a parent, one both and deaf; then the worker waits.
SCATTERED = ["sh", "-c", """
    setsid sleep 1000 &
    (sleep 1001 &)
    (setsid sh -c "trap '' INT TERM HUP; sleep 1002; sleep 1003" &)
    exec sleep 1004"""]
MARK = "JOB_UNDER_TEST"
LOOK_EVERY = 0.005  # seconds
Event = dict[str, Any]
T = TypeVar("T")


class Late(AssertionError):
    """What a test waited for did not come in time."""


def until(what: str, condition: Callable[[], T], seconds: float) -> T:
    """Waits for the condition and returns its first true value; raises Late after that time."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise Late(f"{what}: not within {seconds} s")
        time.sleep(LOOK_EVERY)
    return value


def finals(out: str) -> list[list[float]]:
    """The numbers of the lines "final NUMBER..." that the workers of a test print."""
    return [[float(word) for word in line.split()[1:]] for line in out.splitlines()
            if line.startswith("final ")]


def read(path: str) -> str:
    """A file of /proc or of a job; empty when it is not there (any more)."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def replace_file(path: str, text: str) -> None:
    """As an editor does: it writes another file and renames it."""
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(text)
    os.rename(path + ".new", path)


def fields_of(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; the name before it may contain blanks."""
    return read(f"/proc/{pid}/stat").rpartition(")")[2].split()


def lives(pid: int) -> bool:
    return (fields_of(pid) or ["X"])[0] not in "ZX"


def parent_of(pid: int) -> int:
    return int(fields_of(pid)[1])


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    """One process: numbers below 1 mean more than one, among them this test's own."""
    assert pid > 1, pid
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def resume(pid: int) -> None:
    """Only if it is stopped: SIGCONT cancels a SIGSTOP on its way, also that of the leak sanitizer,
    which stops its own process at the end and would wait for ever."""
    if fields_of(pid)[:1] == ["T"]:
        kill(pid, signal.SIGCONT)


def listeners() -> Iterator[tuple[int, str]]:
    """The port and the inode of each TCP socket of this network that listens."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in read(table).splitlines()[1:]:
            part = line.split()
            if part[3] == "0A":
                yield int(part[1].rpartition(":")[2], 16), part[9]


class Job:
    """A running elasticrun. As a context manager it leaves no process, whatever the test did."""

    def __init__(self, options: list[str], program: list[str], folder: str | None = None,
                 start: list[str] | None = None, **popen: Any) -> None:
        self.folder = tempfile.mkdtemp(prefix="er-test-")
        self.temporary = os.path.join(self.folder, "tmp")
        os.mkdir(self.temporary)
        self.events_file = os.path.join(self.folder, "events.json")
        self.mark = uuid.uuid4().hex
        env = {key: value for key, value in os.environ.items()
               if not key.startswith(("ELASTICRUN_", "XDG_RUNTIME"))}
        env |= {MARK: self.mark, "TMPDIR": self.temporary} | popen.pop("env", {})
        if "--events" not in options:
            options = ["--events", self.events_file, *options]
        self.err_file = open(os.path.join(self.folder, "err"), "w+", encoding="utf-8")
        self.out_file = open(os.path.join(self.folder, "out"), "w+", encoding="utf-8")
        popen = {"stdout": self.out_file, "stderr": self.err_file} | popen
        self.process = subprocess.Popen(
            [*TETHER, *(start or []), ELASTICRUN, *options, *program], stdin=subprocess.DEVNULL,
            env=env, cwd=folder or self.folder, **popen)
        self.events: list[Event] = []
        self.offset = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        for _ in range(100):
            if not (left := self.pids()):
                break
            for pid in left:
                kill(pid)
        self.process.wait()
        if error:
            print(f"--- the job's words:\n{self.err()[-4000:]}--- its last events:")
            telling = [event for event in self.all_events() if event["event"] != "sample"]
            print("\n".join(map(str, telling[-30:])))
        self.out_file.close()
        self.err_file.close()
        shutil.rmtree(self.folder)

    # ------------------------------------------------------------ output and events

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def out(self) -> str:
        return read(self.path("out"))

    def err(self) -> str:
        return read(self.path("err"))

    def wait_said(self, pattern: str, seconds: float = 60) -> None:
        """Waits for these words; an event may be read before the line that goes with it."""
        until(f"the words '{pattern}'", lambda: re.search(pattern, self.err()), seconds)

    def last_line(self) -> str:
        return (self.err().splitlines() or [""])[-1]

    def all_events(self) -> list[Event]:
        """All events that have been written so far, in order."""
        if os.path.exists(self.events_file):
            with open(self.events_file, encoding="utf-8") as file:
                file.seek(self.offset)
                new, whole, _ = file.read().rpartition("\n")
                self.offset += len((new + whole).encode())
                self.events += [json.loads(line) for line in new.splitlines()]
        return self.events

    def find(self, name: str, after: int = 0, **wanted: Any) -> list[Event]:
        """Events from number `after` on with these fields; a function as a value is a test."""
        def fits(event: Event) -> bool:
            return event["event"] == name and all(
                test(event.get(key)) if callable(test) else event.get(key) == test
                for key, test in wanted.items())
        return [event for event in self.all_events()[after:] if fits(event)]

    def wait_for(self, name: str, after: int = 0, seconds: float = 60, **wanted: Any) -> Event:
        """Waits for the first such event; Late when the job ends without it."""
        def look() -> list[Event] | None:
            ended = self.process.poll() is not None
            found = self.find(name, after, **wanted)
            if ended and not found:
                raise Late(f"the job ended ({self.process.returncode}) without {name} {wanted}")
            return found
        return until(f"event {name} {wanted}", look, seconds)[0]

    def wait_for_step(self) -> None:
        """Waits for a step of the newest world."""
        begun = self.find("world_formed")[-1]["step"]
        self.wait_for("sample", step=lambda step: step > begun)

    def now(self) -> int:
        """The number that the next event will have, for `after`."""
        return len(self.all_events())

    # ------------------------------------------------------------ processes

    def pids(self) -> list[int]:
        """All living processes of the job, wherever they have gone."""
        entry = f"{MARK}={self.mark}"
        return [int(name) for name in os.listdir("/proc") if name.isdigit()
                and entry in read(f"/proc/{name}/environ").split("\0") and lives(int(name))]

    def workers(self) -> dict[int, int]:
        """worker -> pid of those that the events call started and not exited."""
        pids = {event["worker"]: event["pid"] for event in self.find("worker_started")}
        for event in self.find("worker_exited"):
            pids.pop(event["worker"], None)
        return pids

    def named(self, name: str) -> list[int]:
        return [pid for pid in self.pids() if read(f"/proc/{pid}/comm").strip() == name]

    def watchdogs(self) -> list[int]:
        return self.named("er-watchdog")

    def agents(self) -> list[int]:
        return self.named("elasticrun-agen")  # the kernel keeps only this much of the name

    def sockets(self) -> set[str]:
        """Inodes of the sockets that processes of the job hold."""
        found = set()
        for pid in self.pids():
            folder = f"/proc/{pid}/fd"
            try:
                for name in os.listdir(folder):
                    target = os.readlink(os.path.join(folder, name))
                    if target.startswith("socket:["):
                        found.add(target[8:-1])
            except OSError:
                pass  # it has just ended
        return found

    def listening(self) -> set[int]:
        """Ports on which the job listens."""
        own = self.sockets()
        return {port for port, socket in listeners() if socket in own}

    # ------------------------------------------------------------ the end

    def wait(self, seconds: float = 60) -> int:
        """Waits for the end, and returns the exit code as a shell would show it."""
        until("the end of the job", lambda: self.process.poll() is not None, seconds)
        code = self.process.returncode
        return code if code >= 0 else 128 - code

    def leftovers(self, ports: set[int] = frozenset()) -> list[str]:
        """What is left of the job; it must be empty."""
        left = [f"process {pid}: {read(f'/proc/{pid}/cmdline')!r}" for pid in self.pids()]
        # A program that is killed while it starts leaves a file of the thread sanitizer, and Python's
        # multiprocessing its folder.
        left += [f"file {name} in TMPDIR" for name in os.listdir(self.temporary)
                 if not name.startswith(("tsan.rodata.", "pymp-"))]
        left += [f"port {port}" for port, _ in listeners() if port in ports]
        left += [f"socket {line}" for line in read("/proc/net/unix").splitlines()
                 if self.temporary in line]
        return left

    def gone(self, seconds: float, ports: set[int] = frozenset()) -> None:
        """Waits until nothing is left."""
        try:
            until("nothing left", lambda: not self.leftovers(ports), seconds)
        except Late:
            raise Late(f"left after {seconds} s: {self.leftovers(ports)}") from None


def rank_of(prefix: str, pid: int) -> int | None:
    """The rank in which this process computed last, from its record (lineage.py)."""
    lines = read(f"{prefix}.{os.uname().nodename}.{pid}").splitlines()
    for line in reversed(lines):
        part = line.split()
        if len(part) > 5 and part[0] in ("computed", "applied"):
            return int(part[4])
    return None


def steps_of(prefix: str, pid: int, host: str = os.uname().nodename) -> int:
    """The newest step that the process has committed; -1: none."""
    for line in reversed(read(f"{prefix}.{host}.{pid}").splitlines()):
        if line.startswith("applied ") and len(line.split()) > 6:
            return int(line.split()[1])
    return -1
