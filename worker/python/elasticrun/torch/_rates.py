"""What opt.step() reads is equal on all workers: learning rates and the other numbers of param_groups,
and at the first step of an epoch the schedules. A digit of them is summed with each step."""
from __future__ import annotations

import json
import sys
import zlib
from typing import Any, Callable

import torch

from .. import Step
from .._library import Misuse
from ._objects import Objects

DIGITS = 1 << 18  # squares of smaller numbers, of 131072 workers, are summed exactly
JUMP = 1.25  # a rate changes by less in one step
SHOWN = 4  # numbers that are summed by themselves, so that a message has the others' mean
TAKEN = "elasticrun taken"
NAMES = ["elasticrun digit", "elasticrun square", *(f"elasticrun number {i}" for i in range(SHOWN))]


class Rates:
    """Compares them in the reduction of a step, before the step is applied."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._numbers: list[tuple[str, float]] = []
        self._looked: Any = None  # the epoch and generation in which schedules were compared
        self._with_schedules = False
        self._taken: list[tuple[str, float]] = []  # the numbers of the state that was read last

    @staticmethod
    def begin(step: Step) -> None:
        """Before the program uses names of its own: all workers have the same names in one order."""
        for name in (*NAMES, TAKEN):
            step.sum(name, 0.0)

    def taken(self) -> None:
        """After a read of the state: all workers read that of a save, a newcomer that of others."""
        self._taken = self._objects.numbers()

    def send(self, step: Step, generation: int) -> None:
        """Before the reduction."""
        self._numbers = self._objects.numbers()
        self._with_schedules = self._looked != (step.epoch, generation)
        self._looked = step.epoch, generation
        text = ";".join(f"{name}={_rounded(value)}" for name, value in self._numbers).encode()
        if self._with_schedules:
            text += repr(json.loads(self._objects.schedules(), parse_float=_rounded)).encode()
        digit = zlib.crc32(text) % DIGITS
        for name, value in zip(NAMES, (digit, digit * digit, *(v for _, v in self._numbers[:SHOWN]))):
            step.sum(name, value)
        step.sum(TAKEN, bool(self._taken))

    def warn(self, step: Step, number: int, size: int, rank: int) -> None:
        """In the first step after the read of a save. A counter of the program begins at 0 on all
        workers, so their rates agree. A schedule of the save cannot differ. A warm-up may double a
        rate in its first steps."""
        before, self._taken = self._taken, []
        if int(step.total(TAKEN)) < size or rank > 0 or number < 4 or self._objects.has_schedule():
            return
        lines = [f"{name} is {here:.6g}, but was {was:.6g} at the save"
                 for (name, was), (other, here) in zip(before, self._numbers) if name == other
                 and was != 0 and min(abs(was), abs(here)) * JUMP < max(abs(was), abs(here))]
        if lines:
            more = f" (and {len(lines) - 1} other numbers differ)" if len(lines) > 1 else ""
            print(f"elasticrun: {lines[0]}{more}; unless that is intended, compute it from "
                  "job.step", file=sys.stderr, flush=True)

    def check(self, step: Step, number: int, size: int, rank: int) -> None:
        """After the reduction. All workers see the same sums, so all raise Misuse, or none."""
        digits, squares = int(step.total(NAMES[0])), int(step.total(NAMES[1]))
        if size * squares == digits * digits:
            return
        for (name, here), shown in zip(self._numbers, NAMES[2:]):
            there = (step.total(shown) - here) / max(size - 1, 1)
            if abs(there - here) > 1e-7 * max(abs(there), abs(here)):
                raise Misuse(f"opt.step: step {number}: {name} differs between the workers: "
                             f"{here:.6g} on rank {rank}, {there:.6g} {_others(size)}; " + ADVICE)
        if not self._with_schedules and len(self._numbers) <= SHOWN:
            return  # all were compared above, and differ in their last bits only
        listed = ", ".join(f"{name} is {value:.6g}" for name, value in self._numbers[SHOWN:][:8])
        what = "a number of param_groups" + (" or the state of a schedule" if self._with_schedules else "")
        raise Misuse(f"opt.step: step {number}: {what} differs between the workers "
                     f"(on rank {rank} {listed or self._numbers[0][0] + ' does not'}); " + ADVICE)


def apply_at(optimizer: torch.optim.Optimizer, apply: Callable[[], None], factor: float) -> None:
    """A step with learning rates that are multiplied by the factor for its time."""
    groups = optimizer.param_groups if factor != 1 else []
    rates = [group["lr"] for group in groups]
    for group in groups:
        group["lr"] = group["lr"] * factor
    try:
        apply()
    finally:
        for group, rate in zip(groups, rates):
            group["lr"] = rate


ADVICE = ("compute a rate from job.step and not from a counter of your own, which a newcomer lacks; give "
          "ReduceLROnPlateau job.mean(loss) and not each worker's own loss")


def _rounded(number: Any) -> str:
    """Machines of several kinds differ in the last bits."""
    return f"{float(number):.8g}"


def _others(size: int) -> str:
    return "on the other" if size == 2 else "on the others on average"
