"""libelasticrun as ctypes sees it: its functions, its structs, its statuses as exceptions."""
from __future__ import annotations

import ctypes
import os
import shutil
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_double, c_int, c_int32, c_int64,
                    c_size_t, c_uint64, c_void_p)
from typing import Any, Optional

OK, WORLD_CHANGED, EVICTED, CALLBACK, MISUSE, FAILED = range(6)


class Evicted(SystemExit):
    """This worker has left the world. Uncaught, it ends the process quietly with 0."""

    def __init__(self, text: str) -> None:
        super().__init__(0)
        self.text = text

    def __str__(self) -> str:
        return self.text


class WorldChanged(Exception):
    """Only in a loop of one's own (start): nothing since the last commit happened, and nothing of it is
    left in registered memory. Begin the step that `committed` names."""


class Misuse(Exception):
    """A mistake in the program."""


class Failed(Exception):
    """The environment failed: no agent, no memory, no network."""


for one in (Evicted, WorldChanged, Misuse, Failed):
    one.__module__ = "elasticrun"  # where users have it from


class Array(Structure):
    _fields_ = [("name", c_char_p), ("data", c_void_p), ("bytes", c_size_t)]


class TrainOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("samples", c_int64), ("epochs", c_int64),
                ("batch", c_int64), ("base_batch", c_int64), ("micro_batch", c_int64),
                ("seed", c_uint64), ("bucket_bytes", c_int64), ("epoch_steps", c_int64)]


StepFunction = CFUNCTYPE(c_int, c_void_p, c_void_p)
EpochFunction = CFUNCTYPE(c_int, c_int64, c_void_p)
ListFunction = CFUNCTYPE(c_int, c_void_p, c_void_p)
RoomFunction = CFUNCTYPE(c_int, POINTER(Array), c_size_t, c_void_p)
ObjectsFunction = CFUNCTYPE(c_int, c_void_p, c_size_t, c_void_p)


class Source(Structure):
    _fields_ = [("struct_size", c_size_t), ("list", ListFunction), ("make_room", RoomFunction),
                ("take_objects", ObjectsFunction), ("user", c_void_p)]


# The functions of elasticrun.h: what they return, and what they take.
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "version": (c_char_p, []),
    "open": (c_int, [POINTER(c_void_p)]),
    "close": (None, [c_void_p]),
    "error": (c_char_p, [c_void_p]),
    "state": (c_int, [c_void_p, c_char_p, c_void_p, c_size_t]),
    "gradients": (c_int, [c_void_p, c_char_p, c_void_p, c_int, c_size_t]),
    "buffers": (c_int, [c_void_p, c_char_p, c_void_p, c_int, c_size_t]),
    "state_source": (c_int, [c_void_p, POINTER(Source)]),
    "list_array": (c_int, [c_void_p, c_char_p, c_void_p, c_size_t]),
    "list_objects": (c_int, [c_void_p, c_char_p, c_size_t]),
    "stream": (c_int, [c_void_p, c_void_p]),
    "on_epoch": (c_int, [c_void_p, EpochFunction, c_void_p]),
    "train": (c_int, [c_void_p, POINTER(TrainOptions), StepFunction, StepFunction, c_void_p]),
    "enter": (c_int, [c_void_p, POINTER(TrainOptions), POINTER(c_int64)]),
    "begin": (c_int, [c_void_p, POINTER(TrainOptions)]),
    "next": (c_int, [c_void_p, POINTER(c_void_p)]),
    "reduce": (c_int, [c_void_p]),
    "start": (c_int, [c_void_p]),
    "all_reduce": (c_int, [c_void_p, c_void_p, c_int, c_size_t]),
    "all_reduce_start": (c_int, [c_void_p, c_void_p, c_int, c_size_t]),
    "all_reduce_wait": (c_int, [c_void_p]),
    "broadcast": (c_int, [c_void_p, c_void_p, c_size_t, c_int32]),
    "barrier": (c_int, [c_void_p]),
    "samples": (c_int, [c_void_p, c_int64]),
    "commit": (c_int, [c_void_p]),
    "finish": (c_int, [c_void_p]),
    "committed": (c_int64, [c_void_p]),
    "leave": (c_int, [c_void_p]),
    "rank": (c_int32, [c_void_p]),
    "size": (c_int32, [c_void_p]),
    "generation": (c_uint64, [c_void_p]),
    "global_batch": (c_int64, [c_void_p]),
    "upcoming": (c_size_t, [c_void_p, POINTER(c_uint64), c_size_t]),
    "upcoming_piece": (c_int64, [c_void_p, c_size_t, POINTER(c_uint64), c_size_t]),
    "step_samples": (POINTER(c_uint64), [c_void_p, POINTER(c_size_t)]),
    "step_ready": (c_int, [c_void_p, c_size_t]),
    "step_ready_at": (c_int, [c_void_p, c_void_p, c_void_p, c_size_t]),
    "step_unset": (c_int, [c_void_p, c_size_t]),
    "step_is_set": (c_int, [c_void_p, c_size_t]),
    "step_gradient": (c_int64, [c_void_p, c_char_p]),
    "step_last_piece": (c_int, [c_void_p]),
    "step_epochs_done": (c_int64, [c_void_p]),
    "step_number": (c_int64, [c_void_p]),
    "step_epoch": (c_int64, [c_void_p]),
    "step_global_batch": (c_int64, [c_void_p]),
    "step_ends_epoch": (c_int, [c_void_p]),
    "step_lr_factor": (c_double, [c_void_p]),
    "step_sum": (c_int, [c_void_p, c_char_p, c_double]),
    "step_total": (c_double, [c_void_p, c_char_p]),
}


def _places() -> list[str]:
    """Where the library may be, the likeliest place first: in this package (of a wheel), above it
    (PREFIX/lib/python3/dist-packages), beside the elasticrun that would be run, where the system
    looks."""
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.path.join(here, "lib", "libelasticrun.so"),
              os.path.join(here, "..", "..", "..", "libelasticrun.so")]
    if program := shutil.which("elasticrun"):
        above = os.path.dirname(os.path.dirname(os.path.realpath(program)))
        places.append(os.path.join(above, "lib", "libelasticrun.so"))
    # Not find_library, which runs a compiler, and leaves its file when the process is killed.
    return [*filter(os.path.exists, places), "libelasticrun.so", "libelasticrun.so.0"]


def _load() -> ctypes.CDLL:
    errors = []
    for path in _places():
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            errors.append(str(error))
            continue
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(library, "elasticrun_" + name, None)
            if function is None:
                raise ImportError(f"{path} is older than this package: it has no elasticrun_{name}")
            function.restype, function.argtypes = result, arguments
        return library
    raise ImportError("libelasticrun.so is not found; install elasticrun, or name the folder of the "
                      "library in LD_LIBRARY_PATH: " + "; ".join(errors))


LIBRARY = _load()


def call(name: str, *arguments: Any) -> Any:
    return getattr(LIBRARY, "elasticrun_" + name)(*arguments)


def version() -> str:
    """The version of the loaded library."""
    return call("version").decode()


def raise_status(status: int, text: str) -> None:
    """Raises what the status means; nothing for OK."""
    if status == OK:
        return
    kinds = {WORLD_CHANGED: WorldChanged, EVICTED: Evicted, MISUSE: Misuse}
    raise kinds.get(status, Failed)(text)


def open_job() -> c_void_p:
    job = c_void_p()
    status = call("open", byref(job))
    if status != OK:
        text = error_of(job)
        call("close", job)
        raise_status(status, text)
    return job


def error_of(job: Optional[c_void_p]) -> str:
    return call("error", job).decode(errors="replace")
