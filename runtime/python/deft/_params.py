"""Values of an attention's parameters."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Mapping

from . import _abi
from ._errors import UsageError
from ._library import Handle, check, lib, make
from ._tensors import dtype_text, is_packed, view

if TYPE_CHECKING:
    from ._attention import Attention

_SETTERS = {_abi.DEFT_F32: "deft_params_set_f32", _abi.DEFT_I32: "deft_params_set_i32"}
_C_TYPES = {_abi.DEFT_F32: ctypes.c_float, _abi.DEFT_I32: ctypes.c_int32}


def _frozen(name: str, value: Any) -> tuple[Any, ...]:
    """A value that can be compared: a number, or (type, elements as bytes)."""
    if isinstance(value, (bool, int, float)):
        return (name, float(value))
    if isinstance(value, (list, tuple)):
        kind = _abi.DEFT_I32 if all(isinstance(one, int) for one in value) else _abi.DEFT_F32
        return (name, kind, bytes((_C_TYPES[kind] * len(value))(*value)), True)
    if hasattr(value, "ndim") and value.ndim == 0:
        return (name, float(value))
    seen = view(name, value)
    if seen.device_type != _abi.DEFT_DEVICE_CPU:
        raise UsageError(f"the parameter {name} is on a GPU, its values are read on the host", "hand over a copy: .cpu()")
    if seen.dtype not in _SETTERS:
        raise UsageError(f"the parameter {name} is {dtype_text(seen.dtype)}, it must be float32 or int32")
    if len(seen.shape) != 1 or not is_packed(seen):
        raise UsageError(f"the parameter {name} has shape {list(seen.shape)}, it must be one packed row")
    return (name, seen.dtype, ctypes.string_at(seen.data, 4 * seen.shape[0]), False)


def freeze(values: Mapping[str, Any] | None) -> tuple[Any, ...]:
    """The values as something that a plan can be found by."""
    return tuple(_frozen(name, value) for name, value in sorted(values.items())) if values else ()


def make_params(attention: Attention, frozen: tuple[Any, ...]) -> Handle | None:
    """None: all have their defaults."""
    if not frozen:
        return None
    params = Handle(make(lib.deft_params_make, attention), lib.deft_params_destroy)
    declared = {param.name: param for param in attention.params}
    for name, *value in frozen:
        if len(value) == 1:
            check(lib.deft_params_set(params, name.encode(), value[0]))
            continue
        kind, data, is_list = value
        if is_list and name in declared and declared[name].dtype == "float32" and kind == _abi.DEFT_I32:
            kind, data = _abi.DEFT_F32, bytes((ctypes.c_float * (len(data) // 4))(*memoryview(data).cast("i")))
        check(getattr(lib, _SETTERS[kind])(params, name.encode(), data, len(data) // 4))
    return params
