"""Ways to break a running job on a test bed, and random pairs of them.

A fault is data: its kind, its victims, when it comes and how long it lasts. So a pair follows from
a seed and a number alone, and can be repeated. A Stage is the bed and the job that are broken;
repairs that are due later are on its list of things to do.
"""
import random
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bed import Bed, Host, Process
from bed.job import BedJob, slots
from job import kill

HOSTS = [f"node{number}" for number in range(1, 7)]
NEWCOMER = HOSTS[-1]
FOREVER = 0.0  # such a fault is undone only after the end of the job
SHORT, LONG = 0.7, 3.5  # seconds: tolerated from a host; longer than its lease
RATE = "30mbit"  # of a slow host: a reduction takes a quarter of a second there


@dataclass(frozen=True)
class Fault:
    kind: str
    host: str
    other: str = ""  # the far end of a bad link
    delay: float = 0.0  # seconds after the moment of the pair
    lasts: float = FOREVER

    def __str__(self) -> str:
        link = f"-{self.other}" if self.other else ""
        lasts = f" for {self.lasts:g} s" if self.lasts else ""
        return f"{self.kind} {self.host}{link} +{self.delay:g}{lasts}"


@dataclass
class Stage:
    bed: Bed
    job: BedJob
    present: list[str]  # hosts in the host file
    port: int  # on which the controller listens
    to_do: list[tuple[float, Callable[[], None]]] = field(default_factory=list)  # when, what

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        self.to_do.append((time.monotonic() + seconds, act))

    def act(self) -> None:
        """Does what is due."""
        now = time.monotonic()
        due = [one for one in self.to_do if one[0] <= now]
        self.to_do = [one for one in self.to_do if one[0] > now]
        for _, act in sorted(due, key=lambda one: one[0]):
            act()

    def throw(self, faults: list[Fault]) -> None:
        for fault in faults:
            self.later(fault.delay, lambda one=fault: self._begin(one))
        self.act()

    def _begin(self, fault: Fault) -> None:
        undo = KINDS[fault.kind].begin(self, fault)
        if undo and fault.lasts:
            self.later(fault.lasts, undo)

    def edit(self, host: str, there: bool) -> None:
        """Edits the host file; the order of the hosts stays."""
        hosts = set(self.present) | {host} if there else set(self.present) - {host}
        self.present = [name for name in HOSTS if name in hosts]
        self.job.set_lines(slots(1, *self.present))


# ------------------------------------------------------------ what is hit

def workers(host: Host) -> list[Process]:
    return [one for one in host.programs() if one.name == "fashion"]


def agents(host: Host) -> list[Process]:
    return [one for one in host.programs() if one.name.startswith("agent-")]


def watchdogs(host: Host) -> list[Process]:
    return [one for one in host.programs() if one.name == "er-watchdog"]


def signal_all(processes: list[Process], number: int) -> None:
    for one in processes:
        kill(one.pid, number)


Undo = Callable[[], None] | None


def signalled(find: Callable[[Host], list[Process]], number: int) -> Callable[[Stage, Fault], Undo]:
    def begin(stage: Stage, fault: Fault) -> Undo:
        victims = find(stage.bed[fault.host])
        signal_all(victims, number)
        return (lambda: signal_all(victims, signal.SIGCONT)) if number == signal.SIGSTOP else None
    return begin


def agent_and_watchdog(host: Host) -> list[Process]:
    return watchdogs(host) + agents(host)


def cut(stage: Stage, fault: Fault) -> Undo:
    stage.bed[fault.host].cut()
    return stage.bed[fault.host].heal


def freeze(stage: Stage, fault: Fault) -> Undo:
    stage.bed[fault.host].freeze()
    return stage.bed[fault.host].thaw


def slow(stage: Stage, fault: Fault) -> Undo:
    stage.bed[fault.host].slow(RATE)
    return stage.bed[fault.host].fast


def narrow(stage: Stage, fault: Fault) -> Undo:
    ends = stage.bed[fault.host].socket, stage.bed[fault.other].socket
    stage.bed.network.narrow(*ends)
    return stage.bed.network.widen


def reset(stage: Stage, fault: Fault) -> Undo:
    """Resets all control connections at once, as a firewall does that forgets them."""
    subprocess.run(["ss", "-K", "state", "established", "sport", "=", f":{stage.port}"],
                   capture_output=True, check=True)
    return None


def remove(stage: Stage, fault: Fault) -> Undo:
    stage.edit(fault.host, False)
    return lambda: stage.edit(fault.host, True)


def add_behind_a_bad_link(stage: Stage, fault: Fault) -> Undo:
    undo = narrow(stage, fault)
    stage.edit(fault.host, True)
    return undo


@dataclass(frozen=True)
class Kind:
    begin: Callable[[Stage, Fault], Undo]
    lasts: tuple[float, ...] = (FOREVER,)
    link: bool = False  # between two hosts
    newcomer: bool = False
    loses: bool = False  # if it lasts for ever, the host's state is lost for good


KINDS = {
    "crash": Kind(signalled(workers, signal.SIGKILL), loses=True),
    "stop": Kind(signalled(workers, signal.SIGTERM), loses=True),
    "freeze_worker": Kind(signalled(workers, signal.SIGSTOP), (SHORT, LONG, FOREVER)),
    "freeze_agent": Kind(signalled(agents, signal.SIGSTOP), (SHORT, LONG, FOREVER)),
    "freeze_host": Kind(freeze, (SHORT, LONG, FOREVER), loses=True),
    "kill_agent": Kind(signalled(agents, signal.SIGKILL), loses=True),
    "kill_watchdog": Kind(signalled(watchdogs, signal.SIGKILL), loses=True),
    "kill_both": Kind(signalled(agent_and_watchdog, signal.SIGKILL), loses=True),
    "cut": Kind(cut, (SHORT, LONG, LONG, FOREVER), loses=True),
    "slow": Kind(slow, (LONG,)),
    "small_packets": Kind(narrow, (LONG, FOREVER), link=True),
    "reset": Kind(reset),
    "edit": Kind(remove, (SHORT, LONG, FOREVER)),
    "newcomer": Kind(add_behind_a_bad_link, (LONG, FOREVER), link=True, newcomer=True),
}


# ------------------------------------------------------------ pairs

@dataclass(frozen=True)
class Pair:
    """Faults that come together; `hosts` are in the job from its start."""
    faults: tuple[Fault, ...]
    hosts: tuple[str, ...] = tuple(HOSTS)
    code: int = 0
    words: str = ""  # a pattern of the output, if the code is not 0
    step: int = 5  # the faults come at this step

    def __str__(self) -> str:
        return f"{' & '.join(map(str, self.faults))} at step {self.step} of {len(self.hosts)} hosts"


def draw_fault(chance: random.Random, kind: str, victims: list[str]) -> Fault:
    of = KINDS[kind]
    host = NEWCOMER if of.newcomer else chance.choice(victims)
    other = chance.choice([name for name in victims if name != host]) if of.link else ""
    delay = chance.choice((0.0, 0.0, 0.02, 0.1, 0.3, 1.0))
    return Fault(kind, host, other, delay, chance.choice(of.lasts))


def draw_pair(seed: int, number: int) -> Pair:
    """At least four hosts of six keep their state and their connection to the controller; or,
    one time in twelve, none of two hosts does."""
    chance = random.Random(f"{seed} {number}")
    step = chance.randrange(3, 15)
    if number % 12 == 0:
        kinds = [chance.choice([name for name, kind in KINDS.items() if kind.loses])
                 for _ in range(2)]
        faults = tuple(Fault(kind, host) for kind, host in zip(kinds, HOSTS, strict=False))
        return Pair(faults, tuple(HOSTS[:2]), 122, "state lost", step)
    kinds = [chance.choice(list(KINDS)) for _ in range(2)]
    new = any(KINDS[kind].newcomer for kind in kinds)
    hosts = HOSTS[:-1] if new else HOSTS
    first = draw_fault(chance, kinds[0], hosts)
    # In a quarter of the pairs the second fault hits the host of the first one.
    near = [first.host] if chance.random() < 0.25 and first.host in hosts else hosts
    if KINDS[kinds[1]].link:
        near = hosts
    return Pair((first, draw_fault(chance, kinds[1], near)), tuple(hosts), step=step)
