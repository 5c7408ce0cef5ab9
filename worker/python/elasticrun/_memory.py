"""Where the numbers of an array lie, whichever library it is of: through the buffer protocol (numpy,
array, bytearray), DLPack (PyTorch, CuPy, JAX), or __cuda_array_interface__."""
from __future__ import annotations

import ctypes
from typing import Any, NamedTuple, Optional

from ._library import Misuse

FLOAT32, FLOAT64, BFLOAT16, FLOAT16, INT32, INT64 = range(6)
SIZES = {FLOAT32: 4, FLOAT64: 8, BFLOAT16: 2, FLOAT16: 2, INT32: 4, INT64: 8}


class Memory(NamedTuple):
    address: int
    bytes: int
    type: int  # of elasticrun.h; -1: another one, which can only be state
    owner: Any  # keeps the memory where it is

    @property
    def numbers(self) -> int:
        return self.bytes // SIZES[self.type]


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    """DLTensor of dlpack.h, the beginning of DLManagedTensor."""
    _fields_ = [("data", ctypes.c_void_p), ("device", _Device), ("ndim", ctypes.c_int32),
                ("dtype", _DataType), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

# Of DLPack: (code, bits).
_DLPACK_TYPES = {(2, 32): FLOAT32, (2, 64): FLOAT64, (4, 16): BFLOAT16, (2, 16): FLOAT16,
                 (0, 32): INT32, (0, 64): INT64}
# Of the array interface: kind and size in bytes.
_INTERFACE_TYPES = {"f4": FLOAT32, "f8": FLOAT64, "f2": FLOAT16, "i4": INT32, "i8": INT64}


def memory_of(array: Any) -> Memory:
    """Raises Misuse where the array is not one piece of memory that may be written."""
    try:
        view = memoryview(array)
    except TypeError:
        view = None
    if view is not None:
        return _of_buffer(view)
    interface = _interface_of(array)
    if interface is not None and interface["data"][1]:
        raise Misuse("the array is read-only")
    if hasattr(array, "__dlpack__"):  # before the interface, which has no bfloat16
        return _of_dlpack(array)
    if interface is not None:
        return _of_interface(array, interface)
    raise Misuse(f"a {type(array).__name__} is no array: it has neither a buffer nor DLPack")


def _of_buffer(view: memoryview) -> Memory:
    if not view.c_contiguous:
        raise Misuse("the array does not lie in one piece; make it contiguous")
    if view.readonly:
        raise Misuse("the array is read-only")
    kind = "i" if view.format[-1] in "ilq" else "f" if view.format[-1] in "efd" else "?"
    known = _INTERFACE_TYPES.get(f"{kind}{view.itemsize}", -1) if len(view.format) == 1 else -1
    if view.nbytes == 0:
        return Memory(0, 0, known, view)
    address = ctypes.addressof(ctypes.c_char.from_buffer(view))
    return Memory(address, view.nbytes, known, view)


def _of_dlpack(array: Any) -> Memory:
    try:
        capsule = array.__dlpack__()
    except (BufferError, RuntimeError, TypeError) as error:
        raise Misuse(f"the array cannot be shared ({error}); give it detached, without "
                     "gradients of its own") from error
    tensor = _Tensor.from_address(_pointer_of(capsule, b"dltensor"))
    count, expected = 1, []
    for i in reversed(range(tensor.ndim)):
        expected.append(count)
        count *= tensor.shape[i]
    expected.reverse()
    if tensor.strides and count > 1 and any(
            tensor.shape[i] != 1 and tensor.strides[i] != expected[i] for i in range(tensor.ndim)):
        raise Misuse("the array does not lie in one piece; make it contiguous")
    known = _DLPACK_TYPES.get((tensor.dtype.code, tensor.dtype.bits), -1)
    size = count * tensor.dtype.bits * tensor.dtype.lanes // 8
    address = (tensor.data or 0) + tensor.byte_offset
    return Memory(address if size else 0, size, known, (array, capsule))


def _interface_of(array: Any) -> Optional[dict[str, Any]]:
    """None: it has none, or one that cannot say its type, as bfloat16 in older versions of PyTorch."""
    try:
        return array.__cuda_array_interface__
    except (AttributeError, KeyError):
        return None


def _of_interface(array: Any, interface: dict[str, Any]) -> Memory:
    if interface.get("strides") is not None:
        raise Misuse("the array does not lie in one piece; make it contiguous")
    address, _ = interface["data"]
    size = int(interface["typestr"][2:])
    for length in interface["shape"]:
        size *= length
    return Memory(address or 0, size, _INTERFACE_TYPES.get(interface["typestr"][1:], -1), array)
