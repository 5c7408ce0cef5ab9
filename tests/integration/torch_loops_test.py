#!/usr/bin/env python3
"""PyTorch: usual ways to write the loop work, and a rate that differs between workers ends the job
before it is applied."""
import os
import signal
import tempfile
import unittest

from job import Job, finals, kill, until
from with_torch import ENVIRONMENT, PROGRAMS, PYTHON, TorchTest, alone

RATES = os.path.join(PROGRAMS, "rates.py")
LEFT = os.path.join(PROGRAMS, "left.py")
KEPT = os.path.join(PROGRAMS, "kept.py")
BEGIN = """
import torch, elasticrun.torch as er
model = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(model.parameters(), 0.1)
x = torch.ones(8, 2)
data = torch.utils.data.TensorDataset(x)
job = er.Job(model, opt)
seen = []
def step(x):
    opt.zero_grad(); model(x).sum().backward(); opt.step(); seen.append(job.step)
"""
LOOPS = {
    "a dataset in the line of the loop": (
        "for epoch in job.epochs(2):\n"
        "  for a, in job.loader(torch.utils.data.TensorDataset(x), 4): step(a)\n"
        "assert seen == [1, 2, 3, 4], seen", ""),
    "a dataset of another length": (
        "for epoch in job.epochs(2):\n"
        "  for a, in job.loader(torch.utils.data.TensorDataset(x[epoch:]), 4): step(a)",
        "Misuse: loader: this is another dataset"),
    "break in the last step": (
        "for epoch in job.epochs(2):\n  for a, in job.loader(data, 4):\n    step(a)\n"
        "    if len(seen) == 4: break\n  assert job.mean(2.0) == 2\nassert seen == [1, 2, 3, 4], seen", ""),
    "break in the last step of each epoch": (
        "for epoch in job.epochs(2):\n  for a, in job.loader(data, 4):\n    step(a)\n"
        "    if len(seen) % 2 == 0: break\nassert seen == [1, 2, 3, 4], seen", ""),
    "break before": (
        "for epoch in job.epochs(2):\n  for a, in job.loader(data, 4):\n    step(a)\n    break",
        "Misuse: epochs: the loop over job.loader ended before its samples"),
    "the next batch before the backward pass": (
        "batches = (a for epoch in job.epochs(2) for a, in job.loader(data, 4))\n"
        "a = next(batches)\nloss = model(a).sum()\nnext(batches)",
        "before the loop took the next batch; num_workers= fetches ahead"),
    "a batch that is left out": (
        "for epoch in job.epochs(2):\n  for a, in job.loader(data, 4):\n    if seen: continue\n    step(a)",
        "before the loop took the next batch; num_workers= fetches ahead"),
    "a turn without opt.step": (
        "for epoch in job.epochs(2):\n  for a, in job.loader(data, 4): model(a).sum().backward()",
        "Misuse: opt.step() was not called in this iteration; for accumulation"),
    "a look at the first batch": (
        "for epoch in job.epochs(2):\n  loader = job.loader(data, 4)\n"
        "  assert len(next(iter(loader))[0]) == 4 and job.step == 2 * epoch\n"
        "  for a, in loader: step(a)\nassert seen == [1, 2, 3, 4], seen", ""),
}

BAD_STATE = """
import time, torch, elasticrun.torch as er
class Object:
    def state_dict(self):
        if in_loop: raise ValueError("no state")
        return {}
    def load_state_dict(self, state): pass
in_loop = False
model = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(model.parameters(), 0.1)
job = er.Job(model, opt, Object())
for epoch in job.epochs(1):
    loader = job.loader(torch.utils.data.TensorDataset(torch.ones(20, 2)))
    for number, (x,) in enumerate(loader):
        in_loop = True
        model(x).sum().backward()
        opt.step()
        time.sleep(0.05)
        in_loop = number < 18
"""


class Loops(TorchTest):
    def test_loops(self) -> None:
        for name, (program, says) in LOOPS.items():
            with self.subTest(name):
                ended = alone("-c", BEGIN + program)
                self.assertEqual(ended.returncode, 1 if says else 0, ended.stderr)
                self.assertIn(says, ended.stderr)

    def run_rates(self, how: str, *options: str, program: str = RATES, **variables: str) -> Job:
        return Job(["-H", "localhost:2", "--np", "1:2", "--policy", "fixed", "--shares", "equal",
                    "--max-batch", "8", "--label", "none", *options], [PYTHON, program],
                   env=ENVIRONMENT | variables | {"HOW": how})

    def test_rates_that_differ(self) -> None:
        for how, says in (
                ("plateau", r"step 16: lr of group 0 differs between the workers: 0\.1 on rank 0, 0\.01"),
                ("patience", "step 16: .* the state of a schedule differs between the workers"),
                ("momentum", r"step 0: momentum of group 0 differs between the workers: 0\.9 on rank 0, 0\.8 on the other"),
                ("group", "leave out init_process_group"),
                ("late group", "leave out init_process_group")):
            with self.subTest(how), self.run_rates(how) as job:
                self.assertIn(job.wait(60), (1, 123), job.err())
                self.assertRegex(job.err(), says)
                self.assertEqual(job.find("diverged"), [])
                self.assertEqual(job.leftovers(), [])

    def test_failure_of_a_backward_pass(self) -> None:
        """The next call of the program raises it; without one, the end of the process prints it."""
        for how in ("step", "update", "leave", "all_reduce", "epoch", "break", "caught"):
            with self.subTest(how), self.run_rates(
                    how, "--max-restarts", "0", program=KEPT) as job:
                self.assertIn(job.wait(60), (1, 123), job.err())
                self.assertRegex(job.err(), "Misuse: opt.step" + (
                    "().* was not called" if how == "caught" else ": step 3: momentum of group 0 differs"))
                if how != "break":
                    self.assertEqual(finals(job.out()), [])

    def test_scaler_without_a_backward_pass(self) -> None:
        """One worker has no backward pass in a step: all workers apply the step."""
        with self.run_rates("idle", program=KEPT) as job:
            self.assertEqual(job.wait(60), 0, job.err())
            ends = finals(job.out())
            self.assertEqual(len(ends), 2, job.out())
            self.assertEqual(ends[0], ends[1])

    def test_calls_after_leave(self) -> None:
        """Each worker gets Misuse, and keeps the model, its rank and the number of steps."""
        for how in ("all_reduce", "mean", "barrier", "step", "scaler", "turn", "break"):
            with self.subTest(how), self.run_rates(how, program=LEFT) as job:
                self.assertEqual(job.wait(60), 0, job.err())
                self.assertEqual(job.out().count("after leave()"), 0 if how == "break" else 2, job.out())
                ends = finals(job.out())
                self.assertEqual(len(ends), 2, job.out())
                for one, other in zip(*ends):
                    self.assertAlmostEqual(one, other, delta=1e-5)
                self.assertEqual(ends[0][-1], 5)
                self.assertIn("export 0 5 True", job.out())

    def replaced(self, how: str) -> tuple[int, str, str]:
        """How a job ends in which one of two workers is killed and replaced."""
        with tempfile.NamedTemporaryFile() as slow, self.run_rates(how, SLOW=slow.name, EPOCHS="20") as job:
            job.wait_for("world_formed", size=2)
            job.wait_for_step()
            after = job.now()
            kill(max(job.workers().items())[1])
            job.wait_for("world_formed", after, size=2)
            slow.close()
            return job.wait(60), job.out(), job.err()

    def test_counter_of_a_newcomer(self) -> None:
        code, _, err = self.replaced("counter")
        self.assertIn(code, (1, 123), err)
        self.assertRegex(err, "lr of group 0 differs .*compute a rate from job.step")

    def test_rate_after_a_save(self) -> None:
        """A rate from counters of the workers begins anew, and rank 0 prints a line."""
        for how in ("counter", "step"):
            with self.subTest(how), tempfile.TemporaryDirectory() as folder:
                save = ("--save", os.path.join(folder, "save"))
                slow = os.path.join(folder, "slow")
                with open(slow, "w", encoding="ascii"):
                    pass
                with self.run_rates(how, *save, SLOW=slow) as job:
                    until("step 16", lambda: "step 16" in job.out(), 60)
                    kill(job.process.pid, signal.SIGTERM)
                    self.assertEqual(job.wait(60), 75, job.err())
                    self.assertNotIn("at the save", job.err())
                with self.run_rates(how, *save) as job:
                    self.assertEqual(job.wait(60), 0, job.err())
                    self.assertEqual(job.err().count("at the save"), how == "counter", job.err())
                    if how == "counter":
                        self.assertRegex(job.err(), r"elasticrun: lr of group 0 is 0\.\d+, but was "
                                         r"0\.05\d+ at the save; unless that is intended, compute "
                                         "it from job.step")

    def test_state_dict_that_fails_in_a_save(self) -> None:
        """The save fails, training continues, and the worker prints the reason."""
        with tempfile.TemporaryDirectory() as folder, Job(
                ["-H", "localhost:1", "--save", os.path.join(folder, "save"), "--save-every", "100ms"],
                [PYTHON, "-c", BAD_STATE], env=ENVIRONMENT) as job:
            self.assertEqual(job.wait(60), 0, job.err())
            self.assertIn("list of the state source returned 1", job.err())
            self.assertIn("ValueError: no state", job.err() + job.out())

    def test_rate_from_the_step(self) -> None:
        code, out, err = self.replaced("step")
        self.assertEqual(code, 0, err)
        ends = finals(out)
        self.assertEqual(len(ends), 2, out)
        self.assertEqual(ends[0], ends[1])
        expected, = finals(alone(RATES, HOW="step", EPOCHS="20").stdout)
        for one, other in zip(ends[0], expected):
            self.assertAlmostEqual(one, other, delta=1e-5)


if __name__ == "__main__":
    unittest.main()
