"""Starts agents by ssh on a real sshd: how they get there, what goes wrong, how they end."""
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

from job import kill, parent_of, read, until
from sshd import AGENT, KEYGEN, Executor, Sshd, free_port

ROOT = os.geteuid() == 0
NOISE = "ForceCommand echo noise; echo more >&2; printf half; eval \"$SSH_ORIGINAL_COMMAND\""


class FirstRun(unittest.TestCase):
    """The agent comes to a host that has nothing."""

    def test_copied_once(self) -> None:
        with Sshd() as sshd, Executor(sshd.config()) as job:
            job.start("a")
            job.wait("up 1")
            (agent,) = sshd.agents()
            before = os.stat(os.path.join(sshd.home, ".cache/elasticrun", agent))
            job.tell("start 2 b")
            job.wait("up 2")
            self.assertEqual(sshd.agents(), [agent])
            after = os.stat(os.path.join(sshd.home, ".cache/elasticrun", agent))
            self.assertEqual((before.st_ino, before.st_mtime), (after.st_ino, after.st_mtime))
            job.end(1, 2)

    def test_a_copy_leaves_turns_to_others(self) -> None:
        """Other work on the same event loop, such as the job's, waits for one piece at most."""
        with Sshd() as sshd, Executor(sshd.config()) as job:
            job.tell("turns")
            job.start("a")
            job.wait("up 1")
            job.tell("turns")
            between = int(job.wait("turns"))
            self.assertLess(between, 200_000)
            self.assertGreater(os.path.getsize(AGENT), 10 * between)
            job.end(1)

    def test_several_at_once(self) -> None:
        with Sshd() as sshd, Executor(sshd.config(), seed=1) as one, \
                Executor(sshd.config(), seed=2) as two:
            for job in (one, two):
                job.start("a", "b", "c")
            for job in (one, two):
                for number in (1, 2, 3):
                    job.wait(f"up {number}")
                job.end(1, 2, 3)
            self.assertEqual(len(sshd.agents()), 1)

    def test_a_broken_copy_is_replaced(self) -> None:
        with Sshd() as sshd, Executor(sshd.config()) as job:
            job.start("a")
            job.wait("up 1")
            job.end(1)
            path = os.path.join(sshd.home, ".cache/elasticrun", sshd.agents()[0])
            size = os.path.getsize(path)
            os.truncate(path, size // 50)  # a sanitized agent runs without its second half
            job.tell("start 2 a")
            job.wait("up 2")
            self.assertEqual(os.path.getsize(path), size)
            job.end(2)

    def test_a_copy_with_other_bytes_is_replaced(self) -> None:
        with Sshd() as sshd, Executor(sshd.config()) as job:
            job.start("a")
            job.wait("up 1")
            job.end(1)
            path = os.path.join(sshd.home, ".cache/elasticrun", sshd.agents()[0])
            whole = read_bytes(path)
            with open(path, "r+b") as file:  # the agent does not need its last byte
                file.seek(-1, os.SEEK_END)
                file.write(bytes([whole[-1] ^ 1]))
            job.tell("start 2 a")
            job.wait("up 2")
            self.assertTrue(read_bytes(path) == whole)
            job.end(2)

    def test_the_key_is_nowhere(self) -> None:
        with Sshd() as sshd, Executor(sshd.config()) as job:
            job.start("a")
            job.wait("up 1")
            pids = sshd.sessions()
            self.assertGreaterEqual(len(pids), 2)
            for pid in pids:
                for name in ("cmdline", "environ"):
                    self.assertNotIn("0" * 64, read(f"/proc/{pid}/{name}"))
            job.end(1)

    def test_a_shell_that_prints(self) -> None:
        with Sshd(NOISE) as sshd, Executor(sshd.config()) as job:
            job.start("a")
            job.wait("up 1")
            job.end(1)

    def test_other_login_shells(self) -> None:
        """Shells like csh and fish where they are installed; dash always is."""
        for shell in ("/bin/dash", "/bin/csh", "/bin/tcsh", "/usr/bin/fish", "/bin/zsh"):
            if not os.path.exists(shell):
                continue
            force = f"ForceCommand {shell} -c \"$SSH_ORIGINAL_COMMAND\""
            with self.subTest(shell), Sshd(force) as sshd, Executor(sshd.config()) as job:
                job.start("a")
                job.wait("up 1")
                job.end(1)


class Places(unittest.TestCase):
    """Where the agent is kept when the cache cannot be used."""

    def second_place(self, mounts: str, **env: str) -> None:
        runtime = {"XDG_RUNTIME_DIR": "FOLDER/runtime"}
        with Sshd(env=runtime | env, mounts=mounts) as sshd, Executor(sshd.config()) as job:
            os.mkdir(sshd.path("runtime"))
            job.start("a")
            job.wait("up 1")
            (agent,) = os.listdir(sshd.path("runtime/elasticrun"))
            self.assertTrue(agent.startswith("agent-"))
            self.assertEqual(len(agent), len("agent-") + 32)
            job.end(1)

    def test_no_home(self) -> None:
        self.second_place("", HOME="/proc/none")

    @unittest.skipUnless(ROOT, "mounting needs root")
    def test_a_full_home(self) -> None:
        self.second_place("mount -t tmpfs -o size=1m none FOLDER/home")

    @unittest.skipUnless(ROOT, "mounting needs root")
    def test_a_home_without_execution(self) -> None:
        self.second_place("mount -t tmpfs -o noexec none FOLDER/home")

    @unittest.skipUnless(ROOT, "mounting needs root")
    def test_nowhere(self) -> None:
        for option, why in (("ro", "(cannot be written to)"), ("noexec", "(mounted noexec)")):
            mounts = (f"mount -t tmpfs -o {option} none FOLDER/home; "
                      f"mount -t tmpfs -o {option} none /tmp")
            with self.subTest(option), Sshd(mounts=mounts) as sshd, \
                    Executor(sshd.config()) as job:
                job.start("a")
                reason = job.wait("exit 1")
                self.assertTrue(reason.startswith("copy of the agent: "), reason)
                self.assertIn(f"{sshd.home}/.cache/elasticrun {why}", reason)
                self.assertIn(f"/tmp/elasticrun-0 {why}", reason)


class Troubles(unittest.TestCase):
    """Each trouble gets a line of its own: the stage, what happened, what to try."""

    def reason(self, config: str, host: str = "a", **numbers: int) -> str:
        with Executor(config, **numbers) as job:
            job.start(host)
            return job.wait("exit 1")

    def test_before_sshd(self) -> None:
        with Sshd() as sshd:
            refused = self.reason(sshd.config(Port=str(free_port())))
            self.assertIn("refuses connections; is sshd running", refused)
            self.assertIn("(3 attempts)", refused)
            self.assertIn("name: ", self.reason(sshd.config(HostName="no-such-host.invalid")))
            self.assertIn("ssh configuration: ", self.reason(sshd.write("bad", "Nonsense yes")))

    def test_what_is_no_sshd(self) -> None:
        with Sshd() as sshd, socket.create_server(("127.0.0.1", 0)) as server:
            config = sshd.config(Port=str(server.getsockname()[1]))
            begin = time.monotonic()
            self.assertIn("has not greeted for 500 ms", self.reason(config, connect=500))
            self.assertLess(time.monotonic() - begin, 5)

            def close() -> None:
                for _ in range(3):
                    server.accept()[0].close()  # the first one was left waiting above
            closer = threading.Thread(target=close)
            closer.start()
            reason = self.reason(config, throttled_attempts=2)
            closer.join()
            self.assertIn("closed the connection before its greeting", reason)
            self.assertIn("(2 attempts)", reason)

    def test_host_keys(self) -> None:
        with Sshd() as sshd, Sshd() as other:
            nobody = sshd.write("nobody", "")
            known = sshd.path("known_hosts")
            unknown = self.reason(sshd.config(UserKnownHostsFile=nobody))
            self.assertIn(f"[127.0.0.1]:{sshd.port} is not in {nobody}: ", unknown)
            self.assertIn("it shows ssh-ed25519 SHA256:", unknown)
            wrong = sshd.write("wrong", f"[127.0.0.1]:{sshd.port} {other.entry.split(' ', 1)[1]}")
            for strict in ("yes", "no", "accept-new"):
                changed = self.reason(
                    sshd.config(UserKnownHostsFile=wrong, StrictHostKeyChecking=strict))
                self.assertIn("host key: the key of", changed)
                self.assertIn("ssh-keygen -R", changed)
            self.accepted(sshd, UserKnownHostsFile=nobody, StrictHostKeyChecking="accept-new")
            self.assertIn(sshd.entry.split()[2], read(nobody))
            self.accepted(sshd, UserKnownHostsFile=f"{wrong}-not-there {known}")
            alias = sshd.write("alias", "rack7 " + sshd.entry.split(" ", 1)[1])
            self.accepted(sshd, UserKnownHostsFile=alias, HostKeyAlias="rack7")

    def accepted(self, sshd: Sshd, **settings: str) -> None:
        with Executor(sshd.config(**settings)) as job:
            job.start("a")
            job.wait("up 1")
            job.end(1)

    def test_login(self) -> None:
        with Sshd() as sshd:
            subprocess.run([*KEYGEN, "", "-f", sshd.path("other")], check=True)
            subprocess.run([*KEYGEN, "secret", "-f", sshd.path("locked")], check=True)
            denied = self.reason(sshd.config(IdentityFile=sshd.path("other")))
            self.assertIn("may not log in (the host takes keys)", denied)
            self.assertIn("authorized_keys", denied)
            locked = self.reason(sshd.config(IdentityFile=sshd.path("locked")))
            self.assertIn(f"the key {sshd.path('locked')} has a passphrase: ssh-add it", locked)
            # The host file takes precedence over the configuration.
            with Executor(sshd.config(IdentityFile=sshd.path("other"))) as job:
                job.start(f"a identity={sshd.path('id')}")
                job.wait("up 1")
                job.end(1)

    def test_login_by_agent(self) -> None:
        with Sshd() as sshd:
            socket_path = sshd.path("agent")
            command = ["ssh-agent", "-D", "-a", socket_path]
            with subprocess.Popen(command, stdout=subprocess.DEVNULL) as agent:
                try:
                    until("ssh-agent listens", lambda: os.path.exists(socket_path), 10)
                    env = {"SSH_AUTH_SOCK": socket_path}
                    subprocess.run(["ssh-add", "-q", sshd.path("id")], check=True,
                                   env=os.environ | env)
                    config = sshd.config(IdentityFile="/dev/null", IdentityAgent="SSH_AUTH_SOCK")
                    with Executor(config, env=env) as job:
                        job.start("a")
                        job.wait("up 1")
                        job.end(1)
                finally:
                    agent.terminate()

    def test_shells(self) -> None:
        cases = (
            ("ForceCommand cat", "login shell: the login shell of root did not obey within 1.0 s"),
            ("ForceCommand echo This account is not available; exit 1",
             "ended (1) instead of running a command: This account is not available"),
            ("ForceCommand PATH=FOLDER/none; eval \"$SSH_ORIGINAL_COMMAND\"",
             "login shell: the host has no 'sh'"),
        )
        for force, expected in cases:
            with self.subTest(force), Sshd(force) as sshd:
                self.assertIn(expected, self.reason(sshd.config(), shell=1000))

    @unittest.skipUnless(ROOT, "mounting needs root")
    def test_another_machine(self) -> None:
        """The kernel names the architecture, or uname where the kernel is older."""
        by_uname = "ForceCommand PATH=FOLDER/odd:$PATH; eval \"$SSH_ORIGINAL_COMMAND\""
        by_kernel = "echo riscv64 >FOLDER/arch; mount --bind FOLDER/arch /proc/sys/kernel/arch"
        for force, mounts in ((by_uname, "mount -t tmpfs none /proc/sys/kernel"),
                              ("", by_kernel)):
            if mounts == by_kernel and not os.path.exists("/proc/sys/kernel/arch"):
                continue
            with self.subTest(mounts), Sshd(force, mounts=mounts) as sshd:
                os.mkdir(sshd.path("odd"))
                sshd.write("odd/uname", "#!/bin/sh\necho Linux riscv64\n")
                os.chmod(sshd.path("odd/uname"), 0o755)
                self.assertIn("login shell: the host runs Linux riscv64, and the agent is for "
                              "Linux x86_64", self.reason(sshd.config()))

    def test_an_agent_that_cannot_run(self) -> None:
        with Sshd() as sshd:
            with open(os.path.join(sshd.folder, "broken"), "wb") as file:
                # The header of a program, and nothing but zeros behind it.
                file.write(read_bytes("/bin/true")[:64] + bytes(64))
            with Executor(sshd.config(), agent=sshd.path("broken")) as job:
                job.start("a")
                self.assertIn("agent: the agent cannot be run there (exit code 126)",
                              job.wait("exit 1"))
                self.assertIn("Exec format error", job.wait("line 1"))


def read_bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


class Ways(unittest.TestCase):
    """Other routes to a host, and many hosts at once."""

    def test_jump_host(self) -> None:
        with Sshd() as bastion, Sshd() as inner:
            known = inner.write("both", bastion.entry + inner.entry)
            jump = (f"Host bastion\n  Port {bastion.port}\n  ProxyJump none\n"
                    f"  IdentityFile {bastion.path('id')}\n")
            settings = {"ProxyJump": "bastion", "UserKnownHostsFile": known}
            with Executor(inner.config(jump, **settings)) as job:
                job.start("a", "b")
                job.wait("up 1")
                job.wait("up 2")
                job.end(1, 2)
            with Executor(inner.config(jump, Port=str(free_port()), **settings)) as job:
                job.start("a")
                self.assertIn("refuses the connection of the proxy", job.wait("exit 1"))

    def test_proxy_command(self) -> None:
        with Sshd() as sshd:
            command = (f"{sys.executable} -c \"import os, socket, sys, threading; "
                       "s = socket.create_connection((sys.argv[1], int(sys.argv[2]))); "
                       "t = threading.Thread(target=lambda: [s.sendall(b) for b in "
                       "iter(lambda: os.read(0, 65536), b'')] and s.shutdown(1)); t.start(); "
                       "[os.write(1, b) for b in iter(lambda: s.recv(65536), b'')]\" %h %p")
            with Executor(sshd.config(ProxyCommand=command)) as job:
                job.start("a")
                job.wait("up 1")
                job.end(1)
            with Executor(sshd.config(ProxyCommand="echo no way >&2")) as job:
                job.start("a")
                self.assertIn("no way", job.wait("exit 1", 60))

    def test_ipv6(self) -> None:
        with Sshd(address="::1") as sshd, Executor(sshd.config()) as job:
            job.start("a")
            job.wait("up 1")
            job.end(1)

    def test_a_crowd(self) -> None:
        """Many hosts at one server that accepts few logins at a time: all get in."""
        count = 16
        with Sshd("MaxStartups 3:50:5") as sshd, Executor(sshd.config(), seed=7) as job:
            job.start(*(f"n{number}" for number in range(count)))
            for number in range(1, count + 1):
                job.wait(f"up {number}", 60)
            job.end(*range(1, count + 1))
            self.assertIn("beginning MaxStartups throttling", read(sshd.path("log")))


class Ends(unittest.TestCase):
    """How an agent ends, and how its connection does."""

    def test_killed(self) -> None:
        with Sshd() as sshd, Executor(sshd.config()) as job:
            job.start("a")
            job.wait("up 1")
            self.assertTrue(sshd.sessions())
            job.tell("kill 1")
            self.assertEqual(job.wait("exit 1"), "elasticrun-agent was killed by signal 9")
            until("all are gone", lambda: not sshd.sessions(), 10)

    def test_killed_on_the_way(self) -> None:
        with Sshd("ForceCommand cat") as sshd, Executor(sshd.config()) as job:
            job.start("a")
            until("it is logged in", sshd.sessions, 10)
            job.tell("kill 1")
            self.assertEqual(job.wait("exit 1"), "given up at stage login shell")

    def test_frozen(self) -> None:
        with Sshd() as sshd, Executor(sshd.config(), end=500) as job:
            job.start("a")
            job.wait("up 1")
            agents = sshd.sessions()
            servers = {parent_of(pid) for pid in agents} - set(agents)
            for pid in servers:
                os.kill(pid, signal.SIGSTOP)
            try:
                job.tell("kill 1")
                self.assertIn("did not end when told to", job.wait("exit 1"))
            finally:
                for pid in servers:
                    kill(pid)

    def test_the_connection_is_not_the_agent(self) -> None:
        with Sshd() as sshd, Executor(sshd.config()) as job:
            job.start("a")
            job.wait("up 1")
            agents = sshd.sessions()
            for pid in {parent_of(pid) for pid in agents} - set(agents):
                kill(pid)  # the server's end of the connection
            self.assertIn("the ssh connection is lost", job.wait("line 1"))
            self.assertEqual(sshd.sessions(), agents)
            job.tell("end 1")
            job.wait("down 1")
            until("all are gone", lambda: not sshd.sessions(), 10)
            job.tell("kill 1")
            job.wait("exit 1")

    def test_quit(self) -> None:
        """When the launcher ends, the agents end too."""
        with Sshd() as sshd:
            with Executor(sshd.config()) as job:
                job.start("a")
                job.wait("up 1")
            until("all are gone", lambda: not sshd.sessions(), 10)


if __name__ == "__main__":
    unittest.main()
