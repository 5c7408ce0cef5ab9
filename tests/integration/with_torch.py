"""What tests of elasticrun.torch need: a Python that has torch, and programs for it."""
import os
import shutil
import subprocess
import tempfile
import unittest

from job import BIN

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, "../../worker/python")
PROGRAMS = os.path.join(HERE, "python_programs")
# Debian's torch belongs to Debian's Python, which another one may hide on PATH.
PYTHON = os.environ.get("ELASTICRUN_TORCH_PYTHON", "/usr/bin/python3")
CACHE = tempfile.TemporaryDirectory()  # torch 2.15 makes one when it is imported, and leaves it
ENVIRONMENT = {"PATH": f"{BIN}:{os.environ['PATH']}",
               "TORCHINDUCTOR_CACHE_DIR": CACHE.name,
               "PYTHONPATH": ":".join([PACKAGE, *filter(None, [os.environ.get("PYTHONPATH")])])}
SANITIZED = "ELASTICRUN_SANITIZE" in os.environ  # the library needs its runtime in the program


def alone(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PYTHON, *arguments], env=os.environ | ENVIRONMENT | variables,
                          check=False, capture_output=True, text=True, timeout=120)


def has_torch() -> bool:
    return shutil.which(PYTHON) is not None and alone("-c", "import torch").returncode == 0


@unittest.skipIf(SANITIZED, "the interpreter is not built with the sanitizer")
@unittest.skipUnless(SANITIZED or has_torch(), "there is no torch")
class TorchTest(unittest.TestCase):
    """A test that runs where there is torch."""
