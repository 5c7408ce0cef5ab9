#!/usr/bin/env python3
"""Hosts that join a running job by themselves: elasticrun-agent --join, started by hand."""
import os
import signal
import subprocess
import unittest

from job import BIN, FASHION, Job, lives, read, until

AGENT = os.path.join(BIN, "elasticrun-agent")
PATIENCE = 60
QUICK = ["--heartbeat", "200ms", "--agent-timeout", "1s", "--lease", "2s", "--grace", "1s"]


class Joinable(Job):
    """The example on this machine, with a key that lets other hosts join."""

    def __init__(self) -> None:
        super().__init__(["-H", "localhost:1", "--policy", "fixed", "--max-batch", "128", *QUICK,
                          "--join-key", "job.key"],
                         [FASHION, "--samples", "2560", "--epochs", "10000", "--batch", "32",
                          "--device-ms", "0.5"])

    def place(self) -> str:
        """The address to join, from the job's message."""
        def told() -> list[str]:
            return [line for line in self.err().splitlines() if " --join " in line]
        return until("it says how to join", told, PATIENCE)[0].split(" --join ")[1].split()[0]

    def agent(self, *options: str, **popen: object) -> subprocess.Popen[bytes]:
        place = self.place()
        env = os.environ | {"TMPDIR": self.temporary, "JOB_UNDER_TEST": self.mark}
        env.pop("XDG_RUNTIME_DIR", None)
        with open(self.path("agent"), "ab") as words:
            return subprocess.Popen([AGENT, "--join", place, *options], stderr=words, env=env,
                                    start_new_session=True,
                                    **{"stdin": subprocess.DEVNULL} | popen)

    def join(self, *options: str) -> subprocess.Popen[bytes]:
        after = self.now()
        agent = self.agent("--key", self.path("job.key"), "--name", "extra", *options)
        try:
            self.wait_for("world_formed", after, hosts=["localhost", "extra"])
        except BaseException:
            print(read(self.path("agent")))
            raise
        return agent


class Join(unittest.TestCase):
    def test_until_the_job_ends(self) -> None:
        with Joinable() as job:
            job.wait_for("world_formed", size=1)
            agent = job.join("--slots", "2")
            self.assertEqual(job.find("world_formed")[-1]["size"], 3)
            job.process.terminate()
            self.assertEqual(job.wait(PATIENCE), 143, job.err())
            self.assertEqual(agent.wait(PATIENCE), 0, read(job.path("agent")))
            job.gone(10)
            self.assertFalse(os.path.exists(job.path("job.key")))

    def test_a_person_ends_it(self) -> None:
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with self.subTest(number), Joinable() as job:
                job.wait_for("world_formed", size=1)
                agent = job.join()
                first, after = job.workers(), job.now()
                agent.send_signal(number)
                self.assertEqual(agent.wait(PATIENCE), code, read(job.path("agent")))
                job.wait_for("world_formed", after, size=1)
                until("its worker has gone", lambda: sum(map(lives, first.values())) == 1, 10)
                self.assertIsNone(job.process.poll())

    def test_the_key_by_standard_input(self) -> None:
        with Joinable() as job:
            job.wait_for("world_formed", size=1)
            job.place()
            after = job.now()
            with open(job.path("job.key"), "rb") as key:
                agent = job.agent("--name", "extra", stdin=key)
            job.wait_for("world_formed", after, size=2)
            job.process.terminate()
            self.assertEqual(agent.wait(PATIENCE), 0)

    def test_the_controller_is_killed(self) -> None:
        with Joinable() as job:
            job.wait_for("world_formed", size=1)
            agent = job.join()
            job.process.kill()
            self.assertEqual(agent.wait(PATIENCE), 1)
            self.assertIn("extra: lost the controller", read(job.path("agent")))
            until("no process is left", lambda: not job.pids(), 10)

    def test_it_is_refused(self) -> None:
        with Joinable() as job:
            job.wait_for("world_formed", size=1)
            job.place()
            key = read(job.path("job.key"))
            open_to_all, other = job.path("open"), job.path("other")
            for path, text, mode in ((open_to_all, key, 0o644),
                                     (other, key.replace(key.split('key_hex":"')[1][:8],
                                                         "00000000"), 0o600),
                                     (job.path("text"), "hello\n", 0o600)):
                with open(path, "w", encoding="ascii") as file:
                    file.write(text)
                os.chmod(path, mode)
            for path, code, words in ((open_to_all, 2, "others may read"),
                                      (job.path("none"), 2, "No such file"),
                                      (job.path("text"), 2, "not the key of a job"),
                                      (other, 1, "cannot reach the controller: ")):
                with self.subTest(words):
                    agent = job.agent("--key", path)
                    self.assertEqual(agent.wait(PATIENCE), code)
                    self.assertIn(words, read(job.path("agent")).splitlines()[-1])
            self.assertIsNone(job.process.poll())
            self.assertEqual(len(job.find("world_formed")), 1)

    def test_nobody_listens(self) -> None:
        key = '{"job":"x","identity":"x/join","key_hex":"' + "0" * 64 + '","version":"VERSION"}\n'
        version = subprocess.run([AGENT, "--version"], capture_output=True, text=True).stdout
        done = subprocess.run([AGENT, "--join", "127.0.0.1:1"], text=True, capture_output=True,
                              input=key.replace("VERSION", version.split()[1]), timeout=PATIENCE)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("cannot connect to 127.0.0.1:1: Connection refused", done.stderr)

    def test_wrong_words(self) -> None:
        for words in (["--join"], ["--join", "node1:5"], ["--join", "10.0.0.1"], ["--key", "a"],
                      ["--join", "fd00::1:5"], ["--join", "10.0.0.1:70000"], ["x"],
                      ["--join", "10.0.0.1:5", "--slots", "0"]):
            with self.subTest(words):
                done = subprocess.run([AGENT, *words], text=True, capture_output=True,
                                      stdin=subprocess.DEVNULL, timeout=PATIENCE)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertIn("usage: elasticrun-agent --join", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=1)
