#!/usr/bin/env python3
"""Nothing is left behind on any host, whichever process dies and whichever cable is cut.

Each way to lose a part of a job (controller, agent, watchdog, sshd's session, a host's link, the
controller's link, the power of the controller's machine) is tried on a program with the library and
on one whose processes have moved away (setsid, double fork, deaf to signals). Then the test looks
at the processes of all hosts, also of those that cannot be reached, and at what the agents had on
disk.

The lost processes must be gone when their deadline is over: the lease, then the grace time, then a
kill. The others go on training.
"""
import os
import signal
import sys
import unittest
from collections.abc import Callable
from dataclasses import dataclass

import bed as beds
from bed import Bed, Host, Process
from bed.job import BedJob
from job import SCATTERED, Late, kill, lives, read, until

# bed.job.QUICK: a lease of 2 s, a grace time of 1 s, and a kill, for which a host gets another 1 s.
DEADLINE = 2.0 + 1.0 + 1.0
NOISE = 6.0  # the tests share few cores with other programs
HOSTS = ["node1", "node2", "node3"]
OF_SCATTERED = 5  # processes of each worker


def socket_folders(host: Host) -> set[str]:
    """The folders of the agents' sockets, from the environment of the workers."""
    found = set()
    for one in host.programs():
        for entry in one.environment():
            name, _, path = entry.partition("=")
            if name == "ELASTICRUN_SOCKET":
                found.add(os.path.dirname(path))
    return found


@dataclass
class Traces:
    """What a job has on its hosts while it runs."""
    processes: dict[str, list[Process]]
    folders: dict[str, set[str]]

    @classmethod
    def of(cls, bed: Bed) -> "Traces":
        return cls({host.name: host.programs() for host in bed.hosts},
                   {host.name: socket_folders(host) for host in bed.hosts})

    def alive(self, names: list[str]) -> list[str]:
        """The recorded processes that still live."""
        return [f"{name}: {one.pid} {one.command}" for name in names
                for one in self.processes[name] if lives(one.pid)]


def rests(bed: Bed, before: Traces) -> list[str]:
    """What is left on hosts when no job runs there; it must be empty."""
    left = []
    for host in bed.hosts:
        left += [f"{host.name}: {one.pid} {one.command}" for one in host.programs()]
        left += [f"{host.name}: {folder}" for folder in before.folders[host.name]
                 if os.path.exists(host.path(folder))]
        left += [f"{host.name}: socket {line}"
                 for line in read(f"/proc/{host.pid}/net/unix").splitlines()
                 if "elasticrun" in line]
        cache = host.path("/root/.cache/elasticrun")
        # The agent's file stays, for the next job; an incomplete copy does not.
        left += [f"{host.name}: {cache}/{name}" for name in os.listdir(cache) if "." in name]
    return left


def nothing_left(bed: Bed, before: Traces, seconds: float) -> None:
    try:
        until("nothing left", lambda: not rests(bed, before), seconds)
    except Late:
        raise Late(f"left after {seconds} s: {rests(bed, before)}") from None


# ------------------------------------------------------------ ways to lose a part of the job

def kill_named(host: Host, beginning: str) -> None:
    victims = [one for one in host.programs() if one.name.startswith(beginning)]
    if len(victims) != 1:
        raise AssertionError(f"{len(victims)} processes {beginning} on {host.name}")
    kill(victims[0].pid)


def kill_sshd_sessions(host: Host) -> None:
    victims = host.sessions()
    if not victims:
        raise AssertionError(f"sshd of {host.name} has no session")
    for one in victims:
        kill(one.pid)


def lose_power(bed: Bed, job: BedJob) -> None:
    """The controller's machine loses power: nothing gets out, then or later."""
    bed.cut()
    job.process.kill()


@dataclass
class Way:
    act: Callable[[Bed, BedJob], None]
    lost: list[str]  # hosts whose processes must go
    training: int | None  # exit code of a job with the library; None: it goes on
    plain: int | None  # the same, without the library


WAYS = {
    "controller": Way(lambda bed, job: job.process.kill(), HOSTS, 137, 137),
    "agent": Way(lambda bed, job: kill_named(bed["node2"], "agent-"), ["node2"], None, 122),
    "watchdog": Way(lambda bed, job: kill_named(bed["node2"], "er-watchdog"), ["node2"], None, 122),
    "sshd_sessions": Way(lambda bed, job: kill_sshd_sessions(bed["node2"]), [], None, None),
    "link_of_a_host": Way(lambda bed, job: bed["node2"].cut(), ["node2"], None, 122),
    "link_of_the_controller": Way(lambda bed, job: bed.cut(), HOSTS, 122, 122),
    "power_of_the_controller": Way(lose_power, HOSTS, 137, 137),
}


def see_end(test: unittest.TestCase, bed: Bed, job: BedJob, before: Traces, code: int | None) -> None:
    """The job ends with this code, or (None) when it is told to; then nothing is left."""
    if code is None:
        kill(job.process.pid, signal.SIGTERM)
    test.assertEqual(job.wait(DEADLINE + NOISE), code or 143, job.err())
    nothing_left(bed, before, DEADLINE + NOISE)


class Training(unittest.TestCase):
    def run_case(self, way: Way) -> None:
        with Bed(3) as bed, BedJob(bed, [f"{name} slots=2" for name in HOSTS]) as job:
            job.wait_for("world_formed", size=6)
            before, members, after = Traces.of(bed), job.workers(), job.now()
            self.assertEqual([len(one) for one in before.folders.values()], [1, 1, 1])
            way.act(bed, job)
            until("what was lost is gone", lambda: not before.alive(way.lost), DEADLINE + NOISE)
            if way.training is None:
                self.check_it_goes_on(job, members, after, bool(way.lost))
            see_end(self, bed, job, before, way.training)

    def check_it_goes_on(self, job: BedJob, members: dict[int, int], after: int,
                         lost: bool) -> None:
        if lost:
            job.wait_for("host_down", after, host="node2")
            job.wait_for("world_formed", after, size=4, planned=False)
        self.assertEqual(len(job.survivors(members)), 4 if lost else 6)
        step = job.progress()
        until("steps go on", lambda: job.progress() > step + 1, 20)

    def test_without_ssh_the_controller_is_missed_all_the_same(self) -> None:
        """Sshd's sessions end, then the controller: no channel tells the agents about it."""
        with Bed(2) as bed, BedJob(bed, ["node1 slots=2", "node2 slots=2"]) as job:
            job.wait_for("world_formed", size=4)
            before = Traces.of(bed)
            for host in bed.hosts:
                kill_sshd_sessions(host)
            until("the loss is told", lambda: job.err().count("ssh connection is lost") == 2, 20)
            lose_power(bed, job)
            nothing_left(bed, before, DEADLINE + NOISE)


class Scattered(unittest.TestCase):
    def run_case(self, way: Way) -> None:
        with Bed(3) as bed, BedJob(bed, [f"{name} slots=2" for name in HOSTS], SCATTERED) as job:
            # Watchdog and agent of each host, and a shim for each worker.
            whole = 2 + 2 * (1 + OF_SCATTERED)
            until("all processes", lambda: all(
                len(host.programs()) == whole for host in bed.hosts), 20)
            before = Traces.of(bed)
            way.act(bed, job)
            until("what was lost is gone", lambda: not before.alive(way.lost), DEADLINE + NOISE)
            if way.plain is None:
                self.assertEqual(len(before.alive(HOSTS)), 3 * whole)
            see_end(self, bed, job, before, way.plain)


def add_cases(of: type[Training] | type[Scattered]) -> None:
    """Makes one test per case, so that each can be run alone."""
    def make(way: Way) -> Callable[[unittest.TestCase], None]:
        return lambda self: self.run_case(way)
    for name, way in WAYS.items():
        setattr(of, f"test_{name}", make(way))


add_cases(Training)
add_cases(Scattered)
if __name__ == "__main__":
    if reason := beds.missing():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main(verbosity=1)
