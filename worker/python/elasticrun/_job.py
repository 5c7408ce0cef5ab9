"""Job: the library's train() and loops for arrays of any kind."""
from __future__ import annotations

import ctypes
import os
import traceback
from ctypes import byref, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any, Callable, Iterator, Optional, Sequence

from . import _library as lib
from ._library import Misuse, call
from ._memory import Memory, memory_of
from ._process import end_child, leave_interrupts_to_job


class Step:
    """A step, valid until the next one; see elasticrun-worker(3)."""

    def __init__(self, step: int) -> None:
        self.address = step

    @property
    def samples(self) -> list[int]:
        """The sample indices to compute now; in apply those of this worker's whole share."""
        count = c_size_t()
        first = call("step_samples", self.address, byref(count))
        return first[:count.value]

    @property
    def number(self) -> int:
        """Steps committed before this one, over all calls of train, from 0."""
        return call("step_number", self.address)

    @property
    def epoch(self) -> int:
        """From 0."""
        return call("step_epoch", self.address)

    @property
    def epochs_done(self) -> int:
        """Of job.steps(): 0 in a step; at the end of an epoch, the number of those that are over."""
        return call("step_epochs_done", self.address)

    @property
    def global_batch(self) -> int:
        """Samples of this step over the world."""
        return call("step_global_batch", self.address)

    @property
    def ends_epoch(self) -> bool:
        return call("step_ends_epoch", self.address) != 0

    @property
    def last_piece(self) -> bool:
        """Whether reduce follows, and not another piece of the share."""
        return call("step_last_piece", self.address) != 0

    @property
    def lr_factor(self) -> float:
        """In apply: the factor for the learning rate, as --lr-rule sets it."""
        return call("step_lr_factor", self.address)

    def ready(self, gradient: int | str) -> None:
        """In compute, any thread: a gradient is final, by its name or its number from 0."""
        self._report("ready", gradient)

    def unset(self, gradient: int | str) -> None:
        """The same, but it was not set: it counts as zero."""
        self._report("unset", gradient)

    def is_set(self, gradient: int | str) -> bool:
        """In apply: whether any worker has set it."""
        return call("step_is_set", self.address, self._number(gradient)) != 0

    def sum(self, name: str, value: float) -> None:
        """In compute: adds to a figure that is summed over the world."""
        if call("step_sum", self.address, name.encode(), value) != lib.OK:
            raise Misuse(f"step.sum: more than 32 names, or not in compute: {name}")

    def total(self, name: str) -> float:
        """In apply: the sum over the world; 0 for a name that no worker has used."""
        return call("step_total", self.address, name.encode())

    def _report(self, what: str, gradient: int | str) -> None:
        status = call("step_" + what, self.address, self._number(gradient))
        lib.raise_status(status, f"step.{what}: there is no gradient {gradient!r}"
                         if status == lib.MISUSE else f"step.{what}: the GPU has failed")

    def _number(self, gradient: int | str) -> int:
        if isinstance(gradient, int):
            return gradient
        number = call("step_gradient", self.address, gradient.encode())
        if number < 0:
            raise Misuse(f"step: there is no gradient {gradient!r}")
        return number


class Listing:
    """What a state source has at present."""

    def __init__(self, listing: int, kept: list[Memory]) -> None:
        self._listing = listing
        self._kept = kept

    def array(self, name: str, array: Any) -> None:
        """An array that steps change; it stays where it is until the next listing."""
        memory = memory_of(array)
        self._kept.append(memory)
        call("list_array", self._listing, name.encode(), memory.address, memory.bytes)

    def objects(self, data: bytes) -> None:
        """Small objects, as bytes that only take_objects reads."""
        call("list_objects", self._listing, data, len(data))


class Job:
    """A job, opened by the constructor. Raises Failed when it cannot be opened."""

    def __init__(self) -> None:
        self._job: Optional[c_void_p] = None  # for close, where this fails
        leave_interrupts_to_job()
        self._job = lib.open_job()
        self._kept: dict[str, Memory] = {}  # registered memory must stay where it is
        self._listed: list[Memory] = []  # by the state source, and read by the library
        self._started: list[Memory] = []  # sums that are not waited for
        self._functions: dict[str, Any] = {}  # ctypes' functions, which C may still call
        self._thrown: Optional[BaseException] = None
        self._owner = os.getpid()

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Frees the job. In the middle of a loop that is a failure of the program: leave() leaves it."""
        job, self._job = self._job, None
        if job is not None:
            call("close", job)

    def __del__(self) -> None:
        self.close()

    # ------------------------------------------------------------ what survives

    def state(self, name: str, array: Any) -> "Job":
        """Memory that apply changes and newcomers receive."""
        memory = self._keep(name, array)
        self._call("state", name.encode(), memory.address, memory.bytes)
        return self

    def gradients(self, name: str, array: Any) -> "Job":
        """Compute leaves the mean over its samples here, apply finds that of the global batch."""
        return self._numbers("gradients", name, array)

    def buffers(self, name: str, array: Any) -> "Job":
        """Running statistics, reduced like gradients and carried to newcomers."""
        return self._numbers("buffers", name, array)

    def state_source(self, list: Callable[[Listing], None],
                     make_room: Callable[[Sequence[tuple[str, int]]], None],
                     take_objects: Optional[Callable[[bytes], None]] = None) -> "Job":
        """State that is not there from the start. `list` adds what there is; `make_room` gets names and
        sizes in bytes; `take_objects` gets the objects of another worker. Not while a step is under
        way."""
        def listed(listing: int, _: Any) -> int:
            self._listed = []
            return self._run(lambda: list(Listing(listing, self._listed)))

        def room(wanted: Any, count: int, _: Any) -> int:
            arrays = [(wanted[i].name.decode(), wanted[i].bytes) for i in range(count)]
            return self._run(lambda: make_room(arrays))

        def taken(data: Any, count: int, _: Any) -> int:
            text = ctypes.string_at(data, count) if count else b""
            return self._run(lambda: take_objects(text) if take_objects else None)

        source = lib.Source(ctypes.sizeof(lib.Source), lib.ListFunction(listed),
                            lib.RoomFunction(room), lib.ObjectsFunction(taken), None)
        status = call("state_source", self._job, byref(source))
        if status != lib.MISUSE:  # refused, the library keeps the one before
            self._functions["source"] = source
        self._check(status)
        return self

    def stream(self, stream: int) -> "Job":
        """The CUDA stream on which compute and apply work, such as torch's `stream.cuda_stream`."""
        self._call("stream", stream)
        return self

    # ------------------------------------------------------------ training

    def on_epoch(self, function: Callable[[int], None]) -> None:
        """Called on every member after the last step of each epoch, with the number of epochs done: to
        evaluate, save, print. It must not change registered state."""
        wrapped = lib.EpochFunction(lambda done, _: self._run(lambda: function(done)))
        self._call("on_epoch", wrapped, None)
        self._functions["on_epoch"] = wrapped

    def train(self, compute: Callable[[Step], None], apply: Callable[[Step], None], *, samples: int,
              **options: int) -> None:
        """Calls compute, reduces, calls apply, once per step until the samples are used. Options are
        epochs (1), batch, base_batch, micro_batch, seed and bucket_bytes, as in elasticrun-worker(3).
        Raises Evicted, Misuse, Failed, and what a function raised."""
        functions = [lib.StepFunction(lambda step, _, f=f: self._run(lambda: f(Step(step))))
                     for f in (compute, apply)]
        self._functions["train"] = functions
        self._call("train", byref(_options(samples, options)), *functions, None)

    def enter(self, *, samples: int = 0, **options: int) -> Optional[int]:
        """Before train or steps: blocks until this worker is in a world and has its state. Returns the
        epoch in which the next call goes on there; None: the world has finished that call, or `epochs`
        have ended. The options are that call's, or those of them that are known."""
        epoch = c_int64()
        given = byref(_options(samples, options)) if samples or options else None
        self._call("enter", given, byref(epoch))
        return epoch.value if epoch.value < (1 << 63) - 1 else None

    def steps(self, *, samples: int, **options: int) -> Iterator[Step]:
        """What train does, as a loop. Each step that is not the end of an epoch (`epochs_done`) is
        computed; after its last piece come reduce(), and if that is true, applying and commit(). With
        epoch_steps=1 reduce() and commit() follow the end of an epoch as well."""
        self.begin(samples=samples, **options)
        while (step := self.next()) is not None:
            yield step

    def begin(self, *, samples: int, **options: int) -> None:
        """What steps begins with, for a loop of another form."""
        self._call("begin", byref(_options(samples, options)))

    def next(self) -> Optional[Step]:
        """What steps gives next; None: all samples are used."""
        step = c_void_p()
        self._call("next", byref(step))
        return Step(step.value) if step.value else None

    def reduce(self) -> bool:
        """False: the step did not happen, and its samples come again."""
        status = call("reduce", self._job)
        if status != lib.WORLD_CHANGED:
            self._check(status)
        return status == lib.OK

    def upcoming(self, count: int) -> list[int]:
        """For prefetching: at most `count` of this worker's next samples, if the world stays."""
        samples = (c_uint64 * count)()
        return samples[:call("upcoming", self._job, samples, count)]

    def upcoming_piece(self, ahead: int) -> Optional[list[int]]:
        """For prefetching: the samples that next() gives after `ahead` others, if the world stays; None
        when the epoch ends before."""
        count = call("upcoming_piece", self._job, ahead, None, 0)
        if count < 0:
            return None
        samples = (c_uint64 * count)()
        call("upcoming_piece", self._job, ahead, samples, count)
        return list(samples)

    # ------------------------------------------------------------ a loop of one's own

    def start(self) -> None:
        """Blocks until this worker is in a world and has its state. This and the following raise
        WorldChanged, Evicted, Failed and Misuse."""
        self._call("start")

    def all_reduce(self, array: Any) -> None:
        """Sums each element over the world, in place."""
        memory = memory_of(array)
        self._settle("all_reduce", memory.address, memory.type, memory.numbers)

    def all_reduce_start(self, array: Any) -> None:
        """The same without waiting: the memory is the library's until all_reduce_wait is over."""
        memory = memory_of(array)
        self._started.append(memory)
        self._call("all_reduce_start", memory.address, memory.type, memory.numbers)

    def all_reduce_wait(self) -> None:
        self._settle("all_reduce_wait")

    def broadcast(self, array: Any, root: int) -> None:
        """Copies the array of rank `root` to all ranks."""
        memory = memory_of(array)
        self._settle("broadcast", memory.address, memory.bytes, root)

    def barrier(self) -> None:
        self._settle("barrier")

    def samples(self, count: int) -> None:
        """Adds to the samples that this worker has computed in the step under way."""
        self._call("samples", count)

    def commit(self) -> None:
        """Makes the step part of the state of all."""
        self._settle("commit")

    def finish(self) -> None:
        """After the last step: returns when every member has called it."""
        self._settle("finish")

    def leave(self) -> None:
        """Leaves the world for good; the others train on. Blocks until they have ended their step,
        at most 30 seconds."""
        self._call("leave")

    @property
    def committed(self) -> int:
        """Steps in the state that this worker holds."""
        return call("committed", self._job)

    # ------------------------------------------------------------ the world

    @property
    def rank(self) -> int:
        return call("rank", self._job)

    @property
    def size(self) -> int:
        return call("size", self._job)

    @property
    def generation(self) -> int:
        """Grows with each new world."""
        return call("generation", self._job)

    @property
    def global_batch(self) -> int:
        """Samples of a step; the last one of an epoch may have fewer. 0: no batch has been named yet."""
        return call("global_batch", self._job)

    # ------------------------------------------------------------ inside

    def _keep(self, name: str, array: Any) -> Memory:
        try:
            memory = memory_of(array)
        except Misuse as error:
            raise Misuse(f"'{name}': {error}") from None
        self._kept[name] = memory
        return memory

    def _numbers(self, kind: str, name: str, array: Any) -> "Job":
        memory = self._keep(name, array)
        if memory.type < 0:
            raise Misuse(f"'{name}': {kind} are float32, float64, bfloat16 or float16, and buffers "
                         "also int32 or int64; register others as state")
        self._call(kind, name.encode(), memory.address, memory.type, memory.numbers)
        return self

    def _run(self, function: Callable[[], Any]) -> int:
        """Runs a function for C; what it raises comes out of the call that the program has made. A child
        that the function forks ends here: the call is its parent's."""
        error: Optional[BaseException] = None
        try:
            function()
        except BaseException as thrown:  # pylint: disable=broad-except
            error = self._thrown = thrown
        if os.getpid() != self._owner:
            end_child(error)
        return 0 if error is None else 1

    def _call(self, name: str, *arguments: Any) -> None:
        self._check(call(name, self._job, *arguments))

    def _settle(self, name: str, *arguments: Any) -> None:
        """Calls what waits for the sums that were started: their memory is the program's again."""
        try:
            self._call(name, *arguments)
        finally:
            self._started.clear()

    def _check(self, status: int) -> None:
        thrown, self._thrown = self._thrown, None
        if status == lib.CALLBACK and thrown is not None:
            raise thrown
        if isinstance(thrown, Exception):  # such as one of a state source, which makes a save fail
            traceback.print_exception(type(thrown), thrown, thrown.__traceback__)
        lib.raise_status(status, lib.error_of(self._job))


def _options(samples: int, given: dict[str, int]) -> lib.TrainOptions:
    options = lib.TrainOptions(struct_size=ctypes.sizeof(lib.TrainOptions), samples=samples, epochs=1)
    known = {name for name, _ in lib.TrainOptions._fields_[2:]}
    for name, value in given.items():
        if name not in known:
            raise TypeError(f"there is no option '{name}'; there are {', '.join(sorted(known))}")
        setattr(options, name, value)
    return options
