"""The process of a worker: how Python's interrupts and forked children are kept from the job."""
from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from typing import Any, Optional


def leave_interrupts_to_job() -> None:
    """Python's own handler would end this worker by KeyboardInterrupt before the state is saved, when
    INT comes to all processes of a job. The library handles the standard action; without a shim above
    this process, that ends it. A handler of the program stays."""
    saves = os.environ.get("ELASTICRUN_SOCKET") and os.environ.get("ELASTICRUN_SAVE")
    if saves and threading.current_thread() is threading.main_thread() and (
            signal.getsignal(signal.SIGINT) is signal.default_int_handler):
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def end_child(error: Optional[BaseException]) -> None:
    """Ends a forked child as Python ends a process, but runs none of its parent's cleanup."""
    code: Any = error.code if isinstance(error, SystemExit) else 0 if error is None else 1
    if error is not None and not isinstance(error, SystemExit):
        traceback.print_exception(type(error), error, error.__traceback__)
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass  # it is none, or closed
    os._exit((code or 0) & 0xFF)
