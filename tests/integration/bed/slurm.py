"""A Slurm on the hosts of a test bed: each is a node with a slurmd; the controller is this machine.

    with Bed(nodes(4)) as bed, Slurm(bed, gpus=2) as slurm:
        job = slurm.sbatch("srun hostname", "-N4")
        slurm.wait(job, ["COMPLETED"])
        print(slurm.output(job))

These are the real programs with a configuration, a key, sockets and logs of their own in the bed's
shared folder, so nothing of this machine's Slurm, if it has one, is read or changed, and two beds
can have a Slurm each. As the controller is on no host, it survives the loss of any. Waiting times
are as short as Slurm takes them.

Control groups would be those of this machine, so Slurm tracks processes by their parents. So that
none gets away by losing its parent, which a Slurm with control groups would not let happen either,
orphans of a step become children of its slurmstepd.
"""
import os
import shutil
import signal
import socket
import stat
import subprocess
from collections.abc import Iterable, Sequence
from typing import Any, Self

import bed as beds
from bed import Bed, Host, Spec
from job import kill, read, until

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol", "setpriv", "perl")
PATIENCE = 60.0  # seconds; a node takes some to register, and a lost one some to be missed
PORT = 16800  # of the controller: this and the number of the bed
# The kernel ends a daemon of this machine when the test is killed; those of hosts end with these.
TETHER = ["setpriv", "--pdeathsig", "KILL"]
OVER = ["BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
        "PREEMPTED", "TIMEOUT"]
# Jobs of the partition high take nodes from jobs of low, the default one, which are requeued.
CONFIGURATION = """
ClusterName=bed
SlurmctldHost={machine}({address})
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire={requeue}
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
PlugStackConfig={folder}/plugstack.conf
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,batch_sched_delay=0,bf_interval=1,permit_job_expansion
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
ReturnToService=2
SlurmdTimeout={lost}
KillWait={kill_wait}
UnkillableStepTimeout=10
TCPTimeout=1
MessageTimeout={lost}
InactiveLimit=0
MinJobAge=3600
GresTypes=gpu
{lines}
{nodes}
PartitionName=low Nodes=ALL Default=YES MaxTime=INFINITE PriorityTier=1 GraceTime={grace}
PartitionName=high Nodes=ALL MaxTime=INFINITE PriorityTier=2 PreemptMode=OFF
"""

# Put over slurmstepd, which inherits the attribute: it is a subreaper.
STEPD = "/usr/sbin/slurmstepd"
REAPER = """
test -e /run/slurmstepd && exit
touch /run/slurmstepd
mount --bind {stepd} /run/slurmstepd
cat > /run/reaper <<'END'
#!/usr/bin/perl
syscall({prctl}, 36, 1, 0, 0, 0);
exec {{"/run/slurmstepd"}} "slurmstepd", @ARGV;
END
chmod 755 /run/reaper
mount --bind /run/reaper {stepd}
"""
SYS_PRCTL = {"x86_64": 157, "aarch64": 167}[os.uname().machine]


def nodes(count: int, **changes: Any) -> list[Spec]:
    """Hosts for a bed that are good nodes: they have no sshd, and share a folder."""
    settings: dict[str, Any] = {"sshd": "refuses", "shared": True} | changes
    return [Spec(**settings) for _ in range(count)]


def missing() -> str:
    """The reason why there can be no Slurm on a bed here; empty when there can."""
    for program in PROGRAMS:
        if not shutil.which(program):
            return f"a Slurm needs {program} (slurmctld, slurmd, slurm-client and munge of Debian)"
    return beds.missing()


class Slurm:
    """A Slurm whose nodes are the hosts of a bed; as a context manager it leaves nothing behind.

    Hosts that are off are nodes too: boot() starts them.
    """

    def __init__(self, bed: Bed, cpus: int = 2, gpus: int = 0, grace: int = 0, kill_wait: int = 1,
                 lost: int = 3, requeue: int = 5, lines: Iterable[str] = ()) -> None:
        """Each node has these processors and pretend GPUs. Times are in seconds: the grace for a
        preempted job; from SIGTERM to SIGKILL; how long a node may be silent, at least 2 (it is
        down after about four times that); and until a requeued job may start, at least 5. Further
        `lines` are those of slurm.conf."""
        if reason := missing():
            raise OSError(reason)
        self.bed = bed
        self.folder = os.path.join(bed.shared, "slurm")
        self.work = os.path.join(self.folder, "work")  # where jobs run
        self.configuration = os.path.join(self.folder, "slurm.conf")
        self.daemons: list[subprocess.Popen[bytes]] = []
        self.slurmds: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("state", "spool", "work"):
            os.makedirs(os.path.join(self.folder, name))
        for host in bed.hosts:
            os.mkdir(os.path.join(self.folder, "spool", host.name))
        try:
            self._configure(cpus, gpus, {"grace": grace, "kill_wait": kill_wait, "lost": lost,
                                         "requeue": requeue, "lines": "\n".join(lines)})
            self._start()
        except BaseException:
            print(f"--- the daemons' words:\n{self.log()[-4000:]}")
            self.close()
            raise

    def _configure(self, cpus: int, gpus: int, values: dict[str, Any]) -> None:
        assert self.bed.network
        devices = [os.path.join(self.folder, f"gpu{number}") for number in range(gpus)]
        for path in devices:  # slurmd takes only a device
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))  # the null device
        self._write("gres.conf", "AutoDetect=off\n" + "".join(
            f"Name=gpu File={path}\n" for path in devices))
        # Else slurmd looks for control groups, in vain on some machines; it uses none.
        self._write("cgroup.conf", "CgroupPlugin=cgroup/v1\n")
        self._write("plugstack.conf", "")
        gres = f" Gres=gpu:{gpus}" if gpus else ""
        lines = [f"NodeName={host.name} NodeAddr={host.address} CPUs={cpus} RealMemory=1000{gres}"
                 for host in self.bed.hosts]
        machine = socket.gethostname().partition(".")[0]
        self._write("slurm.conf", CONFIGURATION.format(
            folder=self.folder, machine=machine, address=self.bed.address, 
            port=PORT + self.bed.network.number,
            nodes="\n".join(lines), **values))

    def _write(self, name: str, text: str) -> None:
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def _start(self) -> None:
        key, munge = os.path.join(self.folder, "munge.key"), os.path.join(self.folder, "munge")
        with open(key, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(os.urandom(128))
        self._daemon("munged", "--foreground", "--force", f"--key-file={key}",
                     f"--socket={munge}.socket", f"--pid-file={munge}.pid",
                     f"--log-file={munge}.log", f"--seed-file={munge}.seed")
        until("munged listens", lambda: os.path.exists(f"{munge}.socket"), PATIENCE)
        self._daemon("slurmctld", "-D", "-c", "-f", self.configuration)
        on = [host for host in self.bed.hosts if host.outer]
        for host in on:
            self._slurmd(host)
        until("the controller answers", lambda: self.run("scontrol", "ping", check=False)
              .stdout.endswith("UP\n"), PATIENCE)
        for host in on:
            self.wait_node(host.name, ["idle"])

    def _daemon(self, *command: str, start: Sequence[str] = TETHER) -> subprocess.Popen[bytes]:
        with open(os.path.join(self.folder, "daemons.log"), "ab") as log:
            daemon = subprocess.Popen([*start, *command], stdin=subprocess.DEVNULL, stdout=log,
                                      stderr=log, cwd=self.work, env=self.environment())
        self.daemons.append(daemon)
        return daemon

    def _slurmd(self, host: Host) -> None:
        done = host.run("sh", "-ec", REAPER.format(stepd=STEPD, prctl=SYS_PRCTL))
        if done.returncode:
            raise OSError(f"{host.name}: {done.stderr}")
        self.slurmds[host.name] = self._daemon("slurmd", "-D", "-f", self.configuration,
                                               "-N", host.name, start=host.prefix())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error:
            print(f"--- the controller's last words:\n{self.log()[-4000:]}")
        self.close()

    # ------------------------------------------------------------ commands and jobs

    def environment(self) -> dict[str, str]:
        """The environment in which a command of this machine, or of a host, talks to this Slurm."""
        env = {key: value for key, value in os.environ.items()
               if not key.startswith(("SLURM", "SBATCH", "SALLOC"))}
        return env | {"SLURM_CONF": self.configuration}

    def run(self, *command: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Runs a command such as srun or squeue on this machine; OSError when it fails, unless
        `check` is false."""
        check = options.pop("check", True)
        settings: dict[str, Any] = {
            "capture_output": True, "text": True, "timeout": PATIENCE, "cwd": self.work,
            "env": self.environment()} | options
        if "input" not in options:
            settings.setdefault("stdin", subprocess.DEVNULL)
        done = subprocess.run(command, **settings)
        if check and done.returncode:
            raise OSError(f"{command}: {done.returncode}: {done.stderr}")
        return done

    def start(self, *command: str, **options: Any) -> subprocess.Popen[str]:
        """Starts a command on this machine, and leaves it to the caller."""
        settings: dict[str, Any] = {"text": True, "cwd": self.work,
                                    "env": self.environment()} | options
        return subprocess.Popen([*TETHER, *command], **settings)

    def sbatch(self, script: str, *options: str) -> int:
        """Submits a shell script (or only its lines) with options of sbatch; ":" separates the
        components of a heterogeneous job. Returns the number of the job."""
        if not script.startswith("#!"):
            script = "#!/bin/sh\n" + script
        own = ["--parsable", f"--output={self.folder}/%j.out", "--open-mode=append"]
        return int(self.run("sbatch", *own, *options, input=script + "\n").stdout)

    def output(self, job: int) -> str:
        """What a job has written so far, in all of its runs, to either output."""
        return read(os.path.join(self.folder, f"{job}.out"))

    def show(self, job: int) -> dict[str, str]:
        """The words of `scontrol show job`, such as JobState and NodeList."""
        words = self.run("scontrol", "--oneliner", "show", "job", str(job)).stdout
        # Later words may be those of the other components.
        pairs = (word.partition("=") for word in words.partition("\n")[0].split(" "))
        return {key: value for key, _, value in pairs}

    def state(self, job: int) -> str:
        return self.show(job)["JobState"]

    def wait(self, job: int, states: Sequence[str] = OVER, seconds: float = PATIENCE) -> str:
        """Waits until the job is in one of these states, such as RUNNING, and returns it."""
        wanted = f"job {job} is {' or '.join(states)}"
        return until(wanted, lambda: {self.state(job)} & set(states), seconds).pop()

    def wait_output(self, job: int, words: str, seconds: float = PATIENCE) -> str:
        """Waits until a job has written these words; returns all that it has written."""
        until(f"job {job} writes {words}", lambda: words in self.output(job), seconds)
        return self.output(job)

    def shrink(self, job: int, *keep: str) -> None:
        """Takes all nodes but these from a running job."""
        self.run("scontrol", "update", f"JobId={job}", f"NodeList={','.join(keep)}")

    def signal(self, job: int, name: str) -> None:
        """Signals the batch script alone, as --signal=B: does before the time limit."""
        self.run("scancel", "--batch", f"--signal={name}", str(job))

    # ------------------------------------------------------------ nodes

    def node_state(self, node: str) -> str:
        """The state in the words of sinfo, such as idle, drained or down*."""
        return self.run("sinfo", "-h", "-p", "low", "-n", node, "-o", "%T").stdout.strip()

    def wait_node(self, node: str, states: Sequence[str], seconds: float = PATIENCE) -> str:
        return until(f"{node} is {' or '.join(states)}", lambda: (
            {self.node_state(node)} & set(states)), seconds).pop()

    def drain(self, node: str, reason: str = "test") -> None:
        """Lets the node take no further job; it is draining until its jobs are over."""
        self.run("scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={reason}")

    def resume(self, node: str) -> None:
        self.run("scontrol", "update", f"NodeName={node}", "State=RESUME")

    def boot(self, node: str) -> None:
        """Boots a host that is off, with its slurmd, without waiting until Slurm uses the node."""
        self.bed[node].boot()
        self._slurmd(self.bed[node])

    # ------------------------------------------------------------ the end

    def log(self) -> str:
        """What the daemons have written: those that failed to start, and the controller."""
        return read(os.path.join(self.folder, "daemons.log")) + read(
            os.path.join(self.folder, "slurmctld.log"))

    def close(self) -> None:
        """Ends all daemons and all that they have started; hosts stay up."""
        hosts = list(self.slurmds.values())  # what waits here for a slurmd ends with it
        for daemon in self.daemons:
            if daemon not in hosts and daemon.poll() is None:
                daemon.terminate()
        for host in self.bed.hosts:
            until(f"nothing runs on {host.name}", lambda: not self._end(host), beds.PATIENCE)
        for daemon in self.daemons:
            daemon.wait(PATIENCE)
        shutil.rmtree(self.folder)

    @staticmethod
    def _end(host: Host) -> bool:
        """Kills the processes of a host; true if there were any."""
        found = [process.pid for process in host.processes() if process.inner != 1]
        for pid in found:
            kill(pid, signal.SIGKILL)
        return bool(found)
