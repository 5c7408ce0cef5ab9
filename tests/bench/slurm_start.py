"""Runs /bin/true on all nodes of a Slurm, with srun and with elasticrun, and by ssh on as many hosts.

The nodes are namespaces of this machine (tests/integration/bed), so the figures show processor time
and not a network.
"""
import json
import shlex
import subprocess
import time
from pathlib import Path

from fanout import KEY_EXCHANGE, PROGRAM, Bed, Spec, settle
from figures import Row, median, ratio, spread

from bed.slurm import Slurm, missing, nodes

HOSTS_MAX = 32  # slurmctld and that many slurmd fit one machine

# Runs commands in turn, and prints the times that they took, in ms.
TIMES = """
import json, subprocess, sys, time
took = [[] for _ in sys.argv[2:]]
for _ in range(int(sys.argv[1])):
    for own, command in zip(took, sys.argv[2:]):
        begin = time.perf_counter()
        subprocess.run(command, shell=True, check=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL)
        own.append((time.perf_counter() - begin) * 1e3)
print(json.dumps(took))
"""


def by_srun(programs: Path, hosts: int, rounds: int) -> tuple[list[float], list[float]]:
    """Of srun, and of elasticrun by srun."""
    commands = [f"srun --overlap {PROGRAM}", f"{programs}/elasticrun --quiet {PROGRAM}"]
    with Bed(nodes(hosts)) as bed, Slurm(bed) as slurm:
        script = shlex.join(["exec", "python3", "-c", TIMES, str(rounds), *commands])
        job = slurm.sbatch(script, f"-N{hosts}", "--ntasks-per-node=1")
        if slurm.wait(job, seconds=60 + 20 * rounds) != "COMPLETED":
            raise RuntimeError(slurm.output(job))
        bare, own = json.loads(slurm.output(job).splitlines()[-1])
        return bare, own


def by_ssh(programs: Path, hosts: int, rounds: int) -> list[float]:
    took = []
    with Bed([Spec(slots=1, options={"KexAlgorithms": KEY_EXCHANGE})
              for _ in range(hosts)]) as bed:
        command = [programs / "elasticrun", "--quiet", "--hosts", bed.hosts_file, "--ssh-config",
                   bed.ssh_config, PROGRAM]
        for _ in range(rounds + 1):  # the first one copies the agent
            begin = time.perf_counter()
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL, timeout=300)
            took.append((time.perf_counter() - begin) * 1e3)
            settle(bed)
    return took[1:]


def slurm_start(programs: Path, hosts: int, rounds: int) -> list[Row]:
    if reason := missing():
        return [Row("all", f"not measured: {reason}")]
    bare, own = by_srun(programs, hosts, rounds)
    ssh = by_ssh(programs, hosts, rounds)
    return [Row("elasticrun by srun", spread(own, "ms"), "srun: " + spread(bare, "ms"),
                ratio(median(own), median(bare))),
            Row("", "", "elasticrun by ssh: " + spread(ssh, "ms"),
                ratio(median(own), median(ssh)))]
