"""Runs /bin/true on many hosts, with elasticrun and with the tools that others use for it.

The hosts are namespaces of this machine, each with an sshd of its own (tests/integration/bed).
All use the same key exchange, because OpenSSH's default takes five times as long as libssh's.
Clients and hosts share this machine's processors, so the figures show processor time and not a
network. A round runs every way once; the figures are medians over rounds. The program is named by
its path, because plain `true` is built into the shell and starts no process.
"""
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from figures import Row, median, ratio, spread

# Appended last, so that a module here wins over one of the same name there.
sys.path.append(str(Path(__file__).resolve().parents[1] / "integration"))
from bed import Bed, Spec, missing  # noqa: E402

KEY_EXCHANGE = "curve25519-sha256"
OPTIONS = {"KexAlgorithms": KEY_EXCHANGE}
BARE = "bare libssh"
PROGRAM = "/bin/true"
Command = Sequence[str | Path]


@dataclass
class Way:
    """One of the ways, and the time it took in each round."""

    name: str
    command: Command
    before: Callable[[], None] = lambda: None
    env: dict[str, str] = field(default_factory=dict)
    rounds: int = 1000  # at most
    wall: list[float] = field(default_factory=list)  # ms
    cpu: list[float] = field(default_factory=list)  # ms, of the command and of the hosts

    def run(self, bed: Bed) -> None:
        self.before()
        spent, begin = spent_ms(bed), time.perf_counter()
        done = subprocess.run(self.command, check=False, env=os.environ | self.env, timeout=300,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        self.wall.append((time.perf_counter() - begin) * 1e3)
        if done.returncode != 0:
            sys.exit(f"tests/bench/run: {self.name}: {done.returncode}: {done.stdout[-1000:]}")
        settle(bed)
        self.cpu.append(spent_ms(bed) - spent)


def spent_ms(bed: Bed) -> float:
    """Processor time of the hosts, and of the children that this process has waited for."""
    own = os.times()
    hosts = 0
    for host in bed.hosts:
        for path in host.groups.paths:
            with open(Path(path) / "cpu.stat", encoding="ascii") as file:
                first = file.readline().split()
            if first[0] == "usage_usec":
                hosts += int(first[1])
    return hosts / 1e3 + (own.children_user + own.children_system) * 1e3


def settle(bed: Bed) -> None:
    """Waits until the hosts are idle, so that what one way leaves to do does not slow the next."""
    deadline = time.monotonic() + 20
    while any(host.programs() or host.sessions() for host in bed.hosts):
        if time.monotonic() > deadline:
            sys.exit("tests/bench/run: hosts are still busy after the end of a run")
        time.sleep(0.05)


def forget_agents(bed: Bed) -> None:
    for host in bed.hosts:
        shutil.rmtree(Path(host.folder) / "home" / ".cache", ignore_errors=True)


def by_processes(bed: Bed) -> Command:
    """An `ssh` for each host, all at once, as a shell script would do it."""
    names = " ".join(host.name for host in bed.hosts)
    return ["sh", "-c", f'p=; for h in {names}; do ssh -F "$1" $h /bin/true & p="$p $!"; done; '
            "for i in $p; do wait $i || exit 1; done", "sh", bed.ssh_config]


def by_mpirun(bed: Bed) -> Command:
    return ["mpirun", "-H", ",".join(f"{host.name}:1" for host in bed.hosts),
            "--mca", "plm", "rsh", "--mca", "plm_rsh_args", f"-F {bed.ssh_config}",
            "--mca", "plm_rsh_no_tree_spawn", "1", PROGRAM]


def all_ways(programs: Path, bed: Bed) -> list[Way]:
    names, many = ",".join(host.name for host in bed.hosts), str(len(bed.hosts))
    ours = [programs / "elasticrun", "--hosts", bed.hosts_file, "--ssh-config", bed.ssh_config,
            PROGRAM]
    bare = [programs / "bench_bare_libssh", "root", bed.identity, bed.known_hosts,
            *(host.address for host in bed.hosts)]
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return [
        Way(BARE, bare),
        Way("elasticrun, first run: copies its agent", ours, lambda: forget_agents(bed)),
        Way("elasticrun, second run", ours),
        Way("ssh, a process for each host", by_processes(bed)),
        Way("pdsh", ["pdsh", "-S", "-R", "ssh", "-f", many, "-w", names, PROGRAM],
            env={"PDSH_SSH_ARGS_APPEND": f"-F {bed.ssh_config}"}),
        Way("clush", ["clush", "-q", "-S", "-f", many, "-o", f"-F {bed.ssh_config}", "-w", names,
                      PROGRAM]),
        # On more than about ten hosts it waits for about a second per host.
        Way("mpirun", by_mpirun(bed), env=as_root, rounds=2),
    ]


def row(way: Way, bare: Way) -> Row:
    if not way.wall:
        return Row(way.name, "not installed")
    pairs = [own / other for own, other in zip(way.wall, bare.wall)]
    work = ratio(median(way.cpu), median(bare.cpu))
    return Row(way.name, spread(way.wall, "ms"),
               f"processor time {median(way.cpu):.0f} ms, {work} of the bare",
               f"{median(pairs):.2f}")


def fanout(programs: Path, hosts: int, rounds: int) -> list[Row]:
    """Measures the wall time of the program on every host."""
    if reason := missing():
        return [Row("all", f"not measured: {reason}")]
    with Bed([Spec(slots=1, options=dict(OPTIONS)) for _ in range(hosts)]) as bed:
        ways = all_ways(programs, bed)
        present = [way for way in ways if shutil.which(way.command[0])]
        for number in range(rounds):
            for way in present:
                if number < way.rounds:
                    way.run(bed)
        return [row(way, ways[0]) for way in ways]
