#!/usr/bin/env python3
"""Tests of the Slurm on a test bed: jobs see what they see on a cluster, and nothing is left.

What other tests take for granted about Slurm is written down here: a later version that behaves in
another way fails here, and not in a job of elasticrun.
"""
import os
import sys
import tempfile
import time
import unittest

from bed import Bed, groups
from bed.slurm import Slurm, missing, nodes
from job import lives, until

# Tells what comes from its standard input, until that ends.
READER = "sh -c 'while read line; do echo $SLURMD_NODENAME $line; done'"
# As a launcher starts one agent on each node: nothing that a task does may end the others.
STEP = "srun --overlap --kill-on-bad-exit=0 --no-kill --wait=0 --mpi=none"


class WithSlurm(unittest.TestCase):
    bed: Bed
    slurm: Slurm
    names: list[str]

    @classmethod
    def setUpClass(cls) -> None:
        # A /tmp of their own, as nodes have: what is copied there is there on that node only.
        cls.bed = Bed(nodes(4, tmp="own"))
        cls.addClassCleanup(cls.bed.close)
        cls.names = [host.name for host in cls.bed.hosts]
        cls.slurm = Slurm(cls.bed, gpus=2, lost=2)
        cls.addClassCleanup(cls.slurm.close)

    def done(self, script: str, *options: str, states: tuple[str, ...] = ("COMPLETED",)) -> str:
        """Runs a job to its end; returns what it has written."""
        job = self.slurm.sbatch(script, *options)
        self.addCleanup(self.cancel, job)
        self.assertIn(self.slurm.wait(job), states, self.slurm.output(job))
        return self.slurm.output(job)

    def running(self, script: str, *options: str) -> int:
        """Starts a job; returns when its script has written "ready"."""
        job = self.slurm.sbatch(script, *options)
        self.addCleanup(self.cancel, job)
        self.slurm.wait_output(job, "ready\n")
        return job

    def cancel(self, job: int) -> None:
        self.slurm.run("scancel", str(job), check=False)
        self.slurm.wait(job)
        until("the nodes are free", lambda: all(
            self.slurm.node_state(name) in ("idle", "down*", "drained") for name in self.names), 60)


class Jobs(WithSlurm):
    def test_a_step_on_all_nodes(self) -> None:
        said = self.slurm.run("srun", "-N4", "hostname").stdout
        self.assertEqual(sorted(said.split()), self.names)

    def test_what_a_script_and_its_steps_see(self) -> None:
        said = self.done(f"""
            echo $SLURM_JOB_NODELIST $SLURM_JOB_CPUS_PER_NODE $SLURM_JOB_GPUS $CUDA_VISIBLE_DEVICES
            echo step=${{SLURM_STEP_ID-none}} tasks=${{SLURM_NTASKS-none}} rank=$SLURM_PROCID
            scontrol show hostnames | tr '\\n' ' '; echo
            {STEP} -N3 -n3 sh -c 'echo $SLURM_STEP_NUM_TASKS:$SLURM_PROCID:$CUDA_VISIBLE_DEVICES'
            """, "-N3", "--exclusive", "--gpus-per-node=2").splitlines()
        self.assertEqual(said[:3], ["node[1-3] 2(x3) 0,1 0,1", "step=none tasks=none rank=0",
                                    "node1 node2 node3 "])
        self.assertEqual(sorted(said[3:]), ["3:0:0,1", "3:1:0,1", "3:2:0,1"])

    def test_output_goes_through_srun_and_input_to_all(self) -> None:
        said = self.done(f"printf 'a\\000b' | {STEP} -N2 -n2 wc -c", "-N2")
        self.assertEqual(said.split(), ["3", "3"])

    def test_a_step_beside_another(self) -> None:
        job = self.running(f"mkfifo $SLURM_JOB_ID; {STEP} -N4 -n4 {READER} < $SLURM_JOB_ID & "
                           f"exec 3> $SLURM_JOB_ID; echo ready >&3; "
                           f"{STEP} -N1 -n1 -w node3 hostname; exec 3>&-; wait", "-N4")
        self.assertEqual(self.slurm.wait(job), "COMPLETED")
        self.assertEqual(sorted(self.slurm.output(job).splitlines()),
                         ["node1 ready", "node2 ready", "node3", "node3 ready", "node4 ready"])

    def test_a_program_is_copied(self) -> None:
        """It stays when the step is over. To a folder it is copied under a name of its own."""
        said = self.done(f"""
            cp /bin/echo program
            {STEP} -N2 -n2 --bcast=/tmp/there ./program yes
            {STEP} -N2 -n2 --bcast=/tmp/ ./program yes
            {STEP} -N1 -n1 -w node2 sh -c 'ls /tmp'""", "-N2")
        self.assertEqual(said.split()[:4], ["yes"] * 4)
        self.assertIn("there", said.split())
        self.assertRegex(said, r"slurm_bcast_\d+\.1_node2")

    def test_orphans_end_with_their_step(self) -> None:
        orphan = "(setsid sleep 1001 &); setsid sleep 1002 & exit 0"
        job = self.running(f"{STEP} -N2 -n2 sh -c '{orphan}'; echo ready; sleep 1000", "-N2")
        self.assertEqual(self.bed["node2"].programs(), [])
        self.assertEqual(self.slurm.state(job), "RUNNING")

    def test_cancelled(self) -> None:
        job = self.running("echo ready; sleep 1000", "-N2")
        self.slurm.run("scancel", str(job))
        self.assertEqual(self.slurm.wait(job), "CANCELLED")
        until("no program is left", lambda: not any(
            host.programs() for host in self.bed.hosts), 20)

    def test_a_batch_script_is_signalled_alone(self) -> None:
        job = self.running(f"trap 'echo got it; exit 0' USR1; {STEP} -N1 -n1 sleep 1000 & "
                           "echo ready; wait", "-N1")
        self.slurm.signal(job, "USR1")
        self.assertEqual(self.slurm.wait(job), "COMPLETED")
        self.assertIn("got it", self.slurm.output(job))

    def test_shrunk(self) -> None:
        """The step goes on on the nodes that the job keeps. The variables of the script are old:
        it must name the nodes, as a step on all of them would wait for ever."""
        job = self.running(f"""
            mkfifo $SLURM_JOB_ID; {STEP} -N4 -n4 {READER} < $SLURM_JOB_ID &
            exec 3> $SLURM_JOB_ID; echo ready >&3
            until [ -e shrunk ]; do sleep 0.1; done
            echo now >&3; echo $SLURM_JOB_NODELIST
            {STEP} -N3 -n3 -w node1,node2,node4 echo a step
            {STEP} -N1 -n1 -w node3 true; echo $?
            exec 3>&-; wait""", "-N4", "--no-kill")
        until("all answer", lambda: self.slurm.output(job).count("ready") == 4, 20)
        self.slurm.shrink(job, "node1", "node2", "node4")
        self.assertEqual(self.slurm.show(job)["NodeList"], "node[1-2,4]")
        until("nothing runs on node3", lambda: not self.bed["node3"].programs(), 20)
        with open(os.path.join(self.slurm.work, "shrunk"), "x", encoding="ascii"):
            pass
        self.slurm.wait(job)
        said = self.slurm.output(job).splitlines()
        self.assertIn("node[1-4]", said)
        self.assertEqual(said.count("a step"), 3)
        self.assertEqual(len([line for line in said if line.endswith(" now")]), 3, said)
        self.assertIn("1", said)

    def test_requeued(self) -> None:
        job = self.running('echo "run ${SLURM_RESTART_COUNT:-0}"; echo ready; '
                           '[ -n "$SLURM_RESTART_COUNT" ] || sleep 1000', "-N1", "--requeue")
        self.slurm.run("scontrol", "requeue", str(job))
        self.assertEqual(self.slurm.wait(job), "COMPLETED")
        self.assertEqual(self.slurm.output(job).count("run"), 2)
        self.assertIn("run 1", self.slurm.output(job))

    def test_preempted(self) -> None:
        job = self.running('trap "" TERM; echo ready; [ -n "$SLURM_RESTART_COUNT" ] || sleep 1000',
                           "-N4", "--requeue", "--exclusive")
        said = self.slurm.run("srun", "-p", "high", "-N4", "--exclusive", "hostname").stdout
        self.assertEqual(sorted(said.split()), self.names)
        self.assertEqual(self.slurm.wait(job), "COMPLETED")
        self.assertEqual(self.slurm.show(job)["Restarts"], "1")

    def test_components(self) -> None:
        said = self.done("""
            echo $SLURM_HET_SIZE $SLURM_JOB_NODELIST_HET_GROUP_0 $SLURM_JOB_NODELIST_HET_GROUP_1
            srun --het-group=1 hostname
            srun --het-group=0,1 --label hostname
            """, "-N1", "--exclusive", ":", "-N2", "--exclusive")
        self.assertEqual(said.split()[:3], ["2", "node1", "node[2-3]"])
        self.assertEqual(sorted(said.split()[3:5]), ["node2", "node3"])
        self.assertEqual(sorted(said.split()[6::2]), ["node1", "node2", "node3"])

    def test_drained(self) -> None:
        job = self.running("echo ready; sleep 1000", "-N1", "-w", "node2")
        self.slurm.drain("node2")
        self.assertEqual(self.slurm.node_state("node2"), "draining")
        self.cancel(job)
        self.assertEqual(self.slurm.node_state("node2"), "drained")
        self.slurm.resume("node2")
        self.slurm.wait_node("node2", ["idle"])


class Losses(WithSlurm):
    def test_a_node_is_lost(self) -> None:
        """The step goes on on the other nodes, and the node is a node again when it boots."""
        job = self.running(f"(while :; do date; sleep 0.2; done) | {STEP} -N4 -n4 {READER} & "
                           "echo ready; wait", "-N4", "--no-kill")
        self.slurm.wait_output(job, "node3 ")
        begin = time.monotonic()
        self.bed["node3"].crash()
        self.slurm.wait_node("node3", ["down*"])
        print(f"a lost node is down after {time.monotonic() - begin:.1f} s")
        self.assertEqual(self.slurm.state(job), "RUNNING")
        count = self.slurm.output(job).count("node4 ")
        until("others go on", lambda: self.slurm.output(job).count("node4 ") > count + 2, 20)
        self.assertEqual(self.slurm.show(job)["NodeList"], "node[1-2,4]")
        self.slurm.boot("node3")
        self.slurm.wait_node("node3", ["idle"])


class Whole(unittest.TestCase):
    def test_nothing_is_left(self) -> None:
        with Bed(nodes(2, private_root=True)) as bed:
            begin = time.monotonic()
            with Slurm(bed) as slurm:
                up = time.monotonic()
                job = slurm.sbatch("hostname; srun -N2 sleep 1000", "-N2")
                until("it runs", bed["node2"].programs, 20)
                self.assertEqual(slurm.output(job), "node1\n")
                pids = [process.pid for host in bed.hosts for process in host.processes()
                        if process.inner != 1] + [daemon.pid for daemon in slurm.daemons]
                asked = time.monotonic()
            print(f"up in {up - begin:.1f} s, down in {time.monotonic() - asked:.1f} s")
            self.assertEqual([pid for pid in pids if lives(pid)], [])
            self.assertEqual([len(host.processes()) for host in bed.hosts], [1, 1])
            self.assertEqual(os.listdir(bed.shared), [])
            with Slurm(bed) as slurm:  # and another one can follow
                self.assertEqual(slurm.run("srun", "-N2", "true").returncode, 0)
            mark = bed.mark
        self.assertEqual([path for base in [*groups.bases(), tempfile.gettempdir()]
                          if os.path.exists(path := os.path.join(base, mark))], [])


class Limits(unittest.TestCase):
    def test_time_limit(self) -> None:
        """Slurm looks at time limits twice in a minute, so nothing is quicker than that."""
        with Bed(nodes(1)) as bed, Slurm(bed) as slurm:
            begin = time.monotonic()
            job = slurm.sbatch("trap 'echo warned; exit 0' USR1; sleep 1000 & wait", "--time=1",
                               "--signal=B:USR1@30")
            self.assertEqual(slurm.wait(job), "COMPLETED")
            self.assertIn("warned", slurm.output(job))
            print(f"warned of the time limit after {time.monotonic() - begin:.1f} s")


if __name__ == "__main__":
    if reason := missing():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
