"""The world of a Job, and the progress of its training."""
from __future__ import annotations

import os

from .._library import Misuse


class World:
    """The part of a Job that a program may read at any time."""

    @property
    def step(self) -> int:
        """Steps committed, so the number of the step under way, from 0: equal on all workers."""
        first, step = self._enter(), self._step
        if step is None:
            ends = (self._epochs or 0) if self._begun or first is None else first
        elif not step.epochs_done:
            ends = step.epoch
        elif step is self._ended:
            ends = step.epochs_done
        else:
            ends = step.epochs_done - 1
        return self._core.committed - ends  # the library counts ends of epochs as steps

    @property
    def rank(self) -> int:
        return self._core.rank

    @property
    def size(self) -> int:
        return self._core.size

    @property
    def generation(self) -> int:
        """Grows with each new world."""
        return self._core.generation

    @property
    def lr_factor(self) -> float:
        """The factor for the learning rate, as --lr-rule sets it; that of the last step between two."""
        step = self._step
        return step.lr_factor if step is not None and not step.epochs_done else self._lr_factor

    @property
    def global_batch(self) -> int:
        """Samples of a step over the world; the last one of an epoch may have fewer."""
        self._enter()
        if self._batch_is_named:
            return self._core.global_batch
        batch = self._accumulate * (self._loader.batch_size if self._loader is not None else 1)
        return min(self.size * batch, int(os.environ.get("ELASTICRUN_MAX_BATCH", 0)) or 1 << 40)

    def _refuse_after_leave(self, what: str) -> None:
        if self._left:
            raise Misuse(f"{what} after leave(): this worker is out of the world; end both loops "
                         "first. The model, job.rank and job.step keep their values, and rank 0 can "
                         "save")
