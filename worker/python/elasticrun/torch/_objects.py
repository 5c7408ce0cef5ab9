"""The optimizer and the objects beside it (schedulers, scalers, averaged models): what of them steps
change, as a state source, and methods that act once for each step that happens."""
from __future__ import annotations

import collections
import functools
import json
import warnings
from typing import Any, Callable, Optional, Sequence

import torch
from torch.optim.lr_scheduler import OneCycleLR

from .. import Listing
from .._library import Misuse
from ._buffers import Local
from ._gradients import flat
from ._packing import Place, like, pack, unpack

STATE = "state"  # the owner of what an optimizer keeps under a name
USUAL = ("lr", "momentum", "betas", "weight_decay")
GATED = ("step", "update", "update_parameters", "unscale_")


class Objects:
    """Methods of registered objects do nothing while `acting` is false."""

    def __init__(self, optimizer: torch.optim.Optimizer, objects: Sequence[Any],
                 asked: Callable[[bool], None] = lambda applies: None) -> None:
        """Calls `asked` before each method, with whether its arguments have the optimizer."""
        self._optimizer, self._asked = optimizer, asked
        self._parameters = [p for group in optimizer.param_groups for p in group["params"]]
        self._objects: list[Any] = []
        self._early: dict[int, Any] = {}  # received for objects that are registered later
        # For arrays in lists and under names, until the objects that have them are taken.
        self._room: Optional[dict[str, torch.Tensor]] = None
        self._groups: list[Any] = []  # received with them: a scheduler sets rates when it is made
        self._typed = True  # the last objects received; those of older saves have lists for tuples
        self.first_batch = 0  # the global batch with which the job began; 0: not known
        self.acting = True
        self.step_called = False  # in this turn: opt.step(), or that of an object that is no schedule
        self.scaler_called = False  # in this turn: the step of an object, with the optimizer
        self._over: set[int] = set()  # schedules that are at their end
        for thing in objects:
            self.register(thing)

    def register(self, thing: Any) -> None:
        if isinstance(thing, torch.optim.Optimizer):
            raise Misuse("a second optimizer: one optimizer can have the parameters of all, in groups")
        if not (hasattr(thing, "state_dict") and hasattr(thing, "load_state_dict")):
            raise Misuse(f"a {type(thing).__name__} has no state_dict and load_state_dict")
        if any(thing is other for other in self._objects):
            return
        self._gate(thing)
        self._objects.append(thing)
        early = self._early.pop(len(self._objects) - 1, None)
        if early is not None:
            self._load(thing, early)
            self._set_groups(self._groups)

    def check_schedulers(self) -> None:
        """Raises Misuse where a scheduler has wrapped the optimizer and is not registered."""
        if any(getattr(thing, "optimizer", None) is self._optimizer for thing in self._objects):
            return
        step = self._optimizer.step
        if hasattr(step, "_with_counter") or getattr(step, "_wrapped_by_lr_sched", False):
            raise Misuse("the optimizer's scheduler is not registered: Job(model, optimizer, scheduler)")

    def snapshot(self) -> Callable[[], None]:
        """Returns a function that puts all back as it is now, but for what steps alone change."""
        objects = self._packed()
        modules = [(tensor, tensor.detach().clone()) for _, tensor in self._module_tensors()]

        def restore() -> None:
            self.take(objects)
            for tensor, before in modules:
                tensor.detach().copy_(before)
        return restore

    def numbers(self) -> list[tuple[str, float]]:
        """What opt.step() reads in the groups of the optimizer: names and numbers, usual ones first."""
        found = [(USUAL.index(key) if key in USUAL else len(USUAL), f"{key} of group {number}", each)
                 for number, group in enumerate(self._optimizer.param_groups)
                 for key, value in group.items() if key != "params" for each in _numbers_in(value)]
        return [(name, each) for _, name, each in sorted(found, key=lambda one: one[:2])]

    def schedules(self) -> bytes:
        """The states of the schedules among the objects."""
        return pack([thing.state_dict() for thing in self._schedules()])

    def has_schedule(self) -> bool:
        return any(getattr(thing, "optimizer", None) is self._optimizer for thing in self._schedules())

    def _schedules(self) -> list[Any]:
        return [thing for thing in self._objects
                if any(base.__module__ == OneCycleLR.__module__ for base in type(thing).__mro__)]

    def state_dicts(self) -> list[Any]:
        """Of what the program has registered."""
        return [thing.state_dict() for thing in self._objects if not isinstance(thing, Local)]

    # ------------------------------------------------------------ the state source

    def list(self, listing: Listing) -> None:
        for name, tensor in self._optimizer_tensors() + self._module_tensors():
            listing.array(name, flat(tensor))
        listing.objects(self._packed())

    def make_room(self, wanted: Sequence[tuple[str, int]]) -> None:
        """Gives the optimizer the tensors that another worker's has."""
        present = dict(self._optimizer_tensors())
        self._room = {}
        states: dict[int, dict[str, torch.Tensor]] = {}
        for name, _ in wanted:
            owner, key, kind, shape, strides, device = json.loads(name)
            if isinstance(owner, str) and owner != STATE:
                continue  # of a module, which has its tensors
            where = "cpu" if device == "cpu" else self._device_of(owner)
            tensor = present[name] if name in present else (
                torch.empty_strided(shape, strides, dtype=getattr(torch, kind), device=where))
            if isinstance(key, list):
                self._room[name] = tensor
            else:
                states.setdefault(owner, {})[key] = tensor
        for number, parameter in enumerate(self._parameters):
            state = self._optimizer.state.get(parameter, {})
            others = {key: v for key, v in state.items() if not isinstance(v, torch.Tensor)}
            if state or number in states:
                self._optimizer.state[parameter] = others | states.get(number, {})

    def take(self, data: bytes) -> None:
        received = unpack(data)
        self._typed = "typed" in received
        for there, here in zip(received.get("kinds", []), self._kinds()):
            if there != here:
                raise Misuse(f"the state to resume from is that of a program with {there} where this one "
                             f"has {here}; to begin afresh, give --save another folder")
        self.first_batch, self._groups = received["first_batch"], received["groups"]
        self._set_groups(self._groups)
        self._take_state(received)
        for number, state in enumerate(received["objects"]):
            if number < len(self._objects):
                self._load(self._objects[number], state)
            else:
                self._early[number] = state

    # ------------------------------------------------------------ inside

    def _set_groups(self, groups: list[Any]) -> None:
        for group, options in zip(self._optimizer.param_groups, groups):
            for key, value in options.items():
                if isinstance(group.get(key), torch.Tensor):
                    group[key].copy_(value)
                else:
                    group[key] = value if self._typed else like(value, group.get(key))

    def _take_state(self, received: dict[str, Any]) -> None:
        """Of the optimizer, what is not an array of a parameter."""
        arrays = {_place(name): tensor for name, tensor in self._nested_tensors()}
        state = self._optimizer.state
        for number, values in received["values"].items():
            state[self._parameters[number]].update(self._filled(values, number, (), arrays))
        if "named" in received:
            for key in [key for key in self._named_state() if key not in received["named"]]:
                del state[key]
        for key, value in received.get("named", {}).items():
            state[key] = self._filled(value, STATE, (key,), arrays)
        self._room = None

    def _optimizer_tensors(self) -> list[tuple[str, torch.Tensor]]:
        return [(_name(number, key, value), value) for number, parameter in enumerate(self._parameters)
                for key, value in self._optimizer.state.get(parameter, {}).items()
                if isinstance(value, torch.Tensor)] + self._nested_tensors()

    def _nested_tensors(self) -> list[tuple[str, torch.Tensor]]:
        """In lists and dicts of the optimizer's state, and what it keeps under a name."""
        if self._room is not None:
            return list(self._room.items())
        found: list[tuple[str, torch.Tensor]] = []
        for number, parameter in enumerate(self._parameters):
            for key, value in self._optimizer.state.get(parameter, {}).items():
                if not isinstance(value, torch.Tensor):
                    _split(value, number, (key,), found)
        for key, value in self._named_state().items():
            _split(value, STATE, (key,), found)
        return found

    def _named_state(self) -> dict[Any, Any]:
        """Of the optimizer, what it keeps under a name and not for a parameter."""
        return {key: value for key, value in self._optimizer.state.items()
                if not isinstance(key, torch.Tensor)}

    def _device_of(self, owner: Any) -> torch.device:
        return self._parameters[owner if isinstance(owner, int) else 0].device

    def _filled(self, value: Any, owner: Any, path: tuple[Any, ...],
                arrays: dict[str, torch.Tensor]) -> Any:
        """Received state, with the arrays that were carried apart."""
        if isinstance(value, Place):
            return arrays[json.dumps([owner, list(path)])]
        if isinstance(value, torch.Tensor):  # of an older save
            return value.to(self._device_of(owner))
        if isinstance(value, dict) and not isinstance(value, collections.Counter):
            return type(value)((k, self._filled(v, owner, (*path, k), arrays)) for k, v in value.items())
        if isinstance(value, (list, tuple)):
            return type(value)(self._filled(v, owner, (*path, k), arrays) for k, v in enumerate(value))
        return value

    def _module_tensors(self) -> list[tuple[str, torch.Tensor]]:
        return [(_name(f"object {number}", key, value), value)
                for number, thing in enumerate(self._objects) if isinstance(thing, torch.nn.Module)
                for key, value in thing.state_dict(keep_vars=True).items()
                if isinstance(value, torch.Tensor)]

    def _packed(self) -> bytes:
        values = {}
        for number, parameter in enumerate(self._parameters):
            state = self._optimizer.state.get(parameter, {})
            if others := {k: _split(v, number, (k,), []) for k, v in state.items()
                          if not isinstance(v, torch.Tensor)}:
                values[number] = others
        named = {key: _split(value, STATE, (key,), []) for key, value in self._named_state().items()}
        groups = [{key: value for key, value in group.items() if key != "params"}
                  for group in self._optimizer.param_groups]
        objects = [None if isinstance(thing, torch.nn.Module) else thing.state_dict()
                   for thing in self._objects]
        return pack({"groups": groups, "values": values, "named": named, "objects": objects,
                     "kinds": self._kinds(), "first_batch": self.first_batch, "typed": True})

    def _kinds(self) -> list[str]:
        return [type(thing).__name__ for thing in (self._optimizer, *self._objects)]

    def _load(self, thing: Any, state: Any) -> None:
        if state is not None and not isinstance(thing, torch.nn.Module):
            present = thing.state_dict()
            thing.load_state_dict(present | (state if self._typed else like(state, present)))

    def _gate(self, thing: Any) -> None:
        """Its methods become attributes of the object, which many a state_dict lists."""
        listed = thing.state_dict

        @functools.wraps(listed)
        def state_dict(*arguments: Any, **named: Any) -> Any:
            state = listed(*arguments, **named)
            if not isinstance(state, dict) or not any(map(_is_gate, state.values())):
                return state
            return {key: value for key, value in state.items() if not _is_gate(value)}
        gates = {name: self._gated(thing, name, getattr(thing, name)) for name in GATED
                 if callable(getattr(thing, name, None))}
        for name, gate in (gates | {"state_dict": state_dict} if gates else {}).items():
            gate.elasticrun_gate = True
            setattr(thing, name, gate)

    def _gated(self, thing: Any, name: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(inner)
        def gated(*arguments: Any, **named: Any) -> Any:
            applies = any(each is self._optimizer for each in (*arguments, *named.values()))
            if name == "step" and not hasattr(thing, "optimizer"):  # which a schedule has
                self.step_called = True
                self.scaler_called |= applies
            self._asked(applies)
            if not self.acting or name == "step" and self._is_over(thing):
                return None
            return inner(*arguments, **named)
        return gated

    def _is_over(self, thing: Any) -> bool:
        """Whether it is a OneCycleLR at its last rate. Some steps further it would raise an error."""
        if not isinstance(thing, OneCycleLR) or thing.last_epoch < thing.total_steps - 1:
            return False
        if id(thing) in self._over:
            warnings.warn(f"the OneCycleLR was made for {thing.total_steps} steps, and there are more, as in "
                          "a job that has become smaller; it keeps its last rate")
        self._over.add(id(thing))
        return True


def _numbers_in(value: Any) -> list[float]:
    """Those that can be read at no cost: not the ones on a GPU."""
    if isinstance(value, (list, tuple)):
        return [number for each in value for number in _numbers_in(each)]
    if isinstance(value, torch.Tensor):
        return [value.item()] if value.numel() == 1 and value.device.type == "cpu" else []
    return [float(value)] if isinstance(value, (bool, int, float)) else []


def _is_gate(value: Any) -> bool:
    return callable(value) and getattr(value, "elasticrun_gate", False) is True


def _split(value: Any, owner: Any, path: tuple[Any, ...], found: list[tuple[str, torch.Tensor]]) -> Any:
    """State with a Place for each tensor, which goes to `found` under its path."""
    if isinstance(value, torch.Tensor):
        found.append((_name(owner, list(path), value), value))
        return Place()
    if isinstance(value, dict):
        kept = collections.OrderedDict if isinstance(value, collections.OrderedDict) else dict
        if isinstance(value, collections.Counter):
            return value
        return kept((k, _split(v, owner, (*path, k), found)) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        kind = list if isinstance(value, list) else tuple
        return kind(_split(v, owner, (*path, k), found) for k, v in enumerate(value))
    return value


def _place(name: str) -> str:
    return json.dumps(json.loads(name)[:2])


def _name(owner: Any, key: Any, tensor: torch.Tensor) -> str:
    return json.dumps([owner, key, str(tensor.dtype)[len("torch."):], list(tensor.shape),
                       list(tensor.stride()), tensor.device.type])
