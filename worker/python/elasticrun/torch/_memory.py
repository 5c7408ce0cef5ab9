"""Where the tensors of a model are. The library reads and writes the memory that a tensor had at Job(),
its home. A program may give it other memory, as in `p.data = ...`, `self.buffer = ...` or
`model.to(memory_format=...)`; the tensor stays there. Its values are copied home before the library
reads them, and back after the library has written. What cannot be followed so raises Misuse."""
from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import chain, zip_longest
from operator import methodcaller
from typing import Any, Callable, Iterable, Iterator, NamedTuple, Optional

import torch

from .._library import Misuse
from ._buffers import REDUCED
from ._gradients import flat

BEFORE = "make such changes before Job()"
data_ptr = torch.Tensor.data_ptr
values_of = methodcaller("values")
FACTS = (data_ptr, torch.Tensor.stride, torch.Tensor.size)


class Slot(NamedTuple):
    """Where a module holds a tensor."""
    holder: Any  # a dict, or what torch.jit has instead
    key: str
    is_buffer: bool
    is_kept: bool  # in a state_dict

    @property
    def tensor(self) -> Optional[torch.Tensor]:
        return self.holder[self.key] if self.key in self.holder else None


class Place:
    """Where a tensor is, and where the library has it."""

    def __init__(self, name: str, slot: Slot) -> None:
        self.name, self.slot, self.tensor = name, slot, slot.tensor
        self.home = flat(self.tensor).as_strided(self.tensor.shape, self.tensor.stride())
        self.home_at = data_ptr(self.home)
        self.last, self.at = self.tensor.detach(), self.home_at  # its memory, as noted last
        self.is_away = False
        self.is_shared = False  # with another name

    def send_home(self) -> None:
        self.home.copy_(self.last)

    def fetch(self) -> None:
        self.last.copy_(self.home)

    def is_moved(self) -> bool:
        return (self.slot.tensor is not self.tensor or data_ptr(self.tensor) != self.at
                or not _same(self.tensor, self.last))

    def put_back(self) -> None:
        if not _same(self.tensor, self.last):
            self.tensor.data = self.last
        self.slot.holder[self.slot.key] = self.tensor

    def is_of_other_form(self) -> bool:
        return self.slot.tensor is None or _form(self.slot.tensor) != _form(self.home)

    def note(self) -> None:
        """Notes where the tensor is now."""
        now = self.slot.tensor
        if now is None:
            raise Misuse(f"'{self.name}' is no longer in the model; {BEFORE}")
        if data_ptr(self.home) != self.home_at:
            raise Misuse(f"'{self.name}' was resized after Job(); {BEFORE}")
        if self.is_of_other_form():
            raise Misuse(f"'{self.name}' is {_form(now)}, and was {_form(self.home)} at Job(); {BEFORE}, "
                         "or take it back before the step ends")
        if data_ptr(now) == 0 and now.numel() > 0:
            raise Misuse(f"'{self.name}' has no memory; give it back before the step ends")
        if self.is_shared:
            raise Misuse(f"'{self.name}' has other memory than at Job(), where it shared that of another "
                         f"tensor; {BEFORE}")
        is_home = _same(now, self.home)
        if is_home and self.is_away:
            raise Misuse(f"'{self.name}' has the memory again that it had at Job(), and its values were "
                         "replaced meanwhile: put values aside with clone()")
        self.tensor, self.last, self.at, self.is_away = now, now.detach(), data_ptr(now), not is_home

    def leave(self) -> None:
        """Takes memory of its own."""
        self.tensor.data = self.last.clone()
        self.last, self.at, self.is_away = self.tensor.detach(), data_ptr(self.tensor), True


class Look:
    """Shows whether values and tensors are as they were when it was made. Takes a fraction of a
    microsecond for each."""

    def __init__(self, values: Callable[[], Iterator[Any]], tensors: list[torch.Tensor]) -> None:
        self._values, self._tensors = values, tensors
        self._kept = list(values())  # as long as they are, no other object has their ids
        self._ids = list(map(id, self._kept))
        self._facts = [list(map(fact, tensors)) for fact in FACTS]

    def differs(self) -> bool:
        return (list(map(id, self._values())) != self._ids
                or any(list(map(fact, self._tensors)) != before
                       for fact, before in zip(FACTS, self._facts)))


class Memory:
    """Of all tensors of a model. `buffers` is that of Job(); `moved` is called with each parameter that
    has other memory."""

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer, buffers: str,
                 moved: Callable[[torch.Tensor], None]) -> None:
        self._model, self._optimizer, self._moved = model, optimizer, moved
        places: dict[int, Place] = {}
        self._places: dict[str, Place] = {}  # those of shared tensors have several names
        self._shared: list[Slot] = []  # of buffers
        for name, slot in _slots_of(model):
            if id(slot.tensor) not in places:
                places[id(slot.tensor)] = Place(name, slot)
            elif slot.is_buffer:
                places[id(slot.tensor)].is_shared = True
                self._shared += places[id(slot.tensor)].slot, slot
            self._places[name] = places[id(slot.tensor)]
        self._all = list(places.values())
        homes = Counter(place.home_at for place in self._all if place.home.numel())
        for place in self._all:
            place.is_shared |= homes[place.home_at] > 1
        self._homes = sorted(_span(place.home) for place in self._all)
        is_local = buffers == "local"
        self._in_steps = [place for place in self._all if place.slot.is_buffer
                          and (is_local or place.tensor.dtype in REDUCED)]
        changing = set(map(id, self._in_steps))
        self._between = [place for place in self._all if id(place) not in changing]
        self._fixed = [] if is_local else self._in_steps  # between two steps
        self._applied = list(self._in_optimizer())
        self._is_held = False  # by the library, which has taken the values
        self._note_modules()
        self._note_all()

    # ------------------------------------------------------------ between two steps

    def settle(self) -> None:
        """Before the library may read the state."""
        if self._look.differs():
            fixed = [place for place in self._fixed if self._is_held and place.is_moved()]
            self._follow(self._all)
            self._note_all()
            for place in fixed:
                if not _equal(place.last, place.home):
                    raise Misuse(f"the buffer '{place.name}' has got other values between two steps, which "
                                 "newcomers would not have; let forward do that, or take buffers='local'")
        for place in self._all:
            if place.is_away:
                place.send_home()
        self._is_held = True

    def check(self) -> None:
        """Whether the model still has the tensors of Job(), by their names. settle() calls it where the
        modules that are known hold others."""
        now = dict(_slots_of(self._model))
        names = {id(slot.tensor): name for name, slot in now.items()}
        for name, place in self._places.items():
            if name in now and (now[name].tensor is place.tensor
                                or place.slot.is_buffer and not place.is_shared):
                if name == place.name:
                    place.slot = now[name]
                continue
            trouble = ("is another object than at Job()" if name in now else
                       f"is '{names[id(place.tensor)]}' now" if id(place.tensor) in names else
                       "is no longer in the model")
            raise Misuse(f"'{name}' {trouble}, which newcomers and the optimizer would not know; {BEFORE}, "
                         "or copy values into the tensor that is there")
        for name, slot in now.items():
            if name not in self._places and slot.is_kept:
                raise Misuse(f"'{name}' was added after Job(), and newcomers would not have it; {BEFORE}")
        for before, after in zip_longest(self._applied, self._in_optimizer()):
            if before is not after:
                name = next((name for name in names.values() if self._places[name].tensor is before), "?")
                raise Misuse(f"the optimizer has another parameter in place of '{name}'; {BEFORE}")
        self._note_modules()

    def fetch(self) -> None:
        """After the library may have written the state."""
        for place in self._all:
            if place.is_away:
                place.fetch()

    def put_back(self) -> None:
        """What has other memory since settle() gets back its own: the step did not happen."""
        for place in self._between:
            if place.is_moved():
                place.put_back()
                self._tell(place)

    # ------------------------------------------------------------ in a step

    def send_buffers(self) -> None:
        """Before the library reads them."""
        if not self._in_steps:
            return
        if self._look_in_steps.differs():
            self._follow(self._in_steps)
            self._note_in_steps()
        for place in self._in_steps:
            if place.is_away:
                place.send_home()

    def fetch_buffers(self) -> None:
        """After it has written them."""
        for place in self._in_steps:
            if place.is_away:
                place.fetch()

    # ------------------------------------------------------------ inside

    def _in_optimizer(self) -> Iterator[torch.Tensor]:
        return chain.from_iterable(group["params"] for group in self._optimizer.param_groups)

    def _in_buffers(self) -> Iterator[Any]:
        return chain.from_iterable(map(values_of, self._buffers))

    def _others(self) -> Iterator[Any]:
        """What is another object only if check() has to look."""
        return chain(chain.from_iterable(map(values_of, self._dicts)), self._in_optimizer(),
                     (slot.tensor for slot in self._shared))

    def _note_modules(self) -> None:
        modules = list(self._model.modules())
        self._buffers = [module._buffers for module in modules]
        self._dicts = [values for module in modules
                       for values in (module._parameters, module._modules)]
        self._known = Look(self._others, [])
        self._lengths = list(map(len, self._buffers))

    def _note_in_steps(self) -> None:
        self._look_in_steps = Look(self._in_buffers, [place.tensor for place in self._in_steps])

    def _note_all(self) -> None:
        self._look = Look(lambda: chain(self._others(), self._in_buffers()),
                          [place.tensor for place in self._all])
        self._note_in_steps()

    def _follow(self, places: list[Place]) -> None:
        if self._known.differs() or list(map(len, self._buffers)) != self._lengths:
            self.check()
        moved = [place for place in places if place.is_moved()]
        for place in moved:
            if not place.slot.is_kept and place.is_of_other_form():
                self._forget(place)  # such as a table that forward makes anew for longer input
            else:
                place.note()
        self._check_apart({id(place) for place in moved})
        for place in moved:
            if place.is_away and self._is_in_home(place.last):
                place.leave()
            self._tell(place)

    def _forget(self, place: Place) -> None:
        for places in (self._all, self._in_steps, self._between):
            if place in places:
                places.remove(place)
        place.tensor, place.is_away = place.slot.tensor, False

    def _tell(self, place: Place) -> None:
        if not place.slot.is_buffer:
            self._moved(place.tensor)

    def _check_apart(self, moved: set[int]) -> None:
        """No two tensors may share memory that did not at Job(): each has a home of its own."""
        spans = sorted((*_span(place.last), number) for number, place in enumerate(self._all)
                       if place.last.numel())
        furthest = (0, 0, 0)
        for span in spans:
            one, other = self._all[furthest[2]], self._all[span[2]]
            if span[0] < furthest[1] and (id(one) in moved or id(other) in moved):
                raise Misuse(f"'{one.name}' and '{other.name}' share memory now, and did not at Job(); "
                             f"{BEFORE}, or copy the values")
            furthest = max(furthest, span, key=lambda each: each[1])

    def _is_in_home(self, tensor: torch.Tensor) -> bool:
        begin, end = _span(tensor)
        before = bisect_left(self._homes, (end, 0)) - 1
        return before >= 0 and self._homes[before][1] > begin


def _slots_of(model: torch.nn.Module) -> Iterable[tuple[str, Slot]]:
    """By name: all parameters, then all buffers."""
    for kind in ("_parameters", "_buffers"):
        for prefix, module in model.named_modules():
            for key, tensor in getattr(module, kind).items():
                if tensor is not None:
                    yield f"{prefix}.{key}" if prefix else key, Slot(
                        getattr(module, kind), key, kind == "_buffers",
                        key not in module._non_persistent_buffers_set)


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether they are in the same memory."""
    return (data_ptr(one) == data_ptr(other) and one.stride() == other.stride()
            and one.shape == other.shape)


def _form(tensor: torch.Tensor) -> str:
    layout = "" if tensor.layout is torch.strided else f" {tensor.layout}"
    return f"{str(tensor.dtype)[len('torch.'):]} {list(tensor.shape)} on {tensor.device}{layout}"


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """From its first byte to the one after its last."""
    reach = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride()))
    begin = data_ptr(tensor)
    return begin, begin + (reach + 1) * tensor.element_size() if tensor.numel() else begin


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Also where both are NaN."""
    return bool(((one == other) | ((one != one) & (other != other))).all())
