#!/usr/bin/env python3
"""elasticrun inside jobs of a real Slurm, on nodes without sshd.

    slurm_test.py Jobs.test_trains_on_all_nodes    one job, start to end
    slurm_test.py                                  losses, cancels, requeues, components
"""
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest
from typing import Any

from bed import Bed
from bed.slurm import Slurm, missing, nodes
from job import BIN, SANITIZED, read, until

FASHION = os.path.join(BIN, "fashion")
LINEAGE = os.path.join(os.path.dirname(__file__), "lineage.py")
ENDLESS = f"{FASHION} --samples 1280 --epochs 100000 --batch 128 --device-ms 1"


class Jobs(unittest.TestCase):
    bed: Bed
    slurm: Slurm
    names: list[str]
    submitted = 0

    @classmethod
    def setUpClass(cls) -> None:
        cls.bed = Bed(nodes(4, tmp="own"))  # a /tmp of their own, as nodes have
        cls.addClassCleanup(cls.bed.close)
        cls.names = [host.name for host in cls.bed.hosts]
        cls.slurm = Slurm(cls.bed)
        cls.addClassCleanup(cls.slurm.close)

    def submit(self, options: str, program: str, *batch: str) -> int:
        self.submitted += 1
        self.events_file = os.path.join(self.slurm.work, f"{self.id()}.{self.submitted}.events")
        job = self.slurm.sbatch(
            "unset ELASTICRUN_BIN ELASTICRUN_SANITIZE; "
            f"exec {BIN}/elasticrun --events {self.events_file} --label none {options} {program}",
            "--no-kill", *batch)
        self.addCleanup(self.cancel, job)
        return job

    def cancel(self, job: int) -> None:
        self.slurm.run("scancel", str(job), check=False)
        self.slurm.wait(job)

    def end(self, job: int) -> None:
        self.cancel(job)
        self.nothing_left()

    def events(self, name: str) -> list[dict[str, Any]]:
        lines = read(self.events_file).splitlines(keepends=True)
        return [event for line in lines if line.endswith("\n")
                if (event := json.loads(line))["event"] == name]

    def world(self, job: int, after: int = 0, **wanted: Any) -> dict[str, Any]:
        """Waits for a world with these properties, after so many others."""
        def found() -> dict[str, Any] | None:
            if self.slurm.state(job) not in ("PENDING", "RUNNING", "COMPLETING"):
                raise AssertionError(f"the job has ended: {self.slurm.output(job)}")
            return next((event for event in self.events("world_formed")[after:] if all(
                event[name] == value for name, value in wanted.items())), None)
        return until(f"a world with {wanted}", found, 60)

    def drain(self, node: str, reason: str) -> None:
        """Until the end of the test, unless the test resumes the node."""
        def resume() -> None:
            if self.slurm.node_state(node).startswith("drain"):
                self.slurm.resume(node)
        self.slurm.drain(node, reason)
        self.addCleanup(resume)

    def nothing_left(self) -> None:
        until("no program is left", lambda: not any(
            host.programs() for host in self.bed.hosts if host.outer), 30)
        for host in self.bed.hosts:
            if host.outer:
                self.assertNotIn("agent-", host.run("ls", "/tmp").stdout)

    def test_trains_on_all_nodes(self) -> None:
        job = self.submit("", f"{FASHION} --samples 1280 --epochs 2 --batch 32", "-N4")
        self.assertEqual(self.slurm.wait(job), "COMPLETED", self.slurm.output(job))
        world = self.events("world_formed")[0]
        self.assertEqual((world["size"], world["hosts"]), (4, self.names))
        self.assertIn("epoch 2", self.slurm.output(job))
        self.nothing_left()

    def test_slots_are_the_users(self) -> None:
        job = self.submit("--slots 2", f"{FASHION} --samples 640 --epochs 1 --batch 32", "-N2")
        self.assertEqual(self.slurm.wait(job), "COMPLETED", self.slurm.output(job))
        self.assertEqual(self.events("world_formed")[0]["size"], 4)
        self.nothing_left()

    def test_variables(self) -> None:
        """Workers on all nodes have those of the job that a batch script has, and none of a task;
        tasks of srun have those of their step on top of that."""
        task = r"SLURM_(PROCID|LOCALID|GTIDS|TASK_PID)"
        node = r"SLURM_(NODEID|PRIO_PROCESS|TOPOLOGY_.*)"
        step = (r"SLURM_(STEP.*|SRUN_.*|LAUNCH_.*|DISTRIBUTION|LABELIO|UMASK|JOB_NAME|NTASKS|NPROCS|"
                r"JOB_CPUS_PER_NODE_PACK_GROUP_0)")
        ours = f"unset ELASTICRUN_BIN ELASTICRUN_SANITIZE; {BIN}/elasticrun --label none"
        table: dict[str, Any] = {"script": self.printed("env"), "srun": self.printed("srun env"),
                 "sbatch": self.printed(f"{ours} env"),
                 "-H": self.printed(f"{ours} -H localhost:2 env"),
                 "salloc": self.slurm.run("salloc", "-N2", "sh", "-c", f"{ours} env").stdout}
        for how, text in table.items():
            names = set(re.findall(r"^(SLURM_\w+)=", text, re.MULTILINE))
            tasks = {name for name in names if re.fullmatch(task, name)}
            self.assertEqual(bool(tasks), how in ("script", "srun"), tasks)
            table[how] = {name for name in names - tasks if not re.fullmatch(node, name)}
        for how in ("sbatch", "-H"):
            self.assertEqual(table[how], table["script"])
        self.assertEqual({name for name in table["srun"] if not re.fullmatch(step, name)},
                         {name for name in table["sbatch"] if not re.fullmatch(step, name)})
        self.assertLessEqual({"SLURM_JOB_ID", "SLURM_JOB_NODELIST"}, table["salloc"])
        print("salloc beside sbatch:", sorted(table["salloc"] ^ table["sbatch"]))
        self.nothing_left()

    def printed(self, script: str) -> str:
        """What a batch script on two nodes prints."""
        job = self.slurm.sbatch(script, "-N2")
        self.assertEqual(self.slurm.wait(job), "COMPLETED", self.slurm.output(job))
        return self.slurm.output(job)

    def test_under_srun_each_task_refuses(self) -> None:
        done = self.slurm.run("srun", "-N2", "sh", "-c",
                              f"unset ELASTICRUN_BIN ELASTICRUN_SANITIZE; {BIN}/elasticrun true",
                              check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        said = [line for line in done.stderr.splitlines() if line.startswith("elasticrun:")]
        self.assertEqual(len(said), 2, done.stderr)
        self.assertIn("srun has started 2 tasks of elasticrun; start one", said[0])

    def test_inside_a_step(self) -> None:
        """One task of srun is no mistake, and has the nodes of the job."""
        elasticrun = f"unset ELASTICRUN_BIN ELASTICRUN_SANITIZE; {BIN}/elasticrun --label none"
        step = f"srun --ntasks=1 --nodes=1 --overlap sh -c '{elasticrun} hostname'"
        self.assertEqual(sorted(self.printed(step).split()), self.names[:2])
        done = self.slurm.run("salloc", "-N2", "sh", "-c", step)
        self.assertEqual(sorted(done.stdout.split()), self.names[:2])
        self.nothing_left()

    def test_a_worker_and_an_agent_are_lost(self) -> None:
        job = self.submit("--max-restarts 20", ENDLESS, "-N3")
        self.world(job, size=3)
        for name in ("fashion", "elasticrun-agen"):
            after = len(self.events("world_formed"))
            node = self.bed["node3"]
            pid = next(one.pid for one in node.programs()
                       if one.name == name or name != "fashion" and one.name.startswith("agent-"))
            os.kill(pid, 9)
            until("a smaller world, and the whole one", lambda: [
                world["size"] for world in self.events("world_formed")[after:]][-1:] == [3], 60)
        self.slurm.run("scancel", str(job))
        self.assertEqual(self.slurm.wait(job), "CANCELLED")
        self.nothing_left()

    def test_saved_and_resumed_by_another_job(self) -> None:
        job = self.submit("--save state", ENDLESS, "-N3", "--no-requeue",
                          "--signal=B:USR1@60")
        self.world(job, size=3)
        until("steps", lambda: self.events("sample"), 60)
        self.slurm.signal(job, "USR1")
        self.slurm.wait(job)
        saved = self.events("saved")[-1]
        self.assertTrue(saved["stop"])
        self.assertIn("the same command resumes from step", self.slurm.output(job))
        again = self.submit("--save state", ENDLESS, "-N2", "--no-requeue")
        self.world(again, size=2, step=saved["step"])
        self.slurm.signal(again, "USR1")
        self.slurm.wait(again)
        self.nothing_left()

    def test_requeued_twice_at_different_sizes(self) -> None:
        """Each sample once an epoch, and the weights of a job that was left alone."""
        def training(record: str, device_ms: int) -> str:
            return (f"{FASHION} --samples 2560 --epochs 4 --batch 128 --device-ms {device_ms} "
                    f"--precision double --record {self.slurm.work}/{record}")
        calm = self.submit("--max-batch 128", training("calm", 0), "-N4")
        self.assertEqual(self.slurm.wait(calm), "COMPLETED", self.slurm.output(calm))
        job = self.submit("--max-batch 128 --save state2",
                          training("run$((SLURM_RESTART_COUNT + 0))", 3), "-N4", "--requeue",
                          "--signal=B:USR1@120")
        step = 0
        for again, (size, then) in enumerate(((4, 2), (2, 3))):
            self.world(job, after=again, size=size, step=step)
            until("steps", lambda s=step: any(
                event["step"] > s for event in self.events("sample")), 60)
            self.slurm.signal(job, "USR1")
            until("it is requeued", lambda n=again + 1: self.slurm.output(job).count(
                f"job {job} is requeued") == n, 60)
            step = self.events("saved")[-1]["step"]
            self.slurm.wait(job, ["PENDING"])
            self.slurm.run("scontrol", "update", f"JobId={job}", f"NumNodes={then}",
                           f"NumTasks={then}")
        self.world(job, after=2, size=3, step=step)
        self.assertEqual(self.slurm.wait(job), "COMPLETED", self.slurm.output(job))
        self.assertIn("started again: 2 restarts", self.slurm.output(job))
        records = [os.path.join(self.slurm.work, f"run{run}") for run in range(3)]
        print(subprocess.run(
            [sys.executable, LINEAGE, *records, "--samples", "2560", "--epochs", "4", "--same-as",
             os.path.join(self.slurm.work, "calm"), "--precision", "double", "--tolerance", "1e-4"],
            check=True, capture_output=True, text=True).stdout)
        self.nothing_left()

    def test_the_time_limit_of_the_job(self) -> None:
        job = self.submit("--save state4", ENDLESS, "-N1", "--requeue", "--time=1")
        self.world(job, size=1)
        self.slurm.wait_output(job, f"job {job} is requeued")
        self.assertIn(f"stopped before the time limit of job {job} (", self.slurm.output(job))
        self.assertTrue(self.events("saved")[-1]["stop"])
        self.slurm.wait(job, ["PENDING"])

    def test_what_may_not_be_requeued(self) -> None:
        job = self.submit("--save state3", ENDLESS, "-N1", "--no-requeue")
        self.world(job, size=1)
        until("steps", lambda: self.events("sample"), 60)
        self.slurm.signal(job, "USR1")
        self.slurm.wait(job)
        self.assertIn(f"not requeued: job {job} may not be requeued; submit it again",
                      self.slurm.output(job))
        self.nothing_left()

    def test_a_node_is_drained_and_resumed(self) -> None:
        """Its workers leave by a planned change, and nothing of the job is left there but its
        place in the allocation, until the test resumes it. The same holds for the node of the
        script."""
        job = self.submit("--np 1:4 --policy fixed", ENDLESS, "-N3")
        self.world(job, size=3)
        names = self.names[:3]
        for node, free in (("node2", "node2 is free: "),
                           ("node1", "node1 is free but for this program: ")):
            with self.subTest(node):
                after = len(self.events("world_formed"))
                self.drain(node, "bad fan")
                world = self.world(job, after, size=2, planned=True)
                self.assertNotIn(node, world["hosts"])
                self.assertEqual(self.events("host_leaves")[-1]["reason"],
                                 "Slurm has it draining (bad fan)")
                self.slurm.wait_output(job, free)
                if node != "node1":
                    until("no program is left", lambda: not self.bed["node2"].programs(), 20)
                    self.assertNotIn("agent-", self.bed[node].run("ls", "/tmp").stdout)
                self.assertEqual(self.slurm.node_state(node), "draining")
                self.slurm.resume(node)
                self.slurm.wait_output(job, f"{node} may be used again: Slurm has it mixed")
                self.assertEqual(sorted(self.world(job, after + 1, size=3)["hosts"]), names)
        self.assertEqual([(event["host"], event["reason"]) for event in self.events("host_down")], [
            ("node2", "the hosts were changed"), ("node1", "the hosts were changed")])
        self.assertNotIn("lost", self.slurm.output(job))
        self.end(job)

    def test_a_drained_node_is_given_back(self) -> None:
        job = self.submit("--np 1:4 --policy fixed --slurm-shrink 1h", ENDLESS, "-N3")
        self.world(job, size=3)
        self.drain("node3", "bad fan")
        self.slurm.wait_output(job, "node3 given back")
        self.slurm.wait_node("node3", ["drained"])
        self.assertEqual(self.bed["node3"].programs(), [])
        after = len(self.events("world_formed"))
        self.drain("node2", "bad disk")  # without accounting, Slurm takes no second one
        self.slurm.wait_output(job, "node2 cannot be given back: ")
        self.assertEqual(self.world(job, after)["hosts"], ["node1"])
        self.assertEqual(self.slurm.state(job), "RUNNING")
        self.assertNotIn("lost", self.slurm.output(job))
        self.end(job)

    def test_grows_by_an_array_of_jobs(self) -> None:
        """Nodes beyond the job's join as Slurm gives them, and go with the job."""
        job = self.submit("--policy fixed --slurm-grow '--array=1-2 --exclusive'", ENDLESS, "-N2")
        world = self.world(job, size=4)
        self.assertEqual(sorted(world["hosts"]), self.names)
        tasks = self.slurm.run("squeue", "--noheader", "--array", "--format=%F_%K %N").stdout
        ((task, node),) = (line.split() for line in tasks.splitlines()
                           if line.startswith(f"{job + 1}_1 "))
        after = len(self.events("world_formed"))
        self.slurm.run("scancel", "--batch", "--signal=USR2", task)  # as before its time is up
        world = self.world(job, after=after, size=3)
        self.assertTrue(world["planned"])
        self.assertNotIn(node, world["hosts"])
        self.slurm.run("scancel", str(job))
        self.slurm.wait(job)
        until("no job is left", lambda: not self.slurm.run("squeue", "--noheader").stdout, 30)
        self.nothing_left()
        keys = [name for name in os.listdir(self.slurm.work) if name.endswith(".key")]
        self.assertEqual(keys, [])

    def test_shrinks_and_gives_back(self) -> None:
        """The policy's program halves the job, and Slurm gets the nodes back; a second time it wants
        none, having no accounting here, and the job continues."""
        target = os.path.join(self.slurm.work, "target")
        job = self.submit(f"--np 1:4 --slurm-shrink 1s --settle 1s --policy 'exec:cat {target}'",
                          ENDLESS, "-N4")
        self.world(job, size=4)
        self.advise(target, 2)
        world = self.world(job, size=2, planned=True)
        self.assertEqual(world["hosts"], self.names[:2])
        self.assertEqual(until("nodes are given back", lambda: self.events("hosts_given_back"), 60)[
            0]["hosts"], "node3, node4")
        for name in self.names[2:]:
            self.slurm.wait_node(name, ["idle"])
            self.assertEqual(self.bed[name].programs(), [])
            self.assertNotIn("agent-", self.bed[name].run("ls", "/tmp").stdout)
        self.assertNotIn("lost", self.slurm.output(job))
        self.advise(target, 1)
        self.world(job, size=1, planned=True)
        self.slurm.wait_output(job, "node2 cannot be given back: ")
        self.advise(target, 2)
        after = len(self.events("world_formed"))
        self.world(job, after=after, size=2, planned=True)
        self.end(job)
        self.assertEqual([name for name in os.listdir(self.slurm.work) if "resize" in name], [])

    def advise(self, target: str, size: int) -> None:
        with open(f"{target}.new", "w", encoding="utf-8") as file:
            file.write(json.dumps({"target": size, "reason": "asked for"}))
        os.rename(f"{target}.new", target)

    def test_a_slow_node_is_replaced(self) -> None:
        slow = ("sh -c 'exec " + ENDLESS.replace(
            "--batch 128 --device-ms 1",
            "--batch 8 --device-ms $([ $(hostname) = node2 ] && echo 10 || echo 1)") + "'")
        job = self.submit("--np 2:3 --shares equal", slow, "-N4")
        self.world(job, size=3)
        (straggler, *_) = until("node2 is found slow", lambda: self.events("straggler"), 60)
        self.assertEqual((straggler["host"], straggler["action"]), ("node2", "replace"))
        self.world(job, hosts=["node1", "node3", "node4"], planned=True)
        self.end(job)

    def test_cancelled_by_signals(self) -> None:
        """Whatever is signalled, the script or all steps with it, nothing is left on any node."""
        for how in (["--batch", "--signal=INT"], ["--full", "--signal=TERM"],
                    ["--full", "--signal=KILL"], []):
            with self.subTest(how=how):
                job = self.submit("", ENDLESS, "-N3")
                self.world(job, size=3)
                self.slurm.run("scancel", *how, str(job))
                self.slurm.wait(job)
                self.nothing_left()

    def test_components(self) -> None:
        job = self.submit("", f"{FASHION} --samples 1280 --epochs 1 --batch 32", "-N1",
                          "--exclusive", ":", "-N2", "--exclusive")
        self.assertEqual(self.slurm.wait(job), "COMPLETED", self.slurm.output(job))
        self.assertEqual(len(self.events("world_formed")[0]["hosts"]), 3)
        self.nothing_left()


class Preemption(Jobs):
    """A cluster whose low partition is taken from, with a grace in which jobs hear of it."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.bed = Bed(nodes(4, tmp="own"))
        cls.addClassCleanup(cls.bed.close)
        cls.names = [host.name for host in cls.bed.hosts]
        cls.slurm = Slurm(cls.bed, grace=30, lines=["SlurmctldParameters=preempt_send_user_signal"])
        cls.addClassCleanup(cls.slurm.close)

    def test_a_task_of_the_array_is_preempted(self) -> None:
        """Its workers leave by a planned change, long before its node is taken."""
        job = self.submit("--policy fixed --slurm-grow '--array=1-2 --exclusive -p low'", ENDLESS,
                          "-N2", "-p", "high")
        self.world(job, size=4)
        other = self.slurm.sbatch("sleep 1000", "-N1", "-p", "high", "--exclusive")
        self.addCleanup(self.cancel, other)
        world = self.world(job, after=1, size=3, planned=True)
        self.assertEqual([event for event in self.events("world_formed") if not event["planned"]][1:],
                         [])
        self.slurm.wait(other, ["RUNNING"])
        self.assertNotIn(self.slurm.show(other)["NodeList"], world["hosts"])
        self.slurm.run("scancel", str(job))
        self.slurm.wait(job)


class Losses(Jobs):
    """The same bed, but nodes lose their power."""

    def crash(self, node: str) -> None:
        """The next test finds the node again."""
        self.bed[node].crash()
        self.addCleanup(self.boot, node)

    def boot(self, node: str) -> None:
        self.slurm.boot(node)
        self.slurm.wait_node(node, ["idle"])

    def test_a_node_is_lost(self) -> None:
        job = self.submit("--np 1:4 --policy fixed", ENDLESS, "-N4")
        self.world(job, size=4)
        self.crash("node2")
        world = self.world(job, size=3, planned=False)
        self.assertNotIn("node2", world["hosts"])
        self.end(job)

    def test_the_node_of_the_script_is_lost(self) -> None:
        """Slurm keeps a job with --no-kill. The agents on its other nodes requeue it, once, or
        cancel it if it may not be requeued."""
        for option in ("--requeue", "--no-requeue"):
            with self.subTest(option):
                job = self.submit(f"--save state-{option} --save-every 1s --np 1:3", ENDLESS, "-N3",
                                  option)
                self.world(job, size=3)
                until("a save", lambda: self.events("saved"), 60)
                node = self.slurm.show(job)["BatchHost"]
                self.crash(node)
                if option == "--requeue":
                    until("it is requeued", lambda n=job: self.slurm.show(n)["Restarts"] != "0", 60)
                    self.slurm.wait(job, ["RUNNING"])
                    self.slurm.wait_output(job, "started again: 1 restart")
                    self.slurm.wait_output(job, "going on from")
                    self.slurm.run("scancel", str(job))
                    self.slurm.wait(job)
                    self.assertEqual(self.slurm.show(job)["Restarts"], "1")
                else:
                    self.assertEqual(self.slurm.wait(job), "CANCELLED")
                self.nothing_left()
                self.doCleanups()

    def test_the_script_stands_still(self) -> None:
        """It is stopped for longer than the agents wait. They end all workers, and do not
        requeue the job."""
        job = self.submit("--np 1:3 --heartbeat 250ms --agent-timeout 2s --lease 4s "
                          "--standstill-timeout 1s", ENDLESS, "-N3", "--requeue")
        self.world(job, size=3)
        (pid,) = [one.pid for one in self.bed[self.slurm.show(job)["BatchHost"]].programs()
                  if one.name == "elasticrun"]
        os.kill(pid, signal.SIGSTOP)
        until("workers end", lambda: not any(
            one.name == "fashion" for host in self.bed.hosts if host.outer for one in host.programs()),
            30)
        time.sleep(3)
        self.assertEqual(self.slurm.show(job)["Restarts"], "0")
        os.kill(pid, signal.SIGCONT)
        self.slurm.wait(job)
        self.assertEqual(self.slurm.show(job)["Restarts"], "0")
        self.nothing_left()


def load_tests(loader: unittest.TestLoader, tests: unittest.TestSuite,
               pattern: str | None) -> unittest.TestSuite:
    """Those of Jobs are not run again in Losses."""
    del tests, pattern
    suite = loader.loadTestsFromTestCase(Jobs)
    suite.addTests(Losses(name) for name in vars(Losses) if name.startswith("test_"))
    suite.addTest(Preemption("test_a_task_of_the_array_is_preempted"))
    return suite


if __name__ == "__main__":
    reason = "no sanitizer's memory fits" if SANITIZED else missing()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
