#!/usr/bin/env python3
"""Troubles that are over before the lease is: connections that are reset, programs that are stopped
for a while. They cost a healthy job nothing; and a worker whose lease is over makes no more steps.

The records of the example prove that every sample was used once (lineage.py).
"""
import contextlib
import ctypes
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
import unittest
from collections.abc import Callable

import bed as beds
from bed import Bed, Host
from bed.job import BATCH, BedJob, slots
from job import (FASHION, SANITIZED, Job, fields_of, kill, lives, parent_of, replace_file, steps_of,
                 until)
from training import LINEAGE, Training

PATIENCE = 60
UNTIL_TRAINED = 240 if SANITIZED else 60
# Long enough for machines that are busy with other tests, short enough to wait for.
LEASE = 9 if SANITIZED else 4  # seconds
DEADLINES = ["--heartbeat", "200ms", "--agent-timeout", "1s", "--lease", f"{LEASE}s", "--grace", "2s"]
SAMPLES = 256
NO_BED = beds.missing() or ("" if shutil.which("ss") else "no ss (iproute2)")
TWO_HOSTS = "localhost slots=2\\n127.0.0.1 slots=2\\n"


def pass_by(seconds: float) -> None:
    """Lets time pass, where time is what is tested."""
    end = time.monotonic() + seconds
    until("time has passed", lambda: time.monotonic() > end, seconds + 10)


def changes(job: Job) -> list[dict]:
    """All changes after the first world."""
    return (job.find("change_started", planned=False) + job.find("host_down", reason=lambda why:
            why != "the job is over") + job.find("world_formed")[1:])


def example(epochs: int) -> tuple[list[str], list[str]]:
    """The program with records, and the options of a job that trains it."""
    program = [FASHION, "--samples", str(SAMPLES), "--epochs", str(epochs), "--batch", "32",
               "--device-ms", "1", "--record", "record"]
    return program, ["--policy", "fixed", "--shares", "equal", "--max-batch", str(BATCH),
                     "--explain"]


def lineage(job: Job, epochs: int) -> None:
    done = subprocess.run([sys.executable, LINEAGE, job.path("record"), "--samples", str(SAMPLES),
                           "--epochs", str(epochs)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)


def trainers(host: beds.Host) -> list[beds.Process]:
    return [one for one in host.programs() if one.name == "fashion"]


def agents_above(workers: list[beds.Process]) -> list[int]:
    """Watchdog and agent above these workers: worker < shim < agent < watchdog."""
    agent = parent_of(parent_of(workers[0].pid))
    return [parent_of(agent), agent]


def tcp_sockets(pid: int) -> set[str]:
    """The numbers of its sockets with a TCP connection."""
    own = set()
    for fd in os.scandir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            own.add(os.readlink(fd.path))
    with open(f"/proc/{pid}/net/tcp", encoding="ascii") as table:
        lines = [line.split() for line in table]
    return {line[9] for line in lines if line[3] == "01" and f"socket:[{line[9]}]" in own}


def stop(pid: int) -> None:
    kill(pid, signal.SIGSTOP)
    until("it has stopped", lambda: fields_of(pid)[0] == "T", PATIENCE)


class Silence(unittest.TestCase):
    SYS_PIDFD_GETFD = 438

    def user_timeouts(self, pid: int) -> list[int]:
        """TCP_USER_TIMEOUT of its TCP connections, in ms; no table of the kernel shows it."""
        libc = ctypes.CDLL(None, use_errno=True)
        found = []
        process = os.pidfd_open(pid)
        for name in os.listdir(f"/proc/{pid}/fd"):
            number = libc.syscall(self.SYS_PIDFD_GETFD, process, int(name), 0)
            if number < 0 or not stat.S_ISSOCK(os.fstat(number).st_mode):
                if number >= 0:
                    os.close(number)
                continue
            with socket.socket(fileno=number) as one:
                if one.family not in (socket.AF_INET, socket.AF_INET6):
                    continue
                if one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 0:
                    found.append(one.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT))
        os.close(process)
        return found

    def test_a_connection_that_swallows_everything_ends_within_the_lease(self) -> None:
        """On the agent's side it ends early enough to dial again."""
        with Training("localhost:1\\n", epochs=10000, options=["--lease", "8s"]) as job:
            job.world(1)
            self.assertEqual(self.user_timeouts(job.process.pid), [8000])
            self.assertEqual([self.user_timeouts(pid) for pid in job.agents()], [[2000]])
            kill(job.process.pid, signal.SIGTERM)
            self.assertEqual(job.wait(30), 143, job.err())
            job.gone(5)


@unittest.skipIf(NO_BED, NO_BED)
class Connections(unittest.TestCase):
    def reset_all(self, port: int) -> int:
        """Resets all connections, as a firewall that forgets them; returns their number."""
        done = subprocess.run(["ss", "-K", "-H", "-t", "state", "established", f"sport = :{port}"],
                              capture_output=True, text=True, check=True)
        return len(done.stdout.splitlines())

    def test_all_are_reset_at_once_and_again(self) -> None:
        epochs = 100
        with Bed(3) as bed:
            with BedJob(bed, slots(2, "node1", "node2", "node3"), *example(epochs),
                      DEADLINES) as job:
                job.wait_for("world_formed", size=6)
                members = job.workers()
                port, = job.listening()
                for number in range(5):
                    step = job.progress()
                    until("a step", lambda: job.progress() > step, PATIENCE)
                    self.assertEqual(self.reset_all(port), 3)
                    until("all have dialled again", lambda:
                          job.err().count("has dialled again") == 3 * (number + 1), PATIENCE)
                    self.assertEqual(job.survivors(members), members)
                self.assertEqual(job.wait(UNTIL_TRAINED), 0, job.err())
                self.assertEqual(changes(job), [])
                self.check_output(job, epochs, 5)
                lineage(job, epochs)
                self.assertEqual([one for host in bed.hosts for one in host.programs()], [])

    def check_output(self, job: Job, wanted: int, resets: int) -> None:
        """No line came twice; only lines that were on their way during a reset may be missing."""
        epochs = [int(text) for text in re.findall(r"epoch (\d+).*test accuracy", job.out())]
        self.assertEqual(epochs, sorted(set(epochs)))
        gaps = [b for a, b in zip(epochs, epochs[1:]) if b != a + 1]
        self.assertLessEqual(len(gaps), resets, epochs)
        self.assertEqual(epochs[-1], wanted, "the last line")


def sshds(host: Host) -> list[int]:
    """The processes of sshd, which would otherwise wake an agent that is given up."""
    return [one.pid for one in host.processes() if one.name.startswith("sshd")]


@unittest.skipIf(NO_BED, NO_BED)
class StoppedAway(unittest.TestCase):
    """Programs are stopped on hosts, where nothing from outside can kill them."""

    def test_an_agent_and_its_watchdog_for_longer_than_the_lease(self) -> None:
        epochs = 150
        with Bed(2) as bed, BedJob(bed, slots(2, "node1", "node2"), *example(epochs),
                                 DEADLINES) as job:
            job.wait_for("world_formed", size=4)
            until("a step", lambda: job.progress() > 0, PATIENCE)
            host, staying = bed["node2"], job.find("worker_started", host="node1")
            workers = trainers(host)
            agents = agents_above(workers) + sshds(host)
            after = job.now()
            for pid in agents:
                stop(pid)
            job.wait_for("host_down", after, host="node2")
            forced = job.wait_for("world_formed", after, planned=False)
            self.assertEqual(forced["hosts"], ["node1"])
            pass_by(LEASE)
            self.assertTrue(all(map(lives, agents)))

            def committed() -> list[int]:
                return [steps_of(job.path("record"), one.inner, "node2") for one in workers]
            last = committed()
            self.assertLessEqual(max(last), forced["step"])
            step = job.progress()
            until("the others go on", lambda: job.progress() > step, PATIENCE)
            ended = [*agents_above(workers), *(one.pid for one in workers)]
            for pid in agents:
                kill(pid, signal.SIGCONT)
            until("what was stopped has ended", lambda: not any(map(lives, ended)), PATIENCE)
            self.assertEqual(committed(), last)
            self.assertLessEqual({one["pid"] for one in staying}, set(job.workers().values()))
            self.assertEqual(job.wait(UNTIL_TRAINED), 0, job.err())
            lineage(job, epochs)
            self.assertEqual([one for host in bed.hosts for one in host.programs()], [])

    def test_all_agents_and_their_watchdogs(self) -> None:
        """The workers' groups are healthy, so only their own check of the lease stops them."""
        self.stop_all_agents(DEADLINES)

    def test_all_agents_before_their_first_heartbeat(self) -> None:
        """Then the lease counts with which an agent begins."""
        self.stop_all_agents([*DEADLINES, "--heartbeat", f"{LEASE // 2}s",
                              "--agent-timeout", f"{LEASE - 1}s"])

    def stop_all_agents(self, deadlines: list[str]) -> None:
        with Bed(2) as bed, BedJob(bed, slots(2, "node1", "node2"), *example(10_000),
                                 deadlines) as job:
            job.wait_for("world_formed", size=4)
            workers = {host.name: trainers(host) for host in bed.hosts}
            agents = [pid for own in workers.values() for pid in agents_above(own)]
            agents += [pid for host in bed.hosts for pid in sshds(host)]

            def committed() -> list[int]:
                return [steps_of(job.path("record"), one.inner, name)
                        for name, own in workers.items() for one in own]
            until("a step", lambda: min(committed()) > 0, PATIENCE)
            for pid in agents:
                stop(pid)
            last = committed()
            until("steps go on within the lease", lambda: min(committed()) > max(last), LEASE)
            pass_by(LEASE)
            last = committed()
            pass_by(1)
            self.assertEqual(committed(), last)
            self.assertTrue(all(lives(one.pid) for own in workers.values() for one in own))
            for pid in agents:
                kill(pid, signal.SIGCONT)
            until("steps of the same workers", lambda: min(committed()) > max(last), PATIENCE)
            kill(job.process.pid, signal.SIGTERM)
            self.assertEqual(job.wait(PATIENCE), 143, job.err())
            until("nothing is left on the hosts", lambda: not [
                one for host in bed.hosts for one in host.programs()], PATIENCE)


class Stopped(unittest.TestCase):
    """A program is stopped for a while."""

    def test_the_controller_for_less_than_the_lease(self) -> None:
        with Training(TWO_HOSTS, epochs=15, options=DEADLINES) as job:
            job.world(4)
            members = job.workers()
            stop(job.process.pid)
            step = job.newest_step()
            pass_by(LEASE / 2)  # two agent timeouts
            self.assertGreater(job.newest_step(), step, "workers need no controller for a step")
            kill(job.process.pid, signal.SIGCONT)
            until("it says so", lambda: "elasticrun was stopped for" in job.err(), PATIENCE)
            step = job.newest_step()
            until("steps go on", lambda: job.newest_step() > step, PATIENCE)
            self.assertEqual(job.workers(), members)
            self.assertEqual(job.wait(UNTIL_TRAINED), 0, job.err())
            self.assertEqual(changes(job), [])
            self.assertNotRegex(job.err(), "silent|lost")
            job.lineage()
            self.assertEqual(job.leftovers(), [])

    def check_pause(self, pids: Callable[[Training], list[int]], words: str,
                    program: list[str] | None = None,
                    meanwhile: Callable[[Training], None] = lambda job: None) -> None:
        """Stops these processes for longer than the lease. The same workers resume."""
        # Some steps are left when the lease ends: a worker makes about 20 in a second.
        with Training(TWO_HOSTS, epochs=2 * LEASE + 2, options=DEADLINES, program=program) as job:
            job.world(4)
            members = job.workers()
            stopped = pids(job)
            for pid in stopped:
                stop(pid)
            pass_by(1.5 * LEASE)
            meanwhile(job)
            for pid in stopped:
                kill(pid, signal.SIGCONT)
            until("it reports the pause", lambda: words in job.err(), PATIENCE)
            step = job.newest_step()
            until("steps", lambda: job.newest_step() > step, PATIENCE)
            self.assertEqual(job.workers(), members, job.err())
            self.assertEqual(job.wait(UNTIL_TRAINED), 0, job.err())
            self.assertEqual(job.find("host_down", reason=lambda why: why != "the job is over"), [])
            self.assertEqual(len(job.find("worker_started")), len(members))
            job.lineage()
            self.assertEqual(job.leftovers(), [])

    def test_the_controller_for_longer_than_the_lease(self) -> None:
        self.check_pause(lambda job: [job.process.pid], "training has paused meanwhile")

    def test_the_controller_while_its_workers_print_more_than_it_takes(self) -> None:
        """The kernel ends the connection of each agent, and the agent waits in another one."""
        flood = ("(until [ -e print ]; do sleep 0.05; done; "
                 "head -c 1000000 /dev/zero | tr '\\0' x | fold -w 1000) & exec \"$0\" \"$@\"")

        def print_until_connections_break(job: Training) -> None:
            before = [tcp_sockets(pid) for pid in job.agents()]
            replace_file(job.path("print"), "")
            until("new connections", lambda: all(
                new and not new & old for old, new in
                zip(before, map(tcp_sockets, job.agents()))), PATIENCE)
            pass_by(LEASE)
        self.check_pause(lambda job: [job.process.pid], "training has paused meanwhile",
                         ["sh", "-c", flood, FASHION], print_until_connections_break)

    def test_all_processes_as_a_batch_system_suspends_them(self) -> None:
        self.check_pause(lambda job: job.pids(), "training has paused meanwhile")

    def test_all_hosts_without_the_controller(self) -> None:
        self.check_pause(lambda job: [pid for pid in job.pids() if pid != job.process.pid],
                         "no host answers: they are suspended")

    def test_a_person_presses_control_z(self) -> None:
        # In a process group of its own in our session: otherwise the kernel would never stop it.
        with Training(TWO_HOSTS, epochs=5, options=DEADLINES, process_group=0) as job:
            job.world(4)
            lines = len(job.err().splitlines())
            os.killpg(job.process.pid, signal.SIGTSTP)
            until("an answer", lambda: len(job.err().splitlines()) > lines, PATIENCE)
            self.assertNotEqual(fields_of(job.process.pid)[0], "T")
            self.assertRegex(job.last_line(), "^elasticrun: .*(suspend|Ctrl-Z|stop)")
            self.assertEqual(job.wait(UNTIL_TRAINED), 0, job.err())
            self.assertEqual(changes(job), [])
            self.assertEqual(job.leftovers(), [])


if __name__ == "__main__":
    unittest.main()
