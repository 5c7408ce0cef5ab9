#!/usr/bin/env python3
"""PyTorch's own tutorial of DistributedDataParallel against its elastic form: how many lines change, and
what the job then survives."""
import difflib
import os
import random
import tempfile
import unittest

from job import Job, finals, kill, replace_file
from with_torch import ENVIRONMENT, PROGRAMS, PYTHON, TorchTest, alone

DDP, ELASTIC = (os.path.join(PROGRAMS, name) for name in ("ddp_loop.py", "elastic_loop.py"))
KILLS, EPOCHS = 10, 25
SIZES = {0: 2, 3: 3, 7: 2}  # slots of the host file from that kill on


class Tutorial(TorchTest):
    def test_lines(self) -> None:
        before, after = (open(path, encoding="utf-8").read().splitlines() for path in (DDP, ELASTIC))
        new = [line[2:] for line in difflib.ndiff(before, after) if line.startswith("+ ")]
        changed = [line for line in new if line.startswith(" ")]
        self.assertLessEqual(len(changed), 4, changed)
        self.assertEqual([line for line in new if line and line not in changed],
                         ['"""ddp_loop.py with elasticrun.torch."""',
                          "from torch.utils.data import Dataset, TensorDataset",
                          "import elasticrun.torch as er"])

    def test_as_it_was(self) -> None:
        with Job(["-H", "localhost:2", "--label", "none"], [PYTHON, DDP, "1"], env=ENVIRONMENT) as job:
            self.assertEqual(job.wait(60), 0, job.err())
            first, second = finals(job.out())
            self.assertEqual(first, second)
            job.gone(10)

    def test_ten_kills(self) -> None:
        """Of members of a job that grows and shrinks meanwhile, the oldest one, rank 0, among them."""
        expected, = finals(alone(ELASTIC, str(EPOCHS)).stdout)
        chance = random.Random(1)
        with tempfile.TemporaryDirectory() as folder:
            hosts, slow = os.path.join(folder, "hosts"), os.path.join(folder, "slow")
            open(slow, "x", encoding="ascii").close()

            replace_file(hosts, f"localhost:{SIZES[0]}\n")
            with Job(["--hosts", hosts, "--unit", "slot", "--np", "1:3", "--policy", "fixed",
                      "--max-batch", "8", "--max-restarts", "100", "--settle", "100ms", "--label",
                      "none"], [PYTHON, ELASTIC, str(EPOCHS)],
                     env=ENVIRONMENT | {"SLOW": slow}) as job:
                after = 0
                for number in range(KILLS):
                    if number in SIZES:
                        replace_file(hosts, f"localhost:{SIZES[number]}\n")
                    job.wait_for("world_formed", after, size=lambda size: size > 1)
                    job.wait_for_step()
                    after = job.now()
                    size = job.find("world_formed")[-1]["size"]
                    members = sorted(job.workers().items())[:size]
                    kill(members[0 if number % 3 == 0 else chance.randrange(size)][1])
                    job.wait_for("world_formed", after)
                os.remove(slow)
                self.assertEqual(job.wait(120), 0, job.err())
                sizes = {event["size"] for event in job.find("world_formed")}
                self.assertEqual(sizes, {1, 2, 3})
                for end in finals(job.out()):
                    for one, other in zip(end, expected):
                        self.assertAlmostEqual(one, other, delta=1e-5)
                job.gone(10)


if __name__ == "__main__":
    unittest.main()
