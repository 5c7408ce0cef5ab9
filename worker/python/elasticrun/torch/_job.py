"""Job: a model and its optimizer in a world that may change between two steps."""
from __future__ import annotations

import functools
import types
from typing import Any, Callable, Iterator, Optional, Union

import torch

from .. import Job as Core
from .. import Step
from .._library import Evicted, Misuse
from . import _buffers, _process_group
from ._arguments import check
from ._epoch_end import EpochEnd
from ._gradients import Gradients, flat
from ._loader import Loader
from ._memory import Memory
from ._objects import Objects
from ._random import Generators
from ._rates import Rates, apply_at
from ._world import World

MANY = 1 << 20  # epochs, as long as their number is not known
EACH = ("for accumulation give Job(..., accumulate=k) and call opt.step() in each; no batch can be "
        "left out")


class Job(World, EpochEnd):
    """In place of init_process_group and DistributedDataParallel. `objects` are what else the loop
    steps: schedulers, scalers, averaged models. `accumulate`: batches that one worker computes for a
    step. `bucket_mb`: gradients are reduced in buckets of that size while others are computed.
    `buffers`: all get the "mean" of the workers' or those of "rank0", or each keeps its own ("local").
    `scale_lr`: opt.step() multiplies the learning rates by `lr_factor`; schedulers do not see it."""

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer, *objects: Any,
                 accumulate: int = 1, bucket_mb: float = 25, buffers: str = "mean",
                 scale_lr: bool = False) -> None:
        check(model, optimizer, accumulate, buffers)
        _process_group.refuse()
        self._core = Core()
        self._scale_lr = scale_lr
        self._accumulate, self._bucket_bytes = accumulate, int(bucket_mb * (1 << 20))
        self._objects = Objects(optimizer, objects, self._asked)
        self._objects.check_schedulers()
        self._rates = Rates(self._objects)
        self._gradients = Gradients(list(model.named_parameters()), self._reduce)
        self._memory = Memory(model, optimizer, buffers, self._gradients.hook)
        self._local = self._register(model, buffers)
        self._model, self._optimizer = model, optimizer
        self._apply = optimizer.step
        self._take_over(optimizer)
        self._loader: Optional[Loader] = None
        self._epochs: Optional[int] = None
        self._entered = self._begun = self._left = self._over = self._looping = False
        self._first_epoch: Optional[int] = None
        self._step: Optional[Step] = None  # what the program is at
        self._pending: Optional[Step] = None  # found by epochs, for the loader
        self._ended: Optional[Step] = None  # the end of an epoch that is over for the program
        self._happened = False  # whether the step under way was reduced
        self._lr_factor = 1.0  # of the last step that happened
        self._batch_is_named = False
        self._put_back: Callable[[], None] = lambda: None
        self._generators: Optional[Generators] = None
        self._begun_at: Optional[int] = None  # the step whose generators these are
        self._on_commit: list[Callable[[], None]] = []
        # Whether the last opt.step() was part of a step that happened; at the end of an epoch, whether
        # mean, all_reduce and barrier have happened there.
        self.stepped = False

    # ------------------------------------------------------------ the loop

    def epochs(self, count: int) -> Iterator[int]:
        """The epochs from where the world is. One comes again, with a loader that is empty, when a
        worker died before all had ended it."""
        if self._epochs is not None:
            raise Misuse("epochs: a job has one loop over its epochs")
        if count < 1:
            raise Misuse(f"epochs: count is {count}; it is at least 1")
        self._refuse_after_leave("job.epochs")
        self._epochs = count
        epoch = self._enter()
        if epoch is not None and epoch >= count:
            self._core.enter(epochs=count)  # ends with the others what has no epoch left
        while epoch is not None and epoch < count:
            yield epoch
            epoch = self._end_epoch(epoch)
        self._over = True

    def loader(self, dataset: Any, batch_size: int = 1, *, seed: int = 0, **keywords: Any) -> Loader:
        """In place of DistributedSampler and DataLoader, whose keywords it takes."""
        old = self._loader
        if old is None:
            self._loader = Loader(self, dataset, batch_size, seed, keywords)
        elif not old.is_for(dataset, batch_size, seed, keywords):
            raise Misuse("loader: this is another dataset, batch size, seed or option than at first; a job "
                         "has one loader, that of its training data: make the dataset before the loops, "
                         "and take torch's DataLoader for others")
        return self._loader

    def register(self, *objects: Any) -> None:
        """More objects, in the same order on all workers."""
        for thing in objects:
            self._objects.register(thing)

    def on_commit(self, function: Callable[[], None]) -> None:
        """Has it called after each step that happened, inside opt.step()."""
        self._on_commit.append(function)

    def sum(self, name: str, value: Union[float, torch.Tensor]) -> None:
        """Before backward(): adds to a figure that is summed over the world and the step's samples."""
        if self._happened:
            raise Misuse("job.sum after backward(), which has summed; call it before")
        if self._step is not None and self._step.samples:
            self._step.sum(name, float(value))

    def total(self, name: str) -> float:
        """After backward(): the sum over the world; 0 for a name that no worker has used."""
        return self._step.total(name) if self._step is not None and self._happened else 0.0

    def leave(self) -> None:
        """Leaves the world for good before the training is over, as in early stopping. Then `break`
        out of both loops. After that the program makes no step, and no call that waits for other
        workers."""
        self._gradients.kept.raise_one()
        if self._is_skipped():
            self._commit()
        self._left = True
        self._gradients.begin(None, borrowed=False)
        self._core.leave()

    # ------------------------------------------------------------ for the loader

    def pieces(self) -> Iterator[list[int]]:
        """The samples of each piece until the end of the epoch; borrowed ones for an empty share."""
        if self._epochs is None or self._loader is None or self._over or self._is_at_end():
            raise Misuse("loader: the loop over it stands in `for epoch in job.epochs(n):`, once; for "
                         "other passes over data take torch's DataLoader")
        if not self._begun:
            self._core.begin(**self._options())
            self._begun = True
        step = self._step if self._is_untouched() else self._advance()
        self._looping = True
        try:
            while step is not None and not step.epochs_done:
                samples = step.samples
                self._gradients.begin(step, borrowed=not samples)
                yield samples or self._borrowed()
                step = self._advance()
        finally:
            self._looping = False
        self._come_to_end()

    def upcoming(self, ahead: int) -> Optional[list[int]]:
        """What pieces() gives after `ahead` others, if the world stays; None: the epoch ends before."""
        samples = self._core.upcoming_piece(ahead)
        return self._borrowed() if samples == [] else samples

    @property
    def first_batch(self) -> int:
        """The global batch with which the job began: epochs are as long as with that on all workers, or
        schedules would differ."""
        self._enter()
        if self._batch_is_named:
            self._note_first_batch()
        return self._objects.first_batch or self.global_batch

    # ------------------------------------------------------------ inside

    def _note_first_batch(self) -> None:
        """For newcomers too, whether or not this worker asks for a length."""
        self._objects.first_batch = self._objects.first_batch or self._core.global_batch

    def _borrowed(self) -> list[int]:
        return [0, 1 % len(self._loader.dataset)]  # two: one alone has no variance for a batch norm

    def _enter(self) -> Optional[int]:
        """The epoch in which this worker begins; None: the world has finished."""
        if not self._entered:
            self._batch_is_named = self._loader is not None
            self._memory.settle()
            self._first_epoch = self._core.enter(**(self._options() if self._batch_is_named else {}))
            self._memory.fetch()
            self._entered = True
        return self._first_epoch

    def _options(self) -> dict[str, int]:
        loader = self._loader
        return {"samples": len(loader.dataset), "epochs": self._epochs or MANY, "seed": loader.seed,
                "batch": self._accumulate * loader.batch_size, "micro_batch": loader.batch_size,
                "bucket_bytes": self._bucket_bytes, "epoch_steps": 1}

    def _advance(self) -> Optional[Step]:
        """Ends the piece under way, and gives what comes next. Only here the world changes."""
        self._refuse_after_leave("a turn of the loop over job.loader")
        step, self._pending = self._pending, None
        if step is None:
            _process_group.refuse()
            self._end_piece()
            generation = self.generation
            continues = (self._step is not None and not self._step.epochs_done
                         and not self._step.last_piece)
            if continues:
                self._memory.send_buffers()
            else:
                self._memory.settle()
            step = self._core.next()
            self._batch_is_named = True
            self._note_first_batch()
            if self.generation != generation:
                self._memory.put_back()
                self._memory.fetch()
                continues = False
        else:
            continues = False
        self._step, self._happened, self._objects.acting = step, False, step is None
        self._objects.step_called = self._objects.scaler_called = False
        self.stepped = step is not None and step.epochs_done > 0
        if step is not None and not step.epochs_done and not continues:
            if self._begun_at == step.number:
                self._generators.restore()
            else:
                self._generators, self._begun_at = Generators(), step.number
            self._rates.begin(step)
            if self._local is not None:
                self._local.begin()
        self._memory.fetch_buffers()
        return step

    def _end_piece(self) -> None:
        self._gradients.kept.raise_one()
        if self._is_untouched():  # after a reduction the others would apply the step
            raise Misuse("opt.step() was not called in this iteration, nor backward(), before the "
                         "loop took the next batch; num_workers= fetches ahead; " + EACH)
        self._gradients.end()
        self._gradients.kept.raise_one()
        step = self._step
        if step is None or step.epochs_done:
            return
        if self._is_skipped():
            self._commit()
        elif not self.stepped and (self._happened or not (self._objects.step_called or step.last_piece)):
            raise Misuse("opt.step() was not called in this iteration; " + EACH)

    def _is_skipped(self) -> bool:
        """Whether a scaler has skipped the step under way. It counts, and changes nothing."""
        return (self._happened and not self.stepped and self._objects.acting
                and self._objects.scaler_called)

    def _asked(self, applies: bool) -> None:
        """Before each method of an object. One that gets the optimizer, as of a scaler, is part of
        the step."""
        if applies:
            self._refuse_after_leave("a step of the optimizer")
            self._gradients.end()
        if not isinstance(self._gradients.kept.error, Evicted):  # see _optimizer_step
            self._gradients.kept.raise_one()

    def _is_untouched(self) -> bool:
        """Whether the piece under way was only looked at, as in next(iter(loader))."""
        step = self._step
        return (step is not None and not step.epochs_done and not self._objects.step_called
                and self._gradients.untouched)

    def _come_to_end(self) -> None:
        self._gradients.begin(None, borrowed=False)
        self._put_back = self._objects.snapshot()
        self._objects.acting = True

    def _break_at_end(self) -> None:
        """After a `break` in the last step of an epoch, the epoch is at its end. When that step did not
        happen, the one that repeats it is pending."""
        step, happened = self._step, self._happened
        if (step is None or step.epochs_done or self._looping or self._pending is not None
                or not step.last_piece or not self._objects.step_called):
            return
        after = self._advance()
        if after is not None and after.epochs_done:
            self._come_to_end()
        elif not happened:
            self._pending = after

    def _is_at_end(self) -> bool:
        """Between the loop over the loader and the next epoch."""
        step = self._step
        return (step is not None and step.epochs_done > 0 and step is not self._ended
                and self._pending is None)

    def _end_epoch(self, epoch: int) -> Optional[int]:
        if self._left:
            return None
        self._gradients.kept.raise_one()
        self._break_at_end()
        if self._pending is not None:
            return self._pending.epoch
        self._ended = step = self._step
        if step is None or not step.epochs_done:
            raise Misuse("epochs: the loop over job.loader ended before its samples; leave an epoch only at "
                         "its end; to stop training, all call leave() before the break"
                         if self._begun else "epochs: an epoch without job.loader")
        if self._core.reduce():
            self._core.commit()
            if epoch + 1 < self._epochs:
                return epoch + 1
        else:
            self._put_back()
            self._memory.put_back()
        self._pending = self._advance()
        return self._pending.epoch if self._pending is not None else None

    def _reduce(self) -> None:
        self._memory.send_buffers()
        self._rates.send(self._step, self.generation)
        try:
            self._happened = self._core.reduce()
        finally:
            self._gradients.show(self._happened)
        self._memory.fetch_buffers()
        if self._happened:
            self._rates.check(self._step, self.step, self.size, self.rank)
            self._rates.warn(self._step, self.step, self.size, self.rank)
        else:
            self._memory.put_back()
        self._objects.acting = self._happened

    def _commit(self) -> None:
        self.stepped = True
        self._lr_factor = self._step.lr_factor
        self._memory.send_buffers()
        if self._local is not None:
            self._local.commit(self._gradients.borrowed)
        self._core.commit()
        for function in self._on_commit:
            function()

    def _optimizer_step(self, closure: Any = None) -> None:
        if closure is not None:
            raise Misuse("opt.step(closure) computes a step again; such optimizers are not supported")
        self._refuse_after_leave("opt.step()")
        if self._step is None or self._step.epochs_done:
            raise Misuse("opt.step() outside the loop over job.loader")
        self._objects.step_called = True
        self._gradients.end()
        # Evicted comes out of the loader, where nothing of the iteration is left.
        if not isinstance(self._gradients.kept.error, Evicted):
            self._gradients.kept.raise_one()
        if not self._happened:
            if self._step.last_piece:  # no others follow: it did not happen
                self._memory.put_back()
            return
        if self.stepped:
            raise Misuse("opt.step() was called twice in one iteration")
        self._objects.check_schedulers()
        apply_at(self._optimizer, self._apply, self._step.lr_factor if self._scale_lr else 1)
        self._commit()

    def _register(self, model: torch.nn.Module, buffers: str) -> Optional[_buffers.Local]:
        core = self._core
        for name, parameter in model.named_parameters():
            core.state(_buffers.described(name, parameter), flat(parameter))
        for name, row in zip(self._gradients.names, self._gradients.flats):
            core.gradients("gradient of " + name, row)
        local = _buffers.register(core, model, buffers)
        if local is not None:
            self._objects.register(local)
        core.state_source(self._objects.list, self._objects.make_room, self._take)
        if any(p.is_cuda for p in model.parameters()):
            core.stream(torch.cuda.current_stream().cuda_stream)
        return local

    def _take(self, data: bytes) -> None:
        self._objects.take(data)
        self._rates.taken()

    def _take_over(self, optimizer: torch.optim.Optimizer) -> None:
        @functools.wraps(self._apply)  # keeps the mark by which a scheduler knows that it is counted
        def step(_: torch.optim.Optimizer, closure: Any = None) -> None:
            self._optimizer_step(closure)
        optimizer.step = types.MethodType(step, optimizer)

        def refuse(*_: Any) -> None:
            raise Misuse("add_param_group after Job(): make all groups before it")
        optimizer.add_param_group = refuse
