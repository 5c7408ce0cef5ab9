#!/usr/bin/env python3
"""The job's key cannot be read anywhere, and connections without it get nothing and do no harm.

The test has to know the key to look for it: on one host the login shell records the standard input
of the agent in a file. That file also proves that the search finds a key where there is one.
"""
import base64
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import unittest
from collections.abc import Iterator
from typing import NamedTuple

import bed as beds
from bed import Bed, Spec
from bed.job import BedJob, example
from job import BIN, FASHION, Job, kill, until

PATIENCE = 30
RECORD = "/run/record"  # on a host: the standard input of its commands
RECORDING = f"exec 0< <(tee >(grep -a --line-buffered key_hex >> {RECORD}))"
# Folders of a host with a root of its own that do not come from Debian.
OWN = ["dev/shm", "home", "mnt", "opt", "root", "run", "tmp", "usr/local", "var/tmp", "etc/ssh"]
TRAIN = "/root/train"


def bring_example(bed: Bed) -> list[str]:
    """Copies the program and its library to hosts that do not see this machine's."""
    for host in bed.hosts:
        os.mkdir(host.path(TRAIN))
        library = os.path.join(BIN, os.pardir, "lib", "libelasticrun.so.0")
        for path in (FASHION, library):
            shutil.copy(path, host.path(TRAIN))
    return [f"{TRAIN}/fashion", *example()[1:]]


class Told(NamedTuple):
    """What the agent of a host was told about its key, from the host's record."""
    job: str
    identity: str
    key: str


def told(bed: Bed, host: str) -> Told:
    def look() -> list[tuple[bytes, ...]]:
        # The agent itself, which was recorded before, contains these words too.
        text = content(bed[host].path(RECORD))
        return re.findall(rb'"job":"([0-9a-f]+)","identity":"([^"]+)","key_hex":"([0-9a-f]{64})"',
                          text)
    found = until("the line that an agent is told", look, PATIENCE)[-1]
    return Told(*(word.decode() for word in found))


def spellings(key: str) -> list[bytes]:
    raw = bytes.fromhex(key)
    return [raw, key.encode(), key.upper().encode(), base64.b64encode(raw)[:42]]


def content(path: str) -> bytes:
    """The content of a file; empty when there is none any more."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.read()
    return b""


def files_below(folder: str) -> Iterator[str]:
    for where, _, names in os.walk(folder):
        paths = [os.path.join(where, name) for name in names]
        yield from (path for path in paths if os.path.isfile(path) and not os.path.islink(path))


def process_files() -> Iterator[str]:
    """Files of all processes of this machine, including those of its hosts."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            yield from (f"/proc/{name}/cmdline", f"/proc/{name}/environ")


def with_key(paths: Iterator[str], key: str) -> list[str]:
    words = spellings(key)
    return [path for path in paths if any(word in text for text in [content(path)]
                                          for word in words)]


class Key(unittest.TestCase):
    def test_the_key_is_nowhere(self) -> None:
        with Bed([Spec(private_root=True), Spec(private_root=True, bashrc=RECORDING)]) as bed:
            options = ["--explain", "-x", f"LD_LIBRARY_PATH={TRAIN}"]
            lines = ["node1 slots=2", "node2 slots=2"]
            with BedJob(bed, lines, bring_example(bed),
                      [*options, "--policy", "fixed", "--max-batch", "128"]) as job:
                job.wait_for("world_formed", size=4)
                key = told(bed, "node2").key
                self.look_into_processes(key)
                self.look_into_files(bed, job, key)
                kill(job.process.pid, signal.SIGTERM)
                self.assertEqual(job.wait(PATIENCE), 143, job.err())
                self.look_into_files(bed, job, key)

    def look_into_processes(self, key: str) -> None:
        control = subprocess.Popen(["sleep", "1000"], env={"SECRET": key})
        shown = f"/proc/{control.pid}/environ"
        try:
            # A program may have started before the kernel shows its environment.
            until("the control's environment can be read", lambda: content(shown), PATIENCE)
            self.assertEqual(with_key(process_files(), key), [shown])
        finally:
            control.kill()
            control.wait()

    def look_into_files(self, bed: Bed, job: Job, key: str) -> None:
        for host in bed.hosts:
            own = (path for name in OWN for path in files_below(host.path("/" + name)))
            record = [host.path(RECORD)] if host.name == "node2" else []
            self.assertEqual(with_key(own, key), record)
        for folder in (job.folder, bed.folder):
            self.assertEqual(with_key(files_below(folder), key), [])


class Stranger:
    """A connection from a stranger to the job."""

    def __init__(self, port: int, words: bytes = b"") -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        with contextlib.suppress(ConnectionError):
            self.socket.sendall(words)

    def answer(self) -> bytes:
        """All that comes until the other side closes; TimeoutError: it does not close."""
        found = b""
        with contextlib.suppress(ConnectionResetError):
            while more := self.socket.recv(65536):
                found += more
        self.socket.close()
        return found


def frame(message: object) -> bytes:
    payload = json.dumps(message).encode()
    return struct.pack(">II", len(payload), 0) + payload


def by_tls(port: int, key: str, identity: str, words: bytes) -> bytes:
    """The answer to a client with this key; empty when there is no handshake."""
    # Its input stays open, because the other side has to end the connection.
    with subprocess.Popen(
            ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-tls1_3", "-quiet", "-psk",
             key, "-psk_identity", identity, "-ciphersuites", "TLS_AES_128_GCM_SHA256"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            bufsize=0) as client:
        with contextlib.suppress(BrokenPipeError):  # it may have been turned away already
            client.stdin.write(words)
        try:
            until("it is turned away", lambda: client.poll() is not None, PATIENCE)
        finally:
            client.kill()
        return client.stdout.read()


class Strangers(unittest.TestCase):
    """A job on two hosts, and strangers that connect to its port."""

    @contextlib.contextmanager
    def training(self) -> Iterator[tuple[Bed, BedJob]]:
        """A job whose workers must not be disturbed by what happens inside the `with` block."""
        with Bed([Spec(), Spec(bashrc=RECORDING), Spec()]) as bed:
            with BedJob(bed, ["node1 slots=1", "node2 slots=1"], options=["--explain"]) as job:
                job.wait_for("world_formed", size=2)
                members, worlds = job.workers(), len(job.find("world_formed"))
                yield bed, job
                step = job.progress()
                until("steps go on", lambda: job.progress() > step + 1, PATIENCE)
                self.assertEqual(job.survivors(members), members)
                unplanned = job.find("world_formed", planned=False)
                self.assertEqual(len(unplanned), worlds, "no world has broken")
                self.assertEqual(job.find("host_down"), [])
                kill(job.process.pid, signal.SIGTERM)
                self.assertEqual(job.wait(PATIENCE), 143, job.err())

    def port(self, job: Job) -> int:
        ports = job.listening()  # on this machine only: workers listen on their hosts
        self.assertEqual(len(ports), 1)
        return ports.pop()

    def counted(self, job: Job) -> int:
        """How many connections were refused so far; each message must carry the next number."""
        found = re.findall(r"a connection was rejected \((\d+) so far\)", job.err())
        self.assertEqual(found, [str(number + 1) for number in range(len(found))])
        return len(found)

    def test_each_is_refused_and_counted(self) -> None:
        with self.training() as (bed, job):
            port = self.port(job)
            name, identity, key = told(bed, "node2")
            first = identity.replace("/host/1", "/host/0")
            hello = {"Hello": {"protocol": 0, "version": "0.0.1", "role": "agent", "job": name,
                               "term": 1, "host": 1}}
            cases = [
                ("garbage", lambda: Stranger(port, os.urandom(4096)).answer(), b""),
                ("a browser", lambda: Stranger(port, b"GET / HTTP/1.0\r\n\r\n").answer(), b""),
                ("a wrong key", lambda: by_tls(port, "00" * 32, identity, frame(hello)), b""),
                ("a wrong job", lambda: by_tls(port, key, "another", frame(hello)), b""),
                ("another host", lambda: by_tls(port, key, first, frame(hello)), b""),
                ("an unknown host", lambda: by_tls(port, key, identity + "7", frame(hello)), b""),
                ("an old one", lambda: by_tls(port, key, identity, frame(hello)),
                 b"you speak protocol 0"),
                ("no greeting", lambda: by_tls(port, key, identity, frame({"a": [{}]})),
                 b"refused"),
                ("no frame", lambda: by_tls(port, key, identity, b"\xff" * 64), b""),
                ("silence", lambda: Stranger(port).answer(), b""),
            ]
            for number, (what, come, wanted) in enumerate(cases, 1):
                with self.subTest(what):
                    answer = come()
                    self.assertIn(wanted, answer)
                    self.assertNotIn(key.encode(), answer)
                    until(f"{what} is counted", lambda n=number: self.counted(job) == n, PATIENCE)

    def test_hundreds_at_once(self) -> None:
        """Silent strangers and loud ones; a host that joins meanwhile is let in all the same."""
        with self.training() as (_, job), contextlib.ExitStack() as stack:
            port, after = self.port(job), job.now()
            for number in range(400):
                words = b"" if number % 2 else os.urandom(100)
                stack.callback(Stranger(port, words).socket.close)
            job.set_lines(f"node{number} slots=1" for number in (1, 2, 3))
            job.wait_for("world_formed", after, size=3, planned=True)
            until("all are counted", lambda: self.counted(job) == 400, 2 * PATIENCE)


if __name__ == "__main__":
    if reason := beds.missing():
        print(f"skipped: {reason}")
        sys.exit(77)
    if not shutil.which("openssl"):
        print("skipped: strangers need the program openssl")
        sys.exit(77)
    unittest.main(verbosity=1)
