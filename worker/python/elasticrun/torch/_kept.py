"""Failures that cannot be raised at once, such as those at the end of a backward pass. The next
call of the job raises them. A process that makes no such call ends with code 1."""
from __future__ import annotations

import atexit
import os
from typing import Optional

from .._process import end_child

_waiting: list[tuple[int, BaseException]] = []  # each with the process that keeps it


class Kept:
    """Keeps one failure, the first."""

    def __init__(self) -> None:
        self.error: Optional[BaseException] = None

    def keep(self, error: BaseException) -> None:
        if self.error is None:
            self.error = error
            _waiting.append((os.getpid(), error))

    def raise_one(self) -> None:
        kept, self.error = self.error, None
        if kept is not None:
            _waiting[:] = [each for each in _waiting if each[1] is not kept]
            raise kept


@atexit.register  # at the import, so handlers of the program run first
def _end() -> None:
    for process, error in _waiting:
        if process == os.getpid() and not isinstance(error, SystemExit):
            end_child(error)
