"""The optimizer and the objects beside it (schedulers, scalers, averaged models): what of them steps
change, as a state source, and methods that act once for each step that happens."""
from __future__ import annotations

import functools
import json
import warnings
from typing import Any, Callable, Sequence

import torch
from torch.optim.lr_scheduler import OneCycleLR

from .. import Listing
from .._library import Misuse
from ._buffers import Local
from ._gradients import flat
from ._packing import like, pack, unpack

GATED = ("step", "update", "update_parameters", "unscale_")


class Objects:
    """Methods of registered objects do nothing while `acting` is false."""

    def __init__(self, optimizer: torch.optim.Optimizer, objects: Sequence[Any]) -> None:
        self._optimizer = optimizer
        self._parameters = [p for group in optimizer.param_groups for p in group["params"]]
        self._objects: list[Any] = []
        self._early: dict[int, Any] = {}  # received for objects that are registered later
        self._groups: list[Any] = []  # received with them: a scheduler sets rates when it is made
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
        states: dict[int, dict[str, torch.Tensor]] = {}
        for name, _ in wanted:
            owner, key, kind, shape, strides, device = json.loads(name)
            if isinstance(owner, int):
                where = "cpu" if device == "cpu" else self._parameters[owner].device
                states.setdefault(owner, {})[key] = present[name] if name in present else (
                    torch.empty_strided(shape, strides, dtype=getattr(torch, kind), device=where))
        for number, parameter in enumerate(self._parameters):
            state = self._optimizer.state.get(parameter, {})
            others = {key: v for key, v in state.items() if not isinstance(v, torch.Tensor)}
            if state or number in states:
                self._optimizer.state[parameter] = others | states.get(number, {})

    def take(self, data: bytes) -> None:
        received = unpack(data)
        for there, here in zip(received.get("kinds", []), self._kinds()):
            if there != here:
                raise Misuse(f"the state to go on from is that of a program with {there} where this one "
                             f"has {here}; to begin afresh, give --save another folder")
        self.first_batch, self._groups = received["first_batch"], received["groups"]
        self._set_groups(self._groups)
        for number, values in received["values"].items():
            self._optimizer.state[self._parameters[number]].update(values)
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
                    group[key] = like(value, group.get(key))

    def _optimizer_tensors(self) -> list[tuple[str, torch.Tensor]]:
        return [(_name(number, key, value), value) for number, parameter in enumerate(self._parameters)
                for key, value in self._optimizer.state.get(parameter, {}).items()
                if isinstance(value, torch.Tensor)]

    def _module_tensors(self) -> list[tuple[str, torch.Tensor]]:
        return [(_name(f"object {number}", key, value), value)
                for number, thing in enumerate(self._objects) if isinstance(thing, torch.nn.Module)
                for key, value in thing.state_dict(keep_vars=True).items()
                if isinstance(value, torch.Tensor)]

    def _packed(self) -> bytes:
        values = {}
        for number, parameter in enumerate(self._parameters):
            state = self._optimizer.state.get(parameter, {})
            if others := {k: v for k, v in state.items() if not isinstance(v, torch.Tensor)}:
                values[number] = others
        groups = [{key: value for key, value in group.items() if key != "params"}
                  for group in self._optimizer.param_groups]
        objects = [None if isinstance(thing, torch.nn.Module) else thing.state_dict()
                   for thing in self._objects]
        return pack({"groups": groups, "values": values, "objects": objects, "kinds": self._kinds(),
                     "first_batch": self.first_batch})

    def _kinds(self) -> list[str]:
        return [type(thing).__name__ for thing in (self._optimizer, *self._objects)]

    @staticmethod
    def _load(thing: Any, state: Any) -> None:
        if state is not None and not isinstance(thing, torch.nn.Module):
            present = thing.state_dict()
            thing.load_state_dict({key: like(state[key], value) if key in state else value
                                   for key, value in present.items()} | {
                                       key: state[key] for key in state if key not in present})

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
            if name == "step" and not hasattr(thing, "optimizer"):  # which a schedule has
                self.step_called = True
                self.scaler_called |= any(each is self._optimizer
                                          for each in (*arguments, *named.values()))
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


def _is_gate(value: Any) -> bool:
    return callable(value) and getattr(value, "elasticrun_gate", False) is True


def _name(owner: Any, key: str, tensor: torch.Tensor) -> str:
    return json.dumps([owner, key, str(tensor.dtype)[len("torch."):], list(tensor.shape),
                       list(tensor.stride()), tensor.device.type])
