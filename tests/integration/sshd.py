"""An sshd that the test runs on this machine, and the ssh executor that talks to it.

The server has its keys, its configuration and the home of its users in one folder; a mark in the
environment of its sessions finds every process that came of them. Troubles of real sites are made
with sshd's own options: a forced command can be as odd as any login shell.
"""
import os
import queue
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import uuid
from typing import Any, Self

from job import BIN, MARK, TETHER, Late, kill, lives, read, until

AGENT = os.path.join(BIN, "elasticrun-agent")
DRIVER = os.path.join(BIN, "ssh_driver")
SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
KEYGEN = ["ssh-keygen", "-q", "-t", "ed25519", "-N"]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def listens(port: int, address: str = "127.0.0.1") -> bool:
    try:
        socket.create_connection((address, port), 1).close()
        return True
    except OSError:
        return False


class Sshd:
    """A server at a free port. `options`: lines of sshd_config that come before its own; `env`: the
    environment of its sessions; `mounts`: shell commands in a mount namespace of its own. FOLDER in
    them is the server's folder; it is not in /tmp, so that something can be mounted over /tmp."""

    def __init__(self, options: str = "", env: dict[str, str] | None = None,
                 mounts: str = "", address: str = "127.0.0.1") -> None:
        self.folder = tempfile.mkdtemp(prefix="er-sshd-", dir="/var/tmp")
        self.address, self.port = address, free_port()
        self.mark = uuid.uuid4().hex
        self.home = self.path("home")
        os.mkdir(self.home)
        os.makedirs("/run/sshd", exist_ok=True)
        for name in ("id", "host"):
            subprocess.run([*KEYGEN, "", "-f", self.path(name)], check=True)
        pairs = {"HOME": self.home, MARK: self.mark} | (env or {})
        inside = ["unshare", "-m", "sh", "-c", mounts + '; exec "$@"', "sh"] if mounts else []
        inside = [word.replace("FOLDER", self.folder) for word in inside]
        self.write("conf", f"""
MaxStartups 200
{options}
ListenAddress {address}
Port {self.port}
HostKey {self.path("host")}
PidFile none
AuthorizedKeysFile {self.path("id.pub")}
StrictModes no
UsePAM no
UseDNS no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
SetEnv {" ".join(f'"{key}={value}"' for key, value in pairs.items())}
""".replace("FOLDER", self.folder))
        key = " ".join(read(self.path("host.pub")).split()[:2])
        self.entry = f"[{address}]:{self.port} {key}\n"
        self.write("known_hosts", self.entry)
        self.log = open(self.path("log"), "w", encoding="utf-8")
        self.process = subprocess.Popen(
            [*TETHER, *inside, SSHD, "-D", "-e", "-f", self.path("conf")],
            stdin=subprocess.DEVNULL, stderr=self.log)

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def write(self, name: str, text: str) -> str:
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def config(self, more: str = "", **settings: str) -> str:
        """An ssh configuration file: any name is this server. `settings` replace the usual ones."""
        usual = {"HostName": self.address, "Port": str(self.port), "IdentityFile": self.path("id"),
                 "IdentitiesOnly": "yes", "UserKnownHostsFile": self.path("known_hosts"),
                 "GlobalKnownHostsFile": "/dev/null", "IdentityAgent": "none"} | settings
        lines = "".join(f"  {key} {value}\n" for key, value in usual.items())
        return self.write(f"config-{uuid.uuid4().hex}", f"{more}\nHost *\n{lines}")

    def sessions(self) -> list[int]:
        """All processes that were started by logins."""
        wanted = f"{MARK}={self.mark}"
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        return [pid for pid in pids
                if wanted in read(f"/proc/{pid}/environ").split("\0") and lives(pid)]

    def agents(self) -> list[str]:
        """The agents' files in the cache."""
        folder = os.path.join(self.home, ".cache/elasticrun")
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    def __enter__(self) -> Self:
        until("sshd listens", lambda: listens(self.port, self.address), 10)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if not error:
                until("nothing is left of the sessions", lambda: not self.sessions(), 10)
        finally:
            for pid in self.sessions():
                kill(pid)
            self.process.terminate()
            self.process.wait()
            self.log.close()
            if error:
                print(f"--- sshd:\n{read(self.path('log'))[-3000:]}")
            shutil.rmtree(self.folder)


class Executor:
    """A running ssh_driver, and the lines that it has printed."""

    def __init__(self, config: str, env: dict[str, str] | None = None, agent: str = AGENT,
                 **numbers: int) -> None:
        self.process = subprocess.Popen(
            [*TETHER, DRIVER, agent, config, *(f"{k}={v}" for k, v in numbers.items())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | (env or {}))
        self.words: list[str] = []
        self.coming: queue.Queue[str] = queue.Queue()
        self.reader = threading.Thread(target=self.listen)
        self.reader.start()

    def listen(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.coming.put(line.rstrip("\n"))
        self.coming.put("the driver has ended")

    def tell(self, command: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def start(self, *hosts: str) -> None:
        for number, host in enumerate(hosts, 1):
            self.tell(f"start {number} {host}")

    def wait(self, begin: str, seconds: float = 20) -> str:
        """Waits for the first line that begins so, old lines included; returns the rest of it."""
        deadline = time.monotonic() + seconds
        while True:
            for word in self.words:
                if word.startswith(begin + " ") or word == begin:
                    return word[len(begin) + 1:]
            if self.words and self.words[-1] == "the driver has ended":
                raise Late(f"'{begin}': {self.words}")
            try:
                self.words.append(self.coming.get(timeout=max(0, deadline - time.monotonic())))
            except queue.Empty:
                raise Late(f"'{begin}': not within {seconds} s, but {self.words}") from None

    def end(self, *numbers: int) -> None:
        """Ends running agents as at the end of a job."""
        for number in numbers:
            self.tell(f"end {number}")
        for number in numbers:
            assert self.wait(f"exit {number}") == "elasticrun-agent has ended"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self.process.poll() is None:
            try:
                self.tell("quit")
                self.process.wait(10)
            except (OSError, subprocess.TimeoutExpired):
                self.process.kill()
        code = self.process.wait()
        self.reader.join()
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()
        if not error:
            assert code == 0, f"ssh_driver ended with {code}"
