"""The gradients of a model as the library reduces them: each has memory of its own for the mean. A hook
reports what the backward pass has made as soon as it is final, and the library takes it from where it
is. The end of the backward pass waits for the reduction, so what follows it (unscale_, clip_grad_norm_)
sees the mean over the global batch."""
from __future__ import annotations

from array import array
from typing import Any, Callable, Optional, Sequence

import torch

from .. import Step
from .._library import LIBRARY, Misuse, raise_status
from ._kept import Kept

TOGETHER = 64  # gradients that are reported together, at most
LARGE = 16 << 10  # bytes of one that waits for no other
SECOND_PASS = ("a second backward pass in one iteration: add the losses and call backward() once; for "
               "accumulation give Job(..., accumulate=k), for checkpointing use_reentrant=False")
data_ptr = torch.Tensor.data_ptr
ready_at = LIBRARY.elasticrun_step_ready_at  # called often


def flat(tensor: torch.Tensor) -> torch.Tensor:
    """The memory of a dense tensor, whatever its strides, as one row. Raises Misuse for others."""
    tensor = tensor.detach()
    expected = 1
    for stride, size in sorted((stride, size) for stride, size in zip(tensor.stride(), tensor.shape)
                               if size != 1):
        if stride != expected and tensor.numel() > 0:
            raise Misuse("the tensor does not lie in one piece; make it contiguous")
        expected *= size
    return torch.as_strided(tensor, (tensor.numel(),), (1,), tensor.storage_offset())


class Gradients:
    """`at_end` is called on the thread of the backward pass when the last piece of a step has
    gradients; `kept` has its exception."""

    def __init__(self, named: list[tuple[str, torch.nn.Parameter]], at_end: Callable[[], None]) -> None:
        self._all = named
        self._wanted = [parameter.requires_grad for _, parameter in named]
        self._epoch, self._next = -1, 0  # in which they were all looked at; the next one to look at
        self.names = [name for name, parameter in named if parameter.requires_grad]
        self._parameters = [parameter for _, parameter in named if parameter.requires_grad]
        self.flats = _laid_out(self._parameters)
        self._shapes = [(p.shape, p.stride()) for p in self._parameters]
        self._make_views()
        self._forms = [(p.dtype, None if p.is_contiguous() else p.stride()) for p in self._parameters]
        self._set = array("Q")  # by the backward pass, and not reported yet
        self._seen: set[int] = set()  # set in this piece
        self._lent: list[tuple[torch.Tensor, int]] = []  # read by the library, and which version of it
        self._at_end = at_end
        self._step: Optional[Step] = None
        self.borrowed = self._ended = self._last = self._queued = False
        self.kept = Kept()
        self._numbers = {id(parameter): number for number, parameter in enumerate(self._parameters)}
        self._nodes: list[Any] = [None] * len(self._parameters)  # hooks live as long as these
        for parameter in self._parameters:
            self.hook(parameter)

    def _make_views(self) -> None:
        self._views = [row.as_strided(*shape) for row, shape in zip(self.flats, self._shapes)]
        self._viewed = list(map(data_ptr, self._views))

    def hook(self, parameter: torch.Tensor) -> None:
        """Also for one that has other memory: torch may have dropped its hook then."""
        if not parameter.requires_grad or id(parameter) not in self._numbers:
            return
        number = self._numbers[id(parameter)]
        waiting = self._set
        limit = 1 if parameter.numel() * parameter.element_size() >= LARGE else TOGETHER

        def accumulated(*_: Any) -> None:  # runs for each gradient
            if not waiting:
                self._begin_pass()
            waiting.append(number)
            if len(waiting) >= limit:
                self._report()

        if hasattr(parameter, "register_post_accumulate_grad_hook"):
            if self._nodes[number] is None:
                self._nodes[number] = parameter.register_post_accumulate_grad_hook(accumulated)
            # Has C++ note them again, which torch.utils.swap_tensors does not.
            parameter._post_accumulate_grad_hooks = parameter._post_accumulate_grad_hooks
            return
        with torch.enable_grad():  # a backward pass has none
            node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        if node is not self._nodes[number]:
            node.register_hook(accumulated)
            self._nodes[number] = node

    def begin(self, step: Optional[Step], borrowed: bool) -> None:
        """A piece whose samples are borrowed has the weight 0: nothing is copied. None: no piece; the
        gradients stay to be looked at."""
        self._step, self.borrowed, self._ended, self._queued = step, borrowed, False, False
        self._last = step is not None and step.last_piece
        del self._set[:]
        self._seen.clear()
        self._lent.clear()
        if step is None:
            return
        self._check(step.epoch)
        if list(map(data_ptr, self._views)) != self._viewed:  # as model.half() does to gradients
            self._make_views()
        for parameter in self._parameters:
            parameter.grad = None

    def _check(self, epoch: int) -> None:
        """Looks at all parameters when an epoch begins, and in other steps at a few: each takes a
        microsecond."""
        first, last = (self._next, self._next + 4) if epoch == self._epoch else (0, len(self._all))
        self._epoch, self._next = epoch, last if last < len(self._all) else 0
        for (name, parameter), wanted in zip(self._all[first:last], self._wanted[first:last]):
            if parameter.requires_grad != wanted:
                raise Misuse(f"requires_grad of '{name}' was changed after Job(), and a newcomer would "
                             "not know: make all such changes before it; to freeze a layer in training, "
                             "set lr to 0 in its group of the optimizer")

    def end(self) -> None:
        """At the end of the backward pass, or where none has reached a parameter: reports what was not
        set, and after the last piece waits for the reduction."""
        if self._ended or self._step is None:
            return
        self._ended = True
        try:
            self._report()
            if not self.borrowed and len(self._seen) < len(self._parameters):
                for number in set(range(len(self._parameters))) - self._seen:
                    self._unset(number)
            if self._last:
                self._at_end()
        except BaseException as error:  # pylint: disable=broad-except
            self.kept.keep(error)  # a backward pass would raise another type

    def _unset(self, number: int) -> None:
        if self._parameters[number].grad is not None:
            raise Misuse(f"'{self.names[number]}' has a gradient that no backward pass of this iteration "
                         "has made with the parameter's present type and memory; change these before "
                         "forward, and gradients in parameter.register_hook")
        self._step.unset(number)

    def show(self, happened: bool) -> None:
        """Puts the mean over the global batch where the optimizer looks; zeros for a step that did not
        happen, with which clipping cannot fail."""
        changed = any(gradient._version != version for gradient, version in self._lent)
        self._lent.clear()
        if changed:
            raise Misuse("a hook has changed a gradient that was already being reduced; let it do so in "
                         "parameter.register_hook, which comes before")
        own = happened and not self.borrowed
        for number, (parameter, view) in enumerate(zip(self._parameters, self._views)):
            if own and number in self._seen:
                parameter.grad = view
            elif not happened:
                parameter.grad = torch.zeros_like(view)
            else:
                parameter.grad = view if self._step.is_set(number) else None

    @property
    def untouched(self) -> bool:
        """Whether the piece under way has had no backward pass."""
        return not self._queued and not self._ended

    def _begin_pass(self) -> None:
        """Of a backward pass of the loop; others are the program's own."""
        if self._step is None:
            return
        if self._ended:
            raise Misuse(SECOND_PASS)
        if not self._queued:
            self._queued = True
            torch.autograd.Variable._execution_engine.queue_callback(self.end)

    def _report(self) -> None:
        """What has been set; the library may reduce it from here on."""
        numbers = self._set[:]
        del self._set[:]
        if self._step is None:
            return
        expected = len(self._seen) + len(numbers)
        self._seen.update(numbers)
        if len(self._seen) < expected:
            raise Misuse(SECOND_PASS)
        if self.borrowed or not numbers:
            return
        try:
            if self._last:
                places = self._places_of(numbers)
                if status := ready_at(self._step.address, numbers.buffer_info()[0],
                                      places.buffer_info()[0], len(numbers)):
                    raise_status(status, "step.ready_at: the GPU has failed")
            else:  # which the program may change before the step is reduced
                _copy_all([self._views[number] for number in numbers],
                          [self._parameters[number].grad for number in numbers])
        except RuntimeError:
            for number in numbers:
                if self._parameters[number].grad.layout is not torch.strided:
                    raise Misuse(f"the gradient of '{self.names[number]}' is sparse; make the "
                                 "embedding with sparse=False") from None
            raise

    def _places_of(self, numbers: Sequence[int]) -> array[int]:
        """Where the library finds the gradients; 0: that one was copied to its own place."""
        places = array("Q")
        for number in numbers:
            gradient = self._parameters[number].grad
            kind, strides = self._forms[number]
            place = 0
            if ((gradient.is_contiguous() if strides is None else gradient.stride() == strides)
                    and gradient.dtype is kind and not gradient.is_neg()):
                place = gradient.data_ptr()  # 0 for zeros that torch has not written out
            places.append(place)
            if place:
                self._lent.append((gradient, gradient._version))
            else:
                self._views[number].copy_(gradient)
        return places


def _laid_out(parameters: Sequence[torch.nn.Parameter]) -> list[torch.Tensor]:
    """Memory for each as one row. Those of a kind lie one after the other from the last to the first, the
    order in which they are reduced, so several are reduced as one where they are."""
    for parameter in parameters:
        flat(parameter)
    sizes: dict[tuple[torch.dtype, torch.device], int] = {}
    begins = []
    for parameter in reversed(parameters):
        kind = parameter.dtype, parameter.device
        aligned = 16 // parameter.element_size() if parameter.is_cuda else 1  # for optimizers' kernels
        begins.append(-(-sizes.get(kind, 0) // aligned) * aligned)
        sizes[kind] = begins[-1] + parameter.numel()
    memory = {(dtype, device): torch.zeros(size, dtype=dtype, device=device)
              for (dtype, device), size in sizes.items()}
    return [memory[parameter.dtype, parameter.device][begin:begin + parameter.numel()]
            for parameter, begin in zip(parameters, reversed(begins))]


def _copy_all(views: list[torch.Tensor], gradients: list[torch.Tensor]) -> None:
    if hasattr(torch, "_foreach_copy_"):  # 2.1 and newer
        torch._foreach_copy_(views, gradients)
        return
    for view, gradient in zip(views, gradients):
        view.copy_(gradient)

