#!/usr/bin/env python3
"""Tests of the test bed: each trouble looks right from outside, and nothing is left of a bed.

A job's test can only be trusted when the trouble is the real one: a crash during which a FIN gets
out is no loss of power. So each operation is checked here with plain sockets and ssh.
"""
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable
from unittest import mock

import bed as beds
from bed import groups
from bed import Bed, Host, Spec
from job import lives, until

SOON = 0.4  # seconds in which a call between healthy hosts has long been answered
QUICK = ["-o", "ConnectTimeout=1"]
CHEAP = ["-o", "KexAlgorithms=curve25519-sha256"]  # the default one takes most of ssh's time
HERE = os.path.dirname(os.path.abspath(__file__))


def call(host: Host, seconds: float = 10) -> socket.socket:
    return socket.create_connection((host.address, 22), timeout=seconds)


def greeting(host: Host, seconds: float = 10) -> bytes:
    with call(host, seconds) as guest:
        return guest.recv(4)


def hears(guest: socket.socket, seconds: float) -> bool:
    """Whether anything arrives, even if it is only the end."""
    return bool(select.select([guest], [], [], seconds)[0])


def reaches(host: Host, address: str, port: int, seconds: int = 10) -> int:
    """The exit code of a call from a host: 0, 1 when refused, 124 without an answer."""
    return host.run("timeout", str(seconds), "bash", "-c",
                    f"exec 3<>/dev/tcp/{address}/{port}").returncode


def traces(mark: str, network: str, pids: list[int]) -> list[str]:
    """What is left of a bed."""
    left = [path for base in groups.bases() if os.path.exists(path := os.path.join(base, mark))]
    left += [path for path in [os.path.join(tempfile.gettempdir(), mark)] if os.path.exists(path)]
    left += [network] if os.path.exists(f"/sys/class/net/{network}") else []
    return left + [f"process {pid}" for pid in pids if lives(pid)]


def all_pids(bed: Bed) -> list[int]:
    return [host.outer.pid for host in bed.hosts if host.outer] + [
        process.pid for host in bed.hosts for process in host.processes()]


class WithBed(unittest.TestCase):
    HOSTS: int | Callable[[], list[Spec]] = 2

    @classmethod
    def setUpClass(cls) -> None:
        cls.bed = Bed(cls.HOSTS if isinstance(cls.HOSTS, int) else cls.HOSTS())
        cls.one, cls.two = cls.bed.hosts[:2]

    @classmethod
    def tearDownClass(cls) -> None:
        pids = all_pids(cls.bed)
        cls.bed.close()
        assert pids and not (left := traces(cls.bed.mark, cls.bed.network.name, pids)), left

    def says(self, host: str, command: str, *options: str) -> str:
        """What a command prints by ssh, with the messages of ssh itself."""
        done = subprocess.run(["ssh", "-F", self.bed.ssh_config, *CHEAP, *options, host, command],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=20)
        return done.stdout


class Troubles(WithBed):
    """Each test leaves both hosts as they were."""

    def test_a_host_has_what_is_its_own(self) -> None:
        self.assertEqual(self.says("node1", "hostname"), "node1\n")
        self.assertEqual(self.says("node2", "cat /etc/hostname; ls -A ~"), "node2\n")
        self.assertIn(f"inet {self.one.address}/24", self.says("node1", "ip addr show dev eth0"))
        self.assertEqual(self.says("node1", "ls /sys/class/net").split(), ["eth0", "lo"])
        self.assertEqual(self.says("node1", "getent hosts node1").split()[0], "127.0.1.1")
        self.assertEqual(self.says("node1", "getent hosts node2"), "")
        self.assertEqual(self.says("node1", f"ls -d {HERE}").strip(), HERE)

    def test_processes_are_listed(self) -> None:
        self.assertEqual(self.two.programs(), [])
        self.assertEqual([p.name for p in self.two.processes() if p.inner == 1], ["sshd"])
        self.bed.ssh("node2", "WORD=secret setsid sleep 1000 >&- 2>&- <&- &")
        until("it is there alone", lambda: [program.command for program in self.two.programs()] ==
              [["sleep", "1000"]], 10)
        found = self.two.programs()
        self.assertIn("WORD=secret", found[0].environment())
        self.assertEqual(self.one.programs(), [])
        os.kill(found[0].pid, signal.SIGKILL)
        until("it is gone", lambda: not self.two.programs(), 10)

    def test_cut_and_healed(self) -> None:
        self.assertEqual(reaches(self.one, self.two.address, 22), 0)
        with call(self.one) as guest:
            guest.recv(100)
            self.one.cut()
            with self.assertRaises(TimeoutError):
                call(self.one, SOON)
            self.assertEqual(reaches(self.two, self.one.address, 22, 1), 124)
            guest.send(b"SSH-2.0-x\r\n")
            self.assertFalse(hears(guest, SOON))
            self.one.heal()
            self.assertTrue(hears(guest, 10), "what was under way arrives")
        self.assertEqual(greeting(self.one), b"SSH-")

    def test_our_own_cable_is_cut(self) -> None:
        self.bed.cut()
        with self.assertRaises(TimeoutError):
            call(self.one, SOON)
        self.assertEqual(reaches(self.one, self.two.address, 22), 0)
        self.bed.heal()
        self.assertEqual(greeting(self.one), b"SSH-")

    def test_killed(self) -> None:
        with call(self.one) as guest:
            guest.recv(100)
            pids = [process.pid for process in self.one.processes()]
            self.one.kill()
            self.assertEqual([pid for pid in pids if lives(pid)], [])
            self.assertTrue(hears(guest, 10), "its kernel tells")
        with self.assertRaises(ConnectionRefusedError):
            call(self.one)
        self.one.boot()
        self.assertEqual(greeting(self.one), b"SSH-")

    def test_crashed(self) -> None:
        self.bed.ssh("node1", "echo kept > ~/file")
        with call(self.one) as guest:
            guest.recv(100)
            pids = [process.pid for process in self.one.processes()]
            self.one.crash()
            self.assertEqual([pid for pid in pids if lives(pid)], [])
            self.assertFalse(hears(guest, SOON), "nothing tells")
            with self.assertRaises(TimeoutError):
                call(self.one, SOON)
            self.one.boot()
            self.assertFalse(hears(guest, SOON), "a new kernel knows nothing of it")
            guest.send(b"SSH-2.0-x\r\n")
            with self.assertRaises(ConnectionResetError):
                guest.recv(100)
        self.assertEqual(self.says("node1", "cat ~/file; rm ~/file"), "kept\n")

    def test_frozen(self) -> None:
        self.one.freeze()
        with call(self.one) as guest:
            self.assertFalse(hears(guest, SOON), "the call is taken, and that is all")
            self.one.thaw()
            self.assertTrue(hears(guest, 10))

    def test_frozen_and_killed(self) -> None:
        self.one.freeze()
        self.one.crash()
        self.one.boot()
        self.assertEqual(greeting(self.one), b"SSH-")

    def test_slow(self) -> None:
        def seconds() -> float:
            begin = time.monotonic()
            self.bed.ssh("node1", "head -c 2000000 /dev/zero", text=False)
            return time.monotonic() - begin
        self.one.slow("10mbit")
        slow = seconds()
        self.one.fast()
        self.assertGreater(slow, 1.2, "2 MB at 10 Mbit/s")
        self.assertLess(seconds(), slow)

    def test_share_of_a_processor(self) -> None:
        path = os.path.join(self.one.groups.paths[-1], "cpu.stat")

        def throttled() -> int:
            with open(path, encoding="ascii") as file:
                return int(dict(line.split() for line in file)["nr_throttled"])
        busy = subprocess.Popen([*self.one.prefix(), "sh", "-c", "while :; do :; done"])
        until("it runs", self.one.programs, 10)
        self.assertEqual(throttled(), 0)
        self.one.cpu(5)
        until("it is held back", lambda: throttled() > 2, 10)
        self.one.cpu(None)
        os.kill(self.one.programs()[-1].pid, signal.SIGKILL)
        busy.wait()

    def test_cannot_call_here(self) -> None:
        with socket.create_server((self.bed.address, 0)) as server:
            port = server.getsockname()[1]
            self.assertEqual(reaches(self.one, self.bed.address, port), 0)
            out = ["ip", "route", "get", "192.0.2.1"]  # this stands for our other addresses
            self.assertIn(f"via {self.bed.address} ", self.one.run(*out).stdout)
            for block, code, seconds in ((self.one.blackhole, 124, 1), (self.one.refuse, 1, 10)):
                block()
                self.assertEqual(reaches(self.one, self.bed.address, port, seconds), code)
                self.assertNotIn(f"via {self.bed.address} ", self.one.run(*out).stdout)
                self.assertEqual(self.says("node1", "echo yes"), "yes\n")
                self.assertEqual(reaches(self.one, self.two.address, 22), 0)
                self.one.crash()
                self.one.boot()
            self.assertEqual(reaches(self.one, self.bed.address, port), 0)


def odd_hosts() -> list[Spec]:
    return [
        Spec(), Spec("private", private_root=True), Spec("six", family="6"),
        Spec("both", family="46"), Spec("silent", sshd="silent"), Spec("refuses", sshd="refuses"),
        Spec("few", options={"MaxStartups": "3:50:5"}), Spec("changed", key="changed"),
        Spec("unknown", key="unknown"), Spec("full", home="full", bashrc="true"),
        Spec("noexec", home="noexec"), Spec("readonly", home="readonly"),
        Spec("poor", private_root=True, home="full", tmp="full", slots=7),
        Spec("chatty", bashrc="echo welcome"), Spec("off", power=False),
        Spec("behind", behind="node1"), Spec("no-sftp", options={"Subsystem": ""})]


class OddHosts(WithBed):
    HOSTS = staticmethod(odd_hosts)

    def test_what_ssh_says(self) -> None:
        filling = "exec 2>&1; head -c 100000 /dev/zero > ~/x; echo $?; rm ~/x"
        program = "exec 2>&1; cp /bin/true {0}/x; {0}/x; echo $?; rm -f {0}/x"
        cases = [
            ("node1", "echo yes", "^yes\n$"),
            ("six", "echo yes; ip -4 addr show dev eth0", "^yes\n$"),
            ("both", "ip addr show dev eth0", "(?s)inet 198.*inet6 fd18"),
            ("silent", "true", "timed out during banner exchange"),
            ("refuses", "true", "Connection refused"),
            ("changed", "true", "REMOTE HOST IDENTIFICATION HAS CHANGED"),
            ("unknown", "true", "No .* host key is known"),
            ("off", "true", "timed out|No route"),
            ("node1", filling, "^0\n$"),
            ("full", filling, "No space left on device\n1\n"),
            ("poor", filling.replace("~", "/tmp"), "No space left on device\n1\n"),
            ("node1", program.format("~"), "^0\n$"),
            ("noexec", program.format("~"), "Permission denied\n126\n"),
            ("readonly", "touch ~/x", "Read-only file system"),
            ("chatty", "echo yes", "^welcome\nyes\n$"),
            ("behind", "echo $SSH_CONNECTION", "^198.19.*198.19"),
            ("private", f"ls {HERE}", "No such file"),
            ("private", "touch /etc/x /usr/x", "Read-only file system"),
            ("private", program.format("/tmp"), "^0\n$"),
        ]
        if os.environ.get("ELASTICRUN_SANITIZE") != "thread":  # its suppressions file is there
            cases.append(("private", "ls -A /tmp /root /home /opt /usr/local", "^[/:a-z\n]*$"))
        for host, command, words in cases:
            with self.subTest(host=host, command=command):
                options = QUICK if host in ("silent", "off") else []
                self.assertRegex(self.says(host, command, *options), words)

    def test_sftp(self) -> None:
        for host, code in (("node1", 0), ("no-sftp", 255)):
            done = subprocess.run(["sftp", "-F", self.bed.ssh_config, "-b", "/dev/null", host],
                                  capture_output=True, timeout=20)
            self.assertEqual(done.returncode, code, done.stderr)

    def test_a_host_that_takes_few_at_once(self) -> None:
        guests = [call(self.bed["few"]) for _ in range(12)]
        first = [guest.recv(4) if hears(guest, 10) else b"late" for guest in guests]
        for guest in guests:
            guest.close()
        self.assertIn(b"SSH-", first)
        self.assertLessEqual(first.count(b"SSH-"), 5, first)

    def test_behind_a_bastion(self) -> None:
        with self.assertRaises(TimeoutError):
            call(self.bed["behind"], SOON)
        self.assertNotEqual(reaches(self.bed["behind"], self.bed.address, 22, 1), 0)
        self.assertEqual(reaches(self.bed["behind"], self.bed.network.address4(1, True), 22), 0)

    def test_cannot_call_here_by_its_only_family(self) -> None:
        six = self.bed["six"]
        with socket.create_server((self.bed.address6, 0), family=socket.AF_INET6) as server:
            port = server.getsockname()[1]
            self.assertEqual(reaches(six, self.bed.address6, port), 0)
            six.blackhole()
            self.assertEqual(reaches(six, self.bed.address6, port, 1), 124)
        self.assertEqual(self.says("six", "echo yes"), "yes\n")

    def test_files(self) -> None:
        with open(self.bed.hosts_file, encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertEqual(lines[0], "node1 slots=2")
        self.assertIn("poor slots=7", lines)
        self.assertTrue(os.path.exists(self.bed["private"].path("/usr/bin/env")))
        self.assertFalse(os.path.exists(self.bed["private"].path(HERE)))

    def test_a_host_can_be_the_one_that_calls(self) -> None:
        done = self.bed["both"].run("ssh", "-F", self.bed.ssh_config, "six", "hostname")
        self.assertEqual(done.stdout, "six\n", done.stderr)


class Whole(unittest.TestCase):
    def test_two_beds_at_once_and_names(self) -> None:
        with Bed(2, names=True) as one, Bed(1) as two:
            self.assertNotEqual(one.address, two.address)
            self.assertEqual(one.ssh("node1", "getent hosts node2").stdout.split()[0],
                             one["node2"].address)
            self.assertEqual(two.ssh("node1", "hostname").stdout, "node1\n")
            self.assertNotEqual(one["node1"].address, two["node1"].address)

    def person(self, hosts: int) -> tuple[subprocess.Popen[str], str, str]:
        """Starts a bed by hand; returns the process, its ssh configuration and its interface."""
        person = subprocess.Popen([sys.executable, os.path.join(HERE, "bed"), "up", str(hosts)],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        lines = [person.stdout.readline() for _ in range(4)]
        self.addCleanup(person.__exit__, None, None, None)
        config = lines[1].split()[3]
        network = [name for name in os.listdir("/sys/class/net")
                   if name.startswith(f"er{person.pid}n")]
        return person, config, network[0]

    def say(self, person: subprocess.Popen[str], line: str) -> None:
        """Returns when the command is done: then the nonsense after it has been answered."""
        person.stdin.write(f"{line}\nnonsense\n")
        person.stdin.flush()
        self.assertIn("say one of", person.stdout.readline())

    def test_on_the_command_line(self) -> None:
        person, config, network = self.person(2)
        ssh = ["ssh", "-F", config, "node2", "hostname"]
        self.assertEqual(subprocess.run(ssh, capture_output=True, text=True).stdout, "node2\n")
        self.say(person, "crash node2")
        ssh[3:3] = QUICK
        self.assertEqual(subprocess.run(ssh, capture_output=True).returncode, 255)
        person.communicate("\n", timeout=20)
        self.assertEqual(person.returncode, 0)
        self.assertEqual(traces(os.path.basename(os.path.dirname(config)), network, []), [])

    def test_a_killed_bed(self) -> None:
        person, config, network = self.person(2)
        mark = os.path.basename(os.path.dirname(config))
        self.say(person, "freeze node1")
        pids = groups.Groups(mark, "node1").pids() + groups.Groups(mark, "node2").pids()
        self.assertGreaterEqual(len(pids), 2)
        person.kill()
        person.communicate()
        until("its processes are gone", lambda: not any(map(lives, pids)), 10)
        self.assertIn(os.path.join(tempfile.gettempdir(), mark), beds.clean())
        until("all is gone", lambda: not traces(mark, network, pids), 10)

    def test_programs_anywhere_on_the_disk(self) -> None:
        """A host sees our programs, also below a folder of its own; a private root hides them."""
        folders = [tempfile.mkdtemp(prefix="er-programs-", dir=top)
                   for top in ("/tmp", "/root", "/run", "/dev/shm", "/var/lib")]
        for folder in folders:
            self.addCleanup(shutil.rmtree, folder)
            shutil.copy("/bin/true", folder)
        with mock.patch.object(beds, "programs", lambda: folders), Bed([
                Spec(tmp="own"), Spec(home="full", tmp="full"), Spec(home="readonly"),
                Spec("private", private_root=True)]) as bed:
            for host in bed.hosts:
                for folder in folders:
                    with self.subTest(host=host.name, folder=folder):
                        done = host.run(os.path.join(folder, "true"))
                        self.assertEqual(done.returncode == 0, host.name != "private")

    def test_a_bed_that_cannot_be(self) -> None:
        before = set(os.listdir(tempfile.gettempdir()))
        with self.assertRaisesRegex(OSError, "(?s)bad does not start.*Bad configuration option"):
            Bed([Spec(), Spec("bad", options={"NoSuchOption": "yes"})])
        new = set(os.listdir(tempfile.gettempdir())) - before
        self.assertEqual([name for name in new if name.startswith(f"{beds.PREFIX}{os.getpid()}-")],
                         [])


class Many(unittest.TestCase):
    def test_64(self) -> None:
        begin = time.monotonic()
        with Bed(64) as bed:
            up = time.monotonic()
            self.assertEqual([host.name for host in bed.hosts if greeting(host) != b"SSH-"], [])
            pids = all_pids(bed)
            asked = time.monotonic()
        down = time.monotonic()
        self.assertEqual(traces(bed.mark, bed.network.name, pids), [])
        print(f"64 hosts: up in {up - begin:.1f} s, down in {down - asked:.1f} s")
        self.assertLess(up - begin, 20)


if __name__ == "__main__":
    if reason := beds.missing():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
