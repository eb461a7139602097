"""Values of an attention's parameters."""

from __future__ import annotations

import ctypes
import math
from array import array
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, Mapping, NamedTuple, Sequence

from . import _abi
from ._arguments import row_of, text_of
from ._compiled import Compiled, Param
from ._errors import UsageError
from ._library import Handle, check, lib, make
from ._tensors import dtype_text, is_packed, view

_SETTERS = {_abi.DEFT_F32: "deft_params_set_f32", _abi.DEFT_I32: "deft_params_set_i32"}
_DTYPES = {_abi.DEFT_F32: "float32", _abi.DEFT_I32: "int32"}


@dataclass(frozen=True)
class _OnDevice:
    """An array in a GPU's memory: kernels read it when they run, so it is known by its place and not by its values."""

    data: int
    dtype: int
    shape: tuple[int, ...]
    device: int
    owner: Any = field(compare=False)  # whose memory is alive as long as something is found by this


class _Array(NamedTuple):
    """Of the host's memory."""

    dtype: int
    elements: bytes
    shape: tuple[int, ...]


class _List(NamedTuple):
    """Numbers, which are of the type that the parameter is declared with."""

    are_whole: bool
    doubles: bytes


def _list_of(name: str, values: Sequence[Any]) -> _List:
    try:
        doubles = array("d", values)
    except (TypeError, OverflowError) as error:
        raise UsageError(f"the parameter {name} is no list of numbers: {error}") from None
    return _List(all(isinstance(one, Integral) for one in values), doubles.tobytes())


def _frozen(name: str, value: Any) -> tuple[Any, ...]:
    """A value that can be compared: a number, numbers, an array's elements, or a place on a GPU."""
    if isinstance(value, (bool, int, float)):
        return (name, float(value))
    if isinstance(value, (list, tuple)):
        return (name, _list_of(name, value))
    if hasattr(value, "ndim") and value.ndim == 0:
        return (name, float(value))
    if value is None or isinstance(value, (str, bytes)):
        raise UsageError(f"the parameter {name} is {value!r}, it must be a number or an array")
    seen = view(f"the parameter {name}", value)
    # These two say how its bytes are read here; what a parameter may be is the library's to check.
    if seen.dtype not in _SETTERS:
        raise UsageError(f"the parameter {name} is {dtype_text(seen.dtype)}, it must be float32 or int32")
    if not is_packed(seen):
        raise UsageError(f"the parameter {name} of shape {list(seen.shape)} is not packed, it has strides {seen.strides}")
    if seen.device_type != _abi.DEFT_DEVICE_CPU:
        return (name, _OnDevice(seen.data, seen.dtype, seen.shape, seen.device, value))
    return (name, _Array(seen.dtype, ctypes.string_at(seen.data, 4 * math.prod(seen.shape)), seen.shape))


def freeze(values: Mapping[str, Any] | None) -> tuple[Any, ...]:
    """The values as something that a plan can be found by."""
    try:
        return tuple(_frozen(name, value) for name, value in sorted(values.items())) if values else ()
    except UsageError as error:
        error.field = "params"
        raise


def merged(values: Mapping[str, Any], params: Mapping[str, Any] | None) -> dict[str, Any]:
    """`values`, overridden by `params`."""
    if not params:
        return dict(values)
    if not hasattr(params, "keys") or not all(isinstance(name, str) for name in params):
        raise UsageError(f"params is {params!r}, it must be a mapping of names to values", 'params={"cap": 30.0}', "params")
    return {**values, **params}


def make_params(attention: Compiled, frozen: tuple[Any, ...], device: int | None = None) -> Handle | None:
    """None: all have their defaults. `device` is the GPU that runs; none: it is not known yet, or the host runs."""
    if not frozen:
        return None
    params = Handle(make(lib.deft_params_make, attention), lib.deft_params_destroy)
    declared = {param.name: param for param in attention.params}
    for name, value in frozen:
        param, known_as = declared.get(name), text_of("the name of a parameter", name)
        if isinstance(value, (_OnDevice, _Array)) and param is not None:
            _check_shape(attention, param, value.shape)
        if isinstance(value, _OnDevice):
            _check_place(param, name, value, device)
            check(lib.deft_params_set_device(params, known_as, value.data, math.prod(value.shape)))
        elif isinstance(value, _Array):
            check(getattr(lib, _SETTERS[value.dtype])(params, known_as, value.elements, len(value.elements) // 4))
        elif isinstance(value, _List):
            _set_list(params, param, name, known_as, value)
        else:
            check(lib.deft_params_set(params, known_as, value))
    return params


def _check_shape(attention: Compiled, param: Param, shape: tuple[int, ...]) -> None:
    """Arrays over tokens and queries are read as they lie. One of several dimensions has those of the cache, or of its slots."""
    if param.sized_by is None:
        return
    inner = {"kv_heads": attention.kv_heads} if param.elements > 1 else {}
    slots = {"page_size": attention.page_size} if attention.page_size and param.sized_by == "tokens" else {}
    longer = tuple(size for size in shape if size != 1)
    if len(longer) <= 1 or any(_ends_with(longer, known) for known in (inner, {**slots, **inner})):
        return
    first = "pages" if slots else param.sized_by
    known = {**slots, **inner}
    sizes = ", ".join(["any", *(str(size) for size in known.values())])
    raise UsageError(
        f"the parameter {param.name} has shape {list(shape)}, it must be [{', '.join([first, *known])}] = [{sizes}]",
        "or one row, in the same order" if param.sized_by == "tokens" else "",
    )


def _ends_with(shape: tuple[int, ...], known: Mapping[str, int]) -> bool:
    """Whether these are all dimensions but the first. Those of one element do not count."""
    inner = tuple(size for size in known.values() if size != 1)
    return shape[len(shape) - len(inner) :] == inner and len(shape) <= len(inner) + 1


def _set_list(params: Handle, declared: Param | None, name: str, known_as: bytes, values: _List) -> None:
    doubles = memoryview(values.doubles).cast("d")
    if values.are_whole and declared is not None and declared.dtype == "int32":
        whole = row_of(f"the parameter {name}", [int(one) for one in doubles])
        check(lib.deft_params_set_i32(params, known_as, whole, len(whole)))
    else:
        check(lib.deft_params_set_f32(params, known_as, (ctypes.c_float * len(doubles))(*doubles), len(doubles)))


def _check_place(declared: Param | None, name: str, place: _OnDevice, device: int | None) -> None:
    if declared is not None and declared.dtype != _DTYPES[place.dtype]:
        raise UsageError(f"the parameter {name} is {declared.dtype}, not {_DTYPES[place.dtype]}")
    if device is not None and device != place.device:
        raise UsageError(f"the parameter {name} is on GPU {place.device}, the run is on GPU {device}")
