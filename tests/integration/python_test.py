#!/usr/bin/env python3
"""Workers in Python: they learn the same whoever comes and dies, and what they do wrong, or with odd
memory, is one clear line."""
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import venv

from job import BIN, Job, finals, kill, lives

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, "../../worker/python")
EXAMPLE = os.path.join(HERE, "../../worker/examples/python/line.py")
ENDS = os.path.join(HERE, "python_programs/ends.py")
TOY = os.path.join(HERE, "python_programs/toy.py")
ENVIRONMENT = {"PATH": f"{BIN}:{os.environ['PATH']}", "PYTHONPATH": PACKAGE}
SANITIZED = "ELASTICRUN_SANITIZE" in os.environ  # the library needs its runtime in the program


def alone(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], env=os.environ | ENVIRONMENT, check=False,
                          capture_output=True, text=True, timeout=60)


SLOW_BETWEEN = """
import elasticrun, time
from array import array
job = elasticrun.Job()
weights, gradients = array("d", [0]), array("d", [0])
job.state("weights", weights)
job.gradients("gradients", gradients)
for step in job.steps(samples=1600, batch=4):
    if not step.epochs_done and step.last_piece and job.reduce():
        weights[0] += gradients[0]
        job.commit()
        time.sleep(0.02)
"""


@unittest.skipIf(SANITIZED, "the interpreter is not built with the sanitizer")
class Training(unittest.TestCase):
    def run_killed(self, mode: str, kills: int, seed: int) -> None:
        expected, = finals(alone(TOY, mode).stdout)
        chance = random.Random(seed)
        with Job(["-H", "localhost:3", "--np", "1:3", "--policy", "fixed", "--max-batch", "24",
                  "--shares", "equal", "--label", "none"], [sys.executable, TOY, mode],
                 env=ENVIRONMENT | {"TOY_SLEEP": "0.008"}) as job:
            after = 0
            for _ in range(kills):
                job.wait_for("world_formed", after, size=3)
                job.wait_for_step()
                after = job.now()
                kill(chance.choice([pid for pid in job.workers().values() if lives(pid)]))
                job.wait_for("world_formed", after)
            self.assertEqual(job.wait(60), 0, job.err())
            ends = finals(job.out())
            self.assertGreaterEqual(len(ends), 2, job.out())
            for end in ends:
                self.assertEqual(end, ends[0])
                for one, other in zip(end, expected):
                    self.assertAlmostEqual(one, other, delta=1e-9)
            self.assertEqual(job.leftovers(), [])

    def test_train(self) -> None:
        self.run_killed("train", 3, 1)

    def test_steps(self) -> None:
        self.run_killed("steps", 3, 2)

    def test_own_loop(self) -> None:
        self.run_killed("own", 3, 3)

    def test_save(self) -> None:
        """A job that is stopped and resumed, at another size, with what its state source lists."""
        for mode in ("steps", "own"):
            with self.subTest(mode), tempfile.TemporaryDirectory() as folder:
                expected, = finals(alone(TOY, mode).stdout)
                def job(size: int) -> Job:
                    return Job(["-H", f"localhost:{size}", "--max-batch", "24", "--policy", "fixed",
                                "--label", "none", "--save", folder], [sys.executable, TOY, mode],
                               env=ENVIRONMENT | {"TOY_SLEEP": "0.004"})
                with job(3) as first:
                    first.wait_for("world_formed", size=3)
                    first.wait_for_step()
                    first.process.send_signal(signal.SIGTERM)
                    self.assertEqual(first.wait(60), 75, first.err())
                with job(2) as second:
                    self.assertEqual(second.wait(60), 0, second.err())
                    ends = finals(second.out())
                    self.assertEqual(len(ends), 2, second.out())
                    for end in ends:
                        for one, other in zip(end, expected):
                            self.assertAlmostEqual(one, other, delta=1e-9)
                    self.assertEqual(second.leftovers(), [])

    def test_ends_of_epochs(self) -> None:
        """A worker that dies at the end of an epoch: it is told again, and has its effect once."""
        with Job(["-H", "localhost:3", "--np", "1:3", "--policy", "fixed", "--shares", "equal",
                  "--label", "none"], [sys.executable, ENDS], env=ENVIRONMENT) as job:
            self.assertEqual(job.wait(60), 0, job.err())
            ends = [line.split()[1:] for line in job.out().splitlines() if line.startswith("final ")]
            for samples, committed, *_ in ends:
                self.assertEqual((float(samples), float(committed)), (960.0, 4.0))
            self.assertIn(["1", "2", "2", "3", "4"], [told for _, _, *told in ends])
            self.assertEqual(job.leftovers(), [])

    def test_what_follows_a_step_is_measured(self) -> None:
        """So no step is faster than what a program does after it."""
        with Job(["-H", "localhost:2", "--policy", "fixed"], [sys.executable, "-c", SLOW_BETWEEN],
                 env=ENVIRONMENT) as job:
            self.assertEqual(job.wait(60), 0, job.err())
            samples = job.find("sample")[1:]  # nothing comes before the first step
            self.assertTrue(samples)
            for sample in samples:
                self.assertLessEqual(sample["samples_per_s"], 8 / 0.02)

    def test_example(self) -> None:
        with Job(["-H", "localhost:2", "--max-batch", "32", "--label", "none"], [EXAMPLE],
                 env=ENVIRONMENT) as job:
            self.assertEqual(job.wait(60), 0, job.err())
            self.assertIn("epoch 5: y = 2.0", job.out())
            self.assertIn("2 workers", job.out())


# Each program, and the last line of its errors; {} is where `job` has its arrays.
WRONG = {
    "raises in compute": ("job.train(lambda step: 1 // 0, print, samples=9, batch=3)",
                          "ZeroDivisionError: integer division or modulo by zero"),
    "raises in apply": ("job.train(print, lambda step: {}['x'], samples=9, batch=3)", "KeyError: 'x'"),
    "raises in on_epoch": ("job.on_epoch(lambda done: [][done])\n"
                           "job.train(id, id, samples=9, batch=3)",
                           "IndexError: list index out of range"),
    "raises in a loop": ("for step in job.steps(samples=9, batch=3): raise OSError('mine')",
                         "OSError: mine"),
    "raises in list": ("job.state_source(lambda listing: [][1], id)\njob.start()",
                       "IndexError: list index out of range"),
    "an unknown option": ("job.train(id, id, samples=9, batches=3)",
                          "TypeError: there is no option 'batches'; there are base_batch, batch, "
                          "bucket_bytes, epoch_steps, epochs, micro_batch, seed"),
    "no batch": ("job.train(id, id, samples=9)", "elasticrun.Misuse: train: no batch; give .batch or run "
                 "under elasticrun --max-batch"),
    "a name twice": ("job.state('g', w)", "elasticrun.Misuse: state 'g': the name is taken by gradients"),
    "text as gradients": ("job.gradients('t', bytearray(8))",
                          "elasticrun.Misuse: 't': gradients are float32, float64, bfloat16 or float16, "
                          "and buffers also int32 or int64; register others as state"),
    "read-only memory": ("job.state('t', b'12345678')", "elasticrun.Misuse: 't': the array is read-only"),
    "read-only memory of a GPU": (
        "job.state('t', type('Array', (), {'__cuda_array_interface__': {'data': (8, True)}, '__dlpack__': 0})())",
        "elasticrun.Misuse: 't': the array is read-only"),
    "every second number": ("job.state('t', memoryview(w)[::2])",
                            "elasticrun.Misuse: 't': the array does not lie in one piece; make it "
                            "contiguous"),
    "no array": ("job.state('t', 5)",
                 "elasticrun.Misuse: 't': a int is no array: it has neither a buffer nor DLPack"),
    "no such gradient": ("job.train(lambda step: step.ready('h'), id, samples=9, batch=3)",
                         "elasticrun.Misuse: step: there is no gradient 'h'"),
    "commit out of turn": ("job.commit()", "elasticrun.Misuse: commit: call start first"),
}
BEGIN = ("import array, elasticrun\nw = array.array('d', [0] * 4)\ng = array.array('d', [0] * 4)\n"
         "job = elasticrun.Job().state('w', w).gradients('g', g)\n")


@unittest.skipIf(SANITIZED, "the interpreter is not built with the sanitizer")
class Mistakes(unittest.TestCase):
    def test_one_line(self) -> None:
        for name, (program, says) in WRONG.items():
            with self.subTest(name):
                ended = alone("-c", BEGIN + program)
                self.assertEqual(ended.returncode, 1, ended.stderr)
                last = ended.stderr.strip().splitlines()[-1]
                self.assertEqual(last, says)

    def test_exit_in_training(self) -> None:
        ended = alone("-c", BEGIN + "import sys\n"
                      "job.train(lambda step: sys.exit(7), id, samples=9, batch=3)")
        self.assertEqual((ended.returncode, ended.stderr), (7, ""))

    def test_eviction_is_quiet(self) -> None:
        ended = alone("-c", "import elasticrun\nraise elasticrun.Evicted('left')")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_interrupt(self) -> None:
        with Job(["-H", "localhost:2", "--max-batch", "24"], [sys.executable, TOY, "train"],
                 env=ENVIRONMENT | {"TOY_SLEEP": "0.1"}) as job:
            job.wait_for("world_formed", size=2)
            job.process.send_signal(signal.SIGINT)
            self.assertEqual(job.wait(60), 130, job.err())
            job.gone(10)

    def test_environment(self) -> None:
        """What pip has installed takes the interpreter of its virtual environment, active or not."""
        with tempfile.TemporaryDirectory() as folder:
            venv.create(folder, symlinks=True)
            for program in ("elasticrun", "elasticrun-agent"):
                shutil.copy(os.path.join(BIN, program), os.path.join(folder, "bin"))
            script = os.path.join(folder, "where.py")
            with open(script, "w", encoding="utf-8") as file:
                file.write("import sys\nprint(sys.prefix)\n")
            ended = subprocess.run([os.path.join(folder, "bin/elasticrun"), "--label", "none", script],
                                   env={"PATH": "/usr/bin:/bin"}, check=False,
                                   capture_output=True, text=True, timeout=60)
            self.assertEqual(ended.stdout, folder + "\n", ended.stderr)

    def test_no_interpreter(self) -> None:
        with Job(["-H", "localhost:1"], ["/no/such/python3", "train.py"]) as job:
            self.assertEqual(job.wait(60), 127)
            self.assertRegex(job.last_line(), "program '/no/such/python3' not found")


@unittest.skipIf(SANITIZED, "the interpreter is not built with the sanitizer")
class Arrays(unittest.TestCase):
    """Arrays of the libraries that are there, read and written where they lie."""

    def reduced(self, make: str, read: str) -> str:
        program = (f"import array, elasticrun\nw = bytearray(8)\n{make}\n"
                   "job = elasticrun.Job().state('w', w).gradients('g', g)\n"
                   "def compute(step):\n  g[1] = 3\n"
                   "job.train(compute, id, samples=8, batch=4)\n"
                   f"print({read})\n")
        ended = alone("-c", program)
        if "No module named" in ended.stderr:
            self.skipTest(ended.stderr.strip().splitlines()[-1])
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stdout.strip()

    def test_array(self) -> None:
        self.assertEqual(self.reduced("g = array.array('f', [0] * 3)", "list(g)"), "[0.0, 3.0, 0.0]")

    def test_numpy(self) -> None:
        self.assertEqual(self.reduced("import numpy\ng = numpy.zeros(3, 'f2')", "g.tolist()"),
                         "[0.0, 3.0, 0.0]")

    def test_torch(self) -> None:
        self.assertEqual(self.reduced("import torch\ng = torch.zeros(3, dtype=torch.bfloat16)",
                                      "g.tolist()"), "[0.0, 3.0, 0.0]")

    def test_empty(self) -> None:
        self.assertEqual(self.reduced("h = array.array('d')\ng = array.array('d', [0] * 2)\n"
                                      "elasticrun.Job().gradients('h', h)", "list(g)"), "[0.0, 3.0]")


if __name__ == "__main__":
    unittest.main()
