"""The random generators of this process. They belong to a rank: a step that is repeated draws the same
numbers again, and a newcomer draws its own."""
from __future__ import annotations

import random
import sys
from typing import Any

import torch


class Generators:
    """The states of all generators at one moment."""

    def __init__(self) -> None:
        self._torch = torch.get_rng_state()
        self._python = random.getstate()
        numpy = sys.modules.get("numpy")
        self._numpy: Any = numpy.random.get_state() if numpy else None
        self._cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None

    def restore(self) -> None:
        torch.set_rng_state(self._torch)
        random.setstate(self._python)
        if self._numpy is not None:
            sys.modules["numpy"].random.set_state(self._numpy)
        if self._cuda is not None:
            torch.cuda.set_rng_state_all(self._cuda)
