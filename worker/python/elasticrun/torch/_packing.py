"""The small objects of a state_dict as bytes. JSON and not pickle: what comes over a network is data,
and torch 1.13 reads no numbers with weights_only."""
from __future__ import annotations

import base64
import collections
import ctypes
import json
from typing import Any, Optional

import torch

from .._library import Misuse

CARRIED = "numbers, text, tensors, lists and dicts can"


def pack(value: Any) -> bytes:
    """Functions in dicts are left out: they are the program's. Raises Misuse for what is not carried."""
    return json.dumps(_plain(value)).encode()


def unpack(data: bytes) -> Any:
    """Tensors are on the CPU; sets and tuples have become lists (see like)."""
    return _value(json.loads(data))


def like(value: Any, present: Optional[Any]) -> Any:
    """An unpacked value as the type that is there."""
    if isinstance(present, (tuple, set, collections.Counter)):
        return type(present)(value)
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {"dict": [[_plain(k), _plain(v)] for k, v in value.items() if not _is_function(v)]}
    if isinstance(value, (list, tuple, set)):
        return [_plain(v) for v in value]
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
    kind, shape, data = plain["tensor"]
    if not data:
        return torch.empty(shape, dtype=getattr(torch, kind))
    row = torch.frombuffer(bytearray(base64.b64decode(data)), dtype=getattr(torch, kind))
    return row.reshape(shape)


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, torch.Tensor)
