#!/usr/bin/env python3
"""PyTorch: a plain training loop learns the same whoever comes and dies, and its mistakes are one
clear line each."""
import json
import os
import random
import signal
import tempfile
import unittest

from job import Job, finals, kill, lives, until
from with_torch import ENVIRONMENT, HERE, PROGRAMS, PYTHON, TorchTest, alone

TUTORIAL = os.path.join(PROGRAMS, "tutorial.py")
FIGURES = os.path.join(PROGRAMS, "figures.py")
PLACES = os.path.join(PROGRAMS, "places.py")
EXAMPLES = os.path.join(HERE, "../../worker/examples/torch")
# The exit code when workers do not fail at the same time, and those that replace them fail, too.
AGAIN = 123


class Torch(TorchTest):
    def equal(self, out: str, expected: list[float]) -> None:
        ends = finals(out)
        self.assertGreaterEqual(len(ends), 2, out)
        for end in ends:
            self.assertEqual(end, ends[0])
            for one, other in zip(end, expected):
                self.assertAlmostEqual(one, other, delta=1e-5)

    def run_killed(self, kills: int, seed: int, **variables: str) -> None:
        variables |= {"ACCUMULATE": variables.get("ACCUMULATE", "1")}
        batch = int(variables["BATCH"]) * int(variables["ACCUMULATE"])
        expected, = finals(alone(TUTORIAL, **variables | {"BATCH": str(batch), "ACCUMULATE": "1"})
                           .stdout)
        chance = random.Random(seed)
        with tempfile.NamedTemporaryFile() as slow, Job(
                ["-H", "localhost:3", "--np", "1:3", "--policy", "fixed", "--shares", "equal",
                 "--max-batch", str(batch), "--label", "none"], [PYTHON, TUTORIAL],
                env=ENVIRONMENT | variables | {"SLOW": slow.name}) as job:
            after = 0
            for _ in range(kills):
                job.wait_for("world_formed", after, size=3)
                job.wait_for_step()
                after = job.now()
                kill(chance.choice([pid for pid in job.workers().values() if lives(pid)]))
                job.wait_for("world_formed", after)
            slow.close()
            self.assertEqual(job.wait(120), 0, job.err())
            self.equal(job.out(), expected)
            job.gone(10)

    def test_tutorial(self) -> None:
        self.run_killed(2, 1, BATCH="24", OPTIMIZER="adamw")

    def test_pieces(self) -> None:
        self.run_killed(2, 2, BATCH="4", ACCUMULATE="6", OPTIMIZER="sgd")

    def test_schedule_by_steps(self) -> None:
        """Made from the loader's length after the newcomer has received the rates of the others."""
        self.run_killed(2, 4, BATCH="24", OPTIMIZER="sgd", BY_STEPS="1")

    def test_loader_workers(self) -> None:
        """Samples that were fetched ahead for another world are not used."""
        self.run_killed(2, 3, BATCH="8", ACCUMULATE="3", OPTIMIZER="adamw", LOADERS="2",
                        PERSISTENT="1")

    def test_end_of_epoch(self) -> None:
        """A worker that dies there: the epoch comes again without samples, and its end has effect once."""
        variables = {"BATCH": "24"}
        expected, = finals(alone(TUTORIAL, **variables).stdout)
        with Job(["-H", "localhost:3", "--np", "1:3", "--policy", "fixed", "--shares", "equal",
                  "--max-batch", "24", "--label", "none"], [PYTHON, TUTORIAL],
                 env=ENVIRONMENT | variables | {"TOY_SLEEP": "0.02", "DIE": "1"}) as job:
            self.assertEqual(job.wait(120), 0, job.err())
            self.equal(job.out(), expected)
            self.assertIn("epochs 0 1 1 2 3 4 5", job.out())
            self.assertEqual(job.leftovers(), [])

    def test_stop_at_the_end(self) -> None:
        """The save holds all epochs: there is nothing left to train, and the program ends."""
        expected, = finals(alone(TUTORIAL, BATCH="24").stdout)
        with tempfile.TemporaryDirectory() as folder:
            hold = os.path.join(folder, "hold")
            with open(hold, "w", encoding="utf-8"):
                pass
            for code in (75, 0):
                with Job(["-H", "localhost:2", "--max-batch", "24", "--label", "none", "--save",
                          os.path.join(folder, "state")], [PYTHON, TUTORIAL],
                         env=ENVIRONMENT | {"BATCH": "24", "HOLD": hold}) as job:
                    if code:
                        until("the last epoch", lambda job=job: "holding" in job.out(), 60)
                        kill(job.process.pid, signal.SIGTERM)
                        until("it stops", lambda job=job: "SIGTERM" in job.err(), 10)
                        os.remove(hold)
                    self.assertEqual(job.wait(60), code, job.err())
                    self.assertEqual(job.leftovers(), [])
                    out = job.out()
        self.equal(out, expected)

    def figures(self, size: int, **variables: str) -> tuple[str, dict[str, list[list[float]]]]:
        """The output of a job with figures, and the numbers of its lines by their first word."""
        with Job(["-H", f"localhost:{size}", "--np", f"1:{size}", "--policy", "fixed", "--shares",
                  "equal", "--label", "none", "--verify-state", "2"], [PYTHON, FIGURES],
                 env=ENVIRONMENT | variables) as job:
            self.assertEqual(job.wait(120), 0, job.err())
            self.assertEqual(job.find("diverged"), [])
            self.assertEqual(job.leftovers(), [])
            lines = [line.split() for line in job.out().splitlines()]
            return job.out(), {kind: [[float(number) for number in numbers]
                                      for first, *numbers in lines if first == kind]
                               for kind in ("figures", "running")}

    def test_death_among_figures(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.pt")
            out, lines = self.figures(3, BUFFERS="rank0", EXPORT=path, DIE="figures", TOY_SLEEP="0.02")
            read = alone("-c", f"import torch; saved = torch.load({path!r}); print(*saved, saved['epoch'], "
                         "saved['model']['0.weight'].item(), saved['step'])")
            self.assertEqual(os.listdir(folder), ["model.pt"])
        self.equal(out, finals(out)[0])
        for epoch in range(4):
            told = [figures for figures in lines["figures"] if figures[0] == epoch]
            size = int(told[-1][1])  # of the last time; a replacement may have come
            self.assertEqual(sorted(figures for figures in told if figures[1] == size),
                             [[epoch, size, rank, (size + 1) / 2, size, size * (size - 1) / 2, 1]
                              for rank in range(size)])
        # The first time the mean was all workers', or this one's own; the sum was this one's own.
        missed = [figures for figures in lines["figures"] if figures[:2] == [1, 3]]
        self.assertEqual(sorted((rank, *counts) for _, _, rank, _, *counts in missed),
                         [(1, 1, 1, 0), (2, 1, 2, 0)])
        first = sorted(line[1:] for line in lines["running"] if line[0] == 0)
        for _, running, _ in first:  # all have those of rank 0
            self.assertAlmostEqual(running, first[0][2], delta=1e-9)
        self.assertNotAlmostEqual(first[1][2], first[0][2], delta=1e-6)
        self.assertEqual(read.stdout.split()[:6],
                         ["model", "optimizer", "objects", "epoch", "step", "4"], read.stderr)
        self.assertEqual(float(read.stdout.split()[6]), finals(out)[0][1])

    def test_local_buffers(self) -> None:
        """Those of a worker are the statistics of its own samples, each once."""
        _, lines = self.figures(3, BUFFERS="local", DIE="step", TOY_SLEEP="0.02")
        last = sorted(line[1:] for line in lines["running"] if line[0] == 3)
        self.assertEqual(len(last), 2)
        for _, running, own in last:
            self.assertAlmostEqual(running, own, delta=1e-9)
        self.assertNotAlmostEqual(last[0][1], last[1][1], delta=1e-6)

    def test_save(self) -> None:
        """Stopped and resumed at another size, with what the optimizer and the schedule have."""
        variables = {"BATCH": "24", "OPTIMIZER": "adamw"}
        expected, = finals(alone(TUTORIAL, **variables).stdout)
        with tempfile.TemporaryDirectory() as folder:
            def job(size: int, **more: str) -> Job:
                return Job(["-H", f"localhost:{size}", "--max-batch", "24", "--policy", "fixed",
                            "--label", "none", "--save", folder], [PYTHON, TUTORIAL],
                           env=ENVIRONMENT | variables | {"TOY_SLEEP": "0.02"} | more)
            with job(3) as first:
                first.wait_for("world_formed", size=3)
                first.wait_for_step()
                first.process.send_signal(signal.SIGTERM)
                self.assertEqual(first.wait(60), 75, first.err())
            with job(2, OPTIMIZER="sgd") as other:
                self.assertIn(other.wait(60), (1, AGAIN), other.err())
                self.assertIn("a program with AdamW where this one has SGD", other.err())
            with job(2) as second:
                self.assertEqual(second.wait(120), 0, second.err())
                self.equal(second.out(), expected)
                self.assertEqual(second.leftovers(), [])

    def test_example(self) -> None:
        with Job(["-H", "localhost:2", "--policy", "fixed", "--label", "none"],
                 [PYTHON, os.path.join(EXAMPLES, "fashion.py"), "2", "6400"], env=ENVIRONMENT) as job:
            self.assertEqual(job.wait(120), 0, job.err())
            self.assertRegex(job.out(), r"epoch 2: [7-9]\d\.\d% of the test images, 2 workers")
            self.assertIn("sizes 2 (0 planned, 0 forced)", job.err())
            self.assertEqual(job.leftovers(), [])

    def test_further_examples(self) -> None:
        for arguments, says in ((["transformer.py", "2", "640"], "epoch 2: .* step 10, 2 workers"),
                                (["tutorial.py", "3"], r"epoch 3: loss 0\.\d+, 2 workers")):
            with self.subTest(arguments[0]), Job(
                    ["-H", "localhost:2", "--policy", "fixed", "--label", "none"],
                    [PYTHON, os.path.join(EXAMPLES, arguments[0]), *arguments[1:]],
                    env=ENVIRONMENT) as job:
                self.assertEqual(job.wait(120), 0, job.err())
                self.assertRegex(job.out(), says)

    def place(self, place: str, **variables: str) -> Job:
        return Job(["-H", "localhost:2", "--policy", "fixed", "--label", "none"], [PYTHON, PLACES],
                   env=ENVIRONMENT | variables | {"PLACE": place})

    def test_exceptions(self) -> None:
        """Wherever a program fails, the job ends with its code, and nothing is left."""
        for place in ("begin", "data", "loop", "backward", "commit", "schedule", "epoch", "end"):
            with self.subTest(place), self.place(place) as job:
                self.assertIn(job.wait(60), (1, AGAIN), job.err())
                self.assertIn(f"ArithmeticError: raised in {place}\n", job.err())
                self.assertRegex(job.err(), r"exited with code 1")
                self.assertEqual(job.leftovers(), [])

    def test_exception_in_a_loader_process(self) -> None:
        with self.place("data", LOADERS="1") as job:
            self.assertIn(job.wait(60), (1, AGAIN), job.err())
            self.assertIn("ArithmeticError: raised in data\n", job.err())
            job.gone(10)

    def test_exit_in_training(self) -> None:
        with self.place("exit") as job:
            self.assertIn(job.wait(60), (122, AGAIN), job.err())
            self.assertIn("exited with 0 in mid-training without leave()", job.err())
            self.assertEqual(job.leftovers(), [])

    def test_interrupt(self) -> None:
        with Job(["-H", "localhost:2", "--policy", "fixed"], [PYTHON, TUTORIAL],
                 env=ENVIRONMENT | {"BATCH": "4", "TOY_SLEEP": "0.1", "LOADERS": "1"}) as job:
            job.wait_for("world_formed", size=2)
            job.wait_for_step()
            job.process.send_signal(signal.SIGINT)
            self.assertEqual(job.wait(60), 130, job.err())
            job.gone(10)

    def test_mistakes(self) -> None:
        ended = alone("-c", EACH, json.dumps([BEGIN + program for program, _ in WRONG.values()]))
        said = ended.stdout.splitlines()
        self.assertEqual(len(said), len(WRONG), ended.stderr)
        for (name, (_, says)), line in zip(WRONG.items(), said):
            with self.subTest(name):
                self.assertIn(says, line)


# Runs programs, each in a process of its own that has torch already, and prints what they raise.
EACH = """
import json, os, sys, traceback
import torch, elasticrun.torch
for program in json.loads(sys.argv[1]):
    child = os.fork()
    if child == 0:
        line = "ended well"
        try:
            exec(program, {})
        except Exception as error:
            line = traceback.format_exception_only(type(error), error)[-1].strip()
        print(line, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""
BEGIN = """
import torch, elasticrun.torch as er
model = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(model.parameters(), 0.1)
data = torch.utils.data.TensorDataset(torch.ones(8, 2))
def loop(job, body, epochs=2, **keywords):
    for epoch in job.epochs(epochs):
        for x, in job.loader(data, batch_size=4, **keywords):
            body(x)
def step(x):
    opt.zero_grad(); model(x).sum().backward(); opt.step()
"""
# Each program, and what the last line of its errors says.
WRONG = {
    "never a step": ("loop(er.Job(model, opt), lambda x: model(x).sum().backward())",
                     "elasticrun.Misuse: opt.step() was not called in this iteration"),
    "two steps": ("loop(er.Job(model, opt), lambda x: (step(x), opt.step()))",
                  "elasticrun.Misuse: opt.step() was called twice in one iteration"),
    "two backward passes": ("loop(er.Job(model, opt), lambda x: (model(x).sum().backward(), step(x)))",
                            "Misuse: a second backward pass in one iteration"),
    "another optimizer": ("other = torch.optim.SGD(model.parameters(), 0.1)\n"
                          "loop(er.Job(model, other), step)",
                          "elasticrun.Misuse: opt.step() was not called in this iteration"),
    "a scheduler apart": ("s = torch.optim.lr_scheduler.StepLR(opt, 1)\nloop(er.Job(model, opt), step)",
                          "elasticrun.Misuse: the optimizer's scheduler is not registered"),
    "two optimizers": ("er.Job(model, opt, torch.optim.SGD(model.parameters(), 0.1))",
                       "elasticrun.Misuse: a second optimizer"),
    "a sparse gradient": ("model = torch.nn.Embedding(8, 1, sparse=True)\n"
                          "opt = torch.optim.SGD(model.parameters(), 0.1)\n"
                          "loop(er.Job(model, opt), lambda x: model(x.long()).sum().backward())",
                          "Misuse: the gradient of 'weight' is sparse; make the embedding with"),
    "zeros that torch does not write out": (
        "kept = []\ndef body(x):\n  opt.zero_grad()\n"
        "  (torch.sgn(model.weight) if kept else model(x)).sum().backward()\n"
        "  opt.step(); kept.append(model.weight.tolist())\n"
        "loop(er.Job(model, opt), body)\nassert kept[-1] == kept[0], kept", "ended well"),
    "a late group": ("er.Job(model, opt); opt.add_param_group({'params': []})",
                     "elasticrun.Misuse: add_param_group after Job()"),
    "break": ("job = er.Job(model, opt)\nfor epoch in job.epochs(2):\n"
              "  for x, in job.loader(data, batch_size=4): step(x); break",
              "elasticrun.Misuse: epochs: the loop over job.loader ended before its samples"),
    "a skipped batch": ("loop(er.Job(model, opt), lambda x: None if float(x[0, 0]) else step(x))",
                        "call opt.step() in each; no batch can be left out"),
    "accumulation by hand": ("turns = []\ndef body(x):\n  turns.append(x)\n  if len(turns) % 2 == 0: "
                             "step(x)\nloop(er.Job(model, opt, accumulate=2), body)",
                             "elasticrun.Misuse: opt.step() was not called in this iteration"),
    "a schedule that is over": (
        "s = torch.optim.lr_scheduler.OneCycleLR(opt, 1, 3)\nrates = []\n"
        "def body(x): step(x); rates.append(opt.param_groups[0]['lr']); s.step()\n"
        "loop(er.Job(model, opt, s), body, epochs=4)\n"
        "assert rates[2:] == 6 * rates[2:3] and rates[1] != rates[2], rates", "ended well"),
    "objects that are saved": (
        "import io\ns = torch.optim.lr_scheduler.StepLR(opt, 1)\njob = er.Job(model, opt, s)\n"
        "keys = {'step_size', 'gamma', 'base_lrs', 'last_epoch'}\n"
        "def body(x): step(x); torch.save(s.state_dict(), io.BytesIO()); s.step()\n"
        "loop(job, body)\nassert s.last_epoch == 4 and keys < set(s.state_dict()), s.state_dict()",
        "ended well"),
    "a step that fails": ("def fail(*_): raise RuntimeError\nopt.step = fail\njob = er.Job(model, opt)\n"
                          "def body(x):\n  try: step(x)\n  except RuntimeError: pass\nloop(job, body)",
                          "elasticrun.Misuse: opt.step() was not called in this iteration"),
    "a scaler by name": (
        "class Scaler:\n  def step(self, optimizer): optimizer.step()\n  def state_dict(self): return {}\n"
        "  def load_state_dict(self, state): pass\ns = Scaler()\n"
        "def body(x): model(x).sum().backward(); s.step(optimizer=opt)\n"
        "loop(er.Job(model, opt, s, accumulate=2), body)", "ended well"),
    "gradients at the end": (
        "job = er.Job(model, opt)\nfor epoch in job.epochs(1):\n  for x, in job.loader(data): step(x)\n"
        "  assert model.weight.grad is not None", "ended well"),
    "a loader twice": ("job = er.Job(model, opt)\nfor epoch in job.epochs(1):\n"
                       "  for _ in range(2):\n    for x, in job.loader(data): step(x)",
                       "elasticrun.Misuse: loader: the loop over it stands in"),
    "a loader after the epochs": ("job = er.Job(model, opt)\nloop(job, step)\n"
                                  "for x, in job.loader(data, batch_size=4): step(x)",
                                  "elasticrun.Misuse: loader: the loop over it stands in"),
    "no epoch": ("loop(er.Job(model, opt), step, epochs=0)", "elasticrun.Misuse: epochs: count is 0"),
    "no loader": ("for epoch in er.Job(model, opt).epochs(2): pass",
                  "elasticrun.Misuse: epochs: an epoch without job.loader"),
    "no epochs": ("for x, in er.Job(model, opt).loader(data): step(x)",
                  "elasticrun.Misuse: loader: the loop over it stands in"),
    "a sampler": ("loop(er.Job(model, opt), step, sampler=[1, 2])",
                  "elasticrun.Misuse: loader: sampler=[1, 2] is not taken"),
    "no shuffling": ("loop(er.Job(model, opt), step, shuffle=False)",
                     "elasticrun.Misuse: loader: shuffle=False is not taken"),
    "an exception": ("loop(er.Job(model, opt), lambda x: 1 // 0)", "ZeroDivisionError"),
    "an exception in on_commit": ("job = er.Job(model, opt)\njob.on_commit(lambda: 1 // 0)\n"
                                  "loop(job, step)", "ZeroDivisionError"),
    "a mean in an epoch": ("job = er.Job(model, opt)\nloop(job, lambda x: (step(x), job.mean(1)))",
                           "elasticrun.Misuse: job.mean: only at the end of an epoch"),
    "a sum before the epochs": ("er.Job(model, opt).all_reduce(torch.ones(1))",
                                "elasticrun.Misuse: job.all_reduce: only at the end of an epoch"),
    "a barrier after the epochs": ("job = er.Job(model, opt)\nloop(job, step)\njob.barrier()",
                                   "elasticrun.Misuse: job.barrier: only at the end of an epoch"),
    "the mean of integers": ("job = er.Job(model, opt)\nfor epoch in job.epochs(1):\n"
                             "  for x, in job.loader(data): step(x)\n  job.mean(torch.ones(1).int())",
                             "elasticrun.Misuse: job.mean: a tensor of torch.int32 has no mean"),
    "a layer frozen late": ("loop(er.Job(model, opt), lambda x: (step(x), "
                            "model.bias.requires_grad_(False)))",
                            "elasticrun.Misuse: requires_grad of 'bias' was changed after Job()"),
    "a layer thawed late": ("model.weight.requires_grad_(False)\nloop(er.Job(model, opt), "
                            "lambda x: (step(x), model.weight.requires_grad_(True)))",
                            "elasticrun.Misuse: requires_grad of 'weight' was changed after Job()"),
    "buffers of nobody": ("er.Job(model, opt, buffers='rank1')",
                          "elasticrun.Misuse: Job: buffers='rank1'; it is 'mean', 'rank0' or 'local'"),
    "a norm over processes": ("er.Job(torch.nn.Sequential(model, torch.nn.SyncBatchNorm(1)), opt)",
                              "elasticrun.Misuse: Job: SyncBatchNorm needs a process group"),
    "a foreign parameter": ("er.Job(torch.nn.Linear(1, 1), opt)",
                            "elasticrun.Misuse: Job: the optimizer has a parameter that is not"),
}

if __name__ == "__main__":
    unittest.main()
