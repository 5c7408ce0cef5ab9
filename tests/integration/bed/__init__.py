"""A test bed of hosts on this machine, each with its own sshd, network, processes, name and home.

    with Bed(4) as bed:                                       # node1 .. node4
        bed["node2"].crash()
    with Bed([Spec(), Spec(private_root=True), Spec(family="6"), Spec(sshd="silent")]) as bed: ...

    bed up 4         prints a host file and an ssh configuration, takes words such as "cut node2",
                     and ends with an empty line
    bed clean        removes what killed beds have left

A host is two processes and some mounts, not a container or a virtual machine: so 64 of them start
in two seconds, and every trouble of a real network or machine can be made at will. All of a bed
belongs to the process (and the thread) that made it: when that dies, however it dies, the kernel
ends the hosts and their networks. Only a folder and empty control groups remain, named after the
dead process; the next bed removes them. Needs root.
"""
import contextlib
import fcntl
import glob
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from bed import groups
from bed.files import make as make_files
from bed.kernel import SSHD, UP
from bed.network import HERE, MOST_HOSTS, Network, Plug
from job import BIN, lives, read, until

FOLDER = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.realpath(os.path.join(FOLDER, "../../.."))
PREFIX = "er-bed-"
# Not sys.executable: it may be in a home, which a host does not see.
PYTHON = "/usr/bin/python3"
PATIENCE = 20.0  # seconds, for what takes a moment on an idle machine
SERVICES = ("sshd", "slurmd", "slurmstepd")


@dataclass
class Spec:
    """What a host is like."""
    name: str = ""  # node1, node2, ... when empty
    slots: int = 2
    private_root: bool = False  # sees Debian's programs, and nothing else of this machine
    family: str = "4"  # or "6", "46": the addresses it has
    sshd: str = "answers"  # or "silent": accepts and sends nothing; "refuses": none, no listener
    options: dict[str, str] = field(default_factory=dict)  # of sshd; an empty value: left out
    key: str = "known"  # or "changed", "unknown": its key in known_hosts
    home: str = "own"  # or "full", "noexec", "readonly"
    tmp: str = ""  # the same; empty: the machine's, or its own with a private root
    bashrc: str = ""  # what the login shell does for every command
    behind: str = ""  # the only host through which it can be reached
    power: bool = True  # False: off until boot()
    shared: bool = False  # sees Bed.shared by its path even with a root or /tmp of its own


@dataclass
class Process:
    """A process on a host."""
    pid: int    # on this machine
    inner: int  # on the host
    name: str
    command: list[str]

    def environment(self) -> list[str]:
        return read(f"/proc/{self.pid}/environ").split("\0")[:-1]


class Host:
    """One host of a bed. Its operations return when they have taken effect."""

    def __init__(self, bed: "Bed", number: int, spec: Spec) -> None:
        self.bed = bed
        self.spec = spec
        self.name = spec.name
        bastions = {other.behind for other in bed.specs}
        self.socket = Plug(number, spec.family, bool(spec.behind), spec.name in bastions)
        self.address = bed.network.address(self.socket)
        self.folder = os.path.join(bed.folder, "hosts", spec.name)
        self.groups = groups.Groups(bed.mark, spec.name)
        self.outer: subprocess.Popen[bytes] | None = None

    # ------------------------------------------------------------ power

    def power_on(self) -> None:
        """Starts the host without waiting; is_up() tells when it is up."""
        if self.socket.namespace < 0:
            self.bed.network.plug([self.socket])
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.outer = subprocess.Popen(
                [PYTHON, "-sSEB", os.path.join(FOLDER, "host.py"), self.folder,
                 f"/proc/{os.getpid()}/fd/{self.socket.namespace}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/")

    def is_up(self) -> bool:
        if self.outer and self.outer.poll() is not None:
            raise OSError(f"host {self.name} does not start: {self.log()[-2000:]}")
        return bool(self.pid) and os.path.exists(self.path(UP))

    def boot(self) -> None:
        if self.outer:
            raise ValueError(f"host {self.name} is up")
        self.power_on()
        until(f"host {self.name} is up", self.is_up, PATIENCE)

    def power_off(self) -> None:
        """Ends the host without waiting; await_end() waits."""
        if self.outer and self.pid:
            os.kill(self.pid, signal.SIGKILL)
        elif self.outer:
            self.outer.kill()

    def await_end(self) -> None:
        if self.outer:
            self.outer.wait()
            self.outer = None
        self.groups.empty(PATIENCE)

    def kill(self) -> None:
        """All its processes die at once; its kernel goes on and tells its peers."""
        self.power_off()
        self.await_end()

    def crash(self) -> None:
        """A loss of power: its peers get neither FIN nor RST. The disk keeps its content."""
        self.cut()
        self.kill()
        self.bed.network.unplug(self.socket)

    def freeze(self) -> None:
        """The host hangs: its kernel still accepts connections, but no process does anything."""
        self.groups.freeze(True, PATIENCE)

    def thaw(self) -> None:
        self.groups.freeze(False, PATIENCE)

    # ------------------------------------------------------------ network and speed

    def cut(self) -> None:
        if self.socket.namespace >= 0:
            self.bed.network.connect(self.socket, False)

    def heal(self) -> None:
        """Ends cut(). A host that was cut off and killed is still cut off when it boots."""
        self.bed.network.connect(self.socket, True)

    def slow(self, rate: str) -> None:
        """Limits its network in both directions to a rate such as 50mbit."""
        self.bed.network.limit(self.socket, rate)

    def fast(self) -> None:
        self.bed.network.limit(self.socket, None)

    def cpu(self, percent: int | None) -> None:
        """Limits the whole host to this percentage of one core; None: no limit."""
        self.groups.limit(int(percent) if percent is not None else None)

    def small_packets(self) -> None:
        """Between it and other hosts only small packets get through, until fast() is called."""
        self.bed.network.small_only(self.socket)

    def blackhole(self) -> None:
        """It cannot connect to this machine until the next boot, and hears nothing."""
        self.bed.network.firewall(self.socket, silent=True)

    def refuse(self) -> None:
        """It cannot connect to this machine until the next boot, and gets an error."""
        self.bed.network.firewall(self.socket, silent=False)

    # ------------------------------------------------------------ what is in it

    @property
    def pid(self) -> int:
        """The pid of its process 1, on this machine; 0 if there is none."""
        if not self.outer:
            return 0
        outer = self.outer.pid
        children = read(f"/proc/{outer}/task/{outer}/children").split()
        return int(children[0]) if children else 0

    def processes(self) -> list[Process]:
        """All its living processes, including process 1 and sshd's."""
        found = []
        for pid in self.groups.pids():
            status = read(f"/proc/{pid}/status")
            numbers = [line.split()[1:] for line in status.splitlines() if line.startswith("NSpid")]
            # A single number means our end of a prefix(), which waits outside of the host.
            if lives(pid) and numbers and len(numbers[0]) > 1:
                name = read(f"/proc/{pid}/comm").rstrip("\n")
                command = read(f"/proc/{pid}/cmdline").split("\0")[:-1]
                found.append(Process(pid, int(numbers[0][-1]), name, command))
        return found

    def programs(self) -> list[Process]:
        """All processes but process 1 and those of services; on an unused host there is none."""
        return [one for one in self.processes() if one.inner != 1 and one.name not in SERVICES]

    def sessions(self) -> list[Process]:
        """The processes of sshd, one for each of its connections."""
        return [one for one in self.processes() if one.inner != 1 and one.name == "sshd"]

    def path(self, inside: str) -> str:
        """The path here for a path on the host, which must be up."""
        return f"/proc/{self.pid}/root{inside}"

    def log(self) -> str:
        """The log of its sshd."""
        return read(os.path.join(self.folder, "log"))

    def prefix(self) -> list[str]:
        """The words that run the command after them on the host, without ssh."""
        join = [f"echo $$ > {shlex.quote(path)}/cgroup.procs" for path in self.groups.paths]
        return ["sh", "-c", " && ".join(
            [*join, f'exec nsenter -t {self.pid} -m -u -i -n -p -r -w -- "$@"']), "sh"]

    def run(self, *command: str, **options: Any) -> subprocess.CompletedProcess[str]:
        options = {"capture_output": True, "text": True, "timeout": PATIENCE} | options
        return subprocess.run([*self.prefix(), *command], **options)


class Bed:
    """Hosts, and the files needed to use them; as a context manager it leaves nothing behind."""

    def __init__(self, hosts: int | Sequence[Spec] = 4, names: bool = False) -> None:
        """With `names` hosts know each other's names; otherwise only their own, as 127.0.1.1."""
        if reason := missing():
            raise OSError(reason)
        self.specs = [Spec() for _ in range(hosts)] if isinstance(hosts, int) else list(hosts)
        if not 0 < len(self.specs) <= MOST_HOSTS:
            raise ValueError(f"a bed has 1 to {MOST_HOSTS} hosts")
        for number, spec in enumerate(self.specs, 1):
            spec.name = spec.name or f"node{number}"
        self.hosts: list[Host] = []
        clean()
        with locked(tempfile.gettempdir()):
            self.folder = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")
            self.lock = os.open(self.folder, os.O_RDONLY)
            fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.mark = os.path.basename(self.folder)
        self.network: Network | None = None
        try:
            self._make(names)
        except BaseException:
            self.close()
            raise

    def _make(self, names: bool) -> None:
        self.network = Network()
        self.address = self.network.address4(HERE)
        self.address6 = self.network.address6(HERE)
        self.hosts = [Host(self, number, spec) for number, spec in enumerate(self.specs, 1)]
        self.shared = os.path.join(self.folder, "shared")  # what a shared file system would hold
        os.mkdir(self.shared)
        files = make_files(
            self.folder, [asdict(host.spec) | {"address": host.address, "groups": host.groups.paths,
                                               "folder": self.shared if host.spec.shared else "",
                                               "programs": programs()}
                          for host in self.hosts], names)
        self.hosts_file, self.ssh_config = files.hosts, files.ssh_config
        self.identity, self.known_hosts = files.identity, files.known_hosts
        on = [host for host in self.hosts if host.spec.power]
        self.network.plug([host.socket for host in on])
        for host in on:
            host.power_on()
        for host in on:
            until(f"host {host.name} is up", host.is_up, PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.close()

    def __getitem__(self, name: str) -> Host:
        return next(host for host in self.hosts if host.name == name)

    def ssh(self, host: str, *command: str, **options: Any) -> subprocess.CompletedProcess[str]:
        options = {"capture_output": True, "text": True, "timeout": PATIENCE,
                   "stdin": subprocess.DEVNULL} | options
        return subprocess.run(["ssh", "-F", self.ssh_config, host, *command], **options)

    def cut(self) -> None:
        """Cuts the cable of this machine: hosts still reach each other."""
        self.network.connect(None, False)

    def heal(self) -> None:
        self.network.connect(None, True)

    def close(self) -> None:
        for host in self.hosts:
            host.power_off()
        for host in self.hosts:
            host.await_end()
        if self.network:
            self.network.close([host.socket for host in self.hosts])
        groups.remove_all(self.mark)
        shutil.rmtree(self.folder)
        os.close(self.lock)


def programs() -> list[str]:
    """The folders that hold our programs: a host sees them, except one with a private root."""
    folders = [TREE]
    if BIN and not os.path.realpath(BIN).startswith(TREE + "/"):
        folders.append(os.path.dirname(os.path.realpath(BIN)))
    return folders


def missing() -> str:
    """The reason why there can be no bed here; empty when there can."""
    if os.geteuid() != 0:
        return "a test bed of hosts needs root"
    for program in ("ip", "tc", "nsenter", "ssh", "ssh-keygen", PYTHON, SSHD):
        if not shutil.which(program):
            return f"a test bed of hosts needs {program}"
    return groups.missing()


@contextlib.contextmanager
def locked(folder: str, wait: bool = True) -> Iterator[None]:
    """Locks a folder; BlockingIOError when another process has locked it, unless we wait."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(fd)


def clean() -> list[str]:
    """Removes what beds of dead processes have left, and returns those folders."""
    removed = []
    top = tempfile.gettempdir()
    with locked(top):  # each folder is locked by its living bed, or abandoned
        for folder in glob.glob(os.path.join(glob.escape(top), PREFIX + "*")):
            with contextlib.suppress(BlockingIOError, FileNotFoundError), locked(folder, False):
                groups.remove_all(os.path.basename(folder))
                shutil.rmtree(folder)
                removed.append(folder)
    return removed


# ------------------------------------------------------------ on the command line

WORDS = ("boot", "kill", "crash", "freeze", "thaw", "cut", "heal", "slow", "fast", "cpu",
         "blackhole", "refuse")


def obey(bed: Bed, line: str) -> None:
    """Executes a line such as "slow node2 50mbit"."""
    words = line.split()
    if words[0] not in WORDS or words[1:2] not in [[host.name] for host in bed.hosts]:
        raise ValueError(f"say one of {', '.join(WORDS)}, then a host")
    getattr(bed[words[1]], words[0])(*words[2:])


def serve(hosts: int) -> int:
    with Bed(hosts) as bed:
        print(f"hosts       {bed.hosts_file}\nssh         ssh -F {bed.ssh_config} node1\n"
              f"elasticrun  --hosts {bed.hosts_file} --ssh-config {bed.ssh_config}\n"
              f"An empty line ends them; before: {', '.join(WORDS)}, each with a host.", flush=True)
        while line := sys.stdin.readline().strip():
            try:
                obey(bed, line)
            except (OSError, TypeError, ValueError) as error:
                print(error, flush=True)
    return 0


def main(words: list[str]) -> int:
    if reason := missing():
        print(f"bed: {reason}", file=sys.stderr)
        return 77
    if words == ["clean"]:
        print("\n".join(clean()) or "there was nothing to remove")
        return 0
    if len(words) == 2 and words[0] == "up" and words[1].isdigit():
        return serve(int(words[1]))
    print(__doc__, file=sys.stderr)
    return 2
