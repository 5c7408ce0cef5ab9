"""The small objects of a state_dict as bytes. JSON and not pickle: what comes over a network is data,
and torch 1.13 reads no numbers with weights_only."""
from __future__ import annotations

import base64
import collections
import ctypes
import json
from typing import Any

import torch

from .._library import Misuse

CARRIED = "numbers, text, tensors, lists, tuples, sets and dicts can"
KINDS: dict[str, Any] = {kind.__name__: kind for kind in (
    tuple, set, frozenset, collections.deque, collections.Counter, collections.OrderedDict, dict)}


class Place:
    """Where an array was that is carried apart."""


def pack(value: Any) -> bytes:
    """Functions in dicts are left out: they are the program's. Raises Misuse for what is not carried."""
    return json.dumps(_plain(value)).encode()


def unpack(data: bytes) -> Any:
    """Tensors are on the CPU."""
    return _value(json.loads(data))


def like(value: Any, present: Any) -> Any:
    """An unpacked value with the types that are there: older saves have lists for tuples and sets, and
    dicts for Counters."""
    kind = type(present)
    if kind in (list, tuple) and type(value) in (list, tuple):
        kept = list(present)[:len(value)]
        values = [like(v, p) for v, p in zip(value, kept)] + list(value[len(kept):])
        return kind(values)
    if kind is set and isinstance(value, list):
        return set(value)
    if isinstance(present, dict) and isinstance(value, dict):
        values = {k: like(v, present[k]) if k in present else v for k, v in value.items()}
        return KINDS[kind.__name__](values) if KINDS.get(kind.__name__) is kind else values
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        entries = [[_plain(k), _plain(v)] for k, v in value.items() if not _is_function(v)]
        kind = _kind_of(value)
        return {"dict": entries} if kind == "dict" else {"kind": kind, "values": entries}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, (tuple, set, frozenset, collections.deque)):
        return {"kind": _kind_of(value), "values": [_plain(v) for v in value]}
    if isinstance(value, Place):
        return {"place": True}
    if isinstance(value, torch.Tensor):
        row = value.detach().cpu().contiguous().reshape(-1)
        data = ctypes.string_at(row.data_ptr(), row.numel() * row.element_size())
        return {"tensor": [str(value.dtype)[len("torch."):], list(value.shape),
                           base64.b64encode(data).decode()]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "item") and not getattr(value, "shape", ()):  # a number of numpy
        return value.item()
    raise Misuse(f"a state_dict has a {type(value).__name__}, which cannot be carried to newcomers; "
                 + CARRIED)


def _value(plain: Any) -> Any:
    if isinstance(plain, list):
        return [_value(v) for v in plain]
    if not isinstance(plain, dict):
        return plain
    if "dict" in plain:
        return {_value(k): _value(v) for k, v in plain["dict"]}
    if "place" in plain:
        return Place()
    if "kind" in plain:
        kind, values = KINDS[plain["kind"]], plain["values"]
        if issubclass(kind, dict):
            return kind({_value(k): _value(v) for k, v in values})
        return kind(_value(v) for v in values)
    kind, shape, data = plain["tensor"]
    if not data:
        return torch.empty(shape, dtype=getattr(torch, kind))
    row = torch.frombuffer(bytearray(base64.b64decode(data)), dtype=getattr(torch, kind))
    return row.reshape(shape)


def _kind_of(value: Any) -> str:
    """A subclass of these, such as a defaultdict or a named tuple, becomes the nearest one."""
    return next(base.__name__ for base in type(value).__mro__ if KINDS.get(base.__name__) is base)


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, torch.Tensor)
