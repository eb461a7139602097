"""Rows of a cache of 8-bit floats."""

from __future__ import annotations

import math
from ctypes import byref, c_float
from typing import Any

from . import _abi
from ._errors import UsageError
from ._library import check, lib, sized
from ._tensors import DTYPE_NAMES, UINT8, UINT16, dtype_text, dtype_word, is_packed, is_read_only, make_like, strides_text, view

_TYPES = {DTYPE_NAMES[code]: code for code in (_abi.DEFT_F8_E4M3, _abi.DEFT_F8_E5M2)}
_BY_SPECS = {"fp8_e4m3": "float8_e4m3fn", "fp8_e5m2": "float8_e5m2"}  # as the language has them


def quantize(values: Any, scales: Any = 1.0, dtype: Any = "float8_e4m3fn", *, out: Any = None) -> Any:
    """`values` / `scales` as 8-bit floats, to nearest even; what is too large becomes the largest number, NaN stays NaN.

    `values` are float16 or bfloat16 on the host, packed, [..., kv_heads, dim]: rows of K or V, or a cache whose tokens have
    their heads side by side. There is one scale, one for each KV head, or one for each KV head of each token ([..., kv_heads],
    as `values` has them), finite and above 0. The scale is the caller's to give back: K's as a parameter that `score`
    multiplies `s` by, V's as one that `output` or, where each token has its own, `value` multiplies by. `dtype` is that of the cache
    ("float8_e4m3fn", "float8_e5m2", or a library's own; Attention.cache_dtype). NumPy has them by ml_dtypes; where that is missing the result is
    their bits, in uint8.

    >>> import deft, numpy
    >>> rows = numpy.array([[[1.0], [2.0]]], "float16")  # one token of two KV heads
    >>> deft.quantize(rows, [1.0, 2.0]).view("uint8")
    array([[[56],
            [56]]], dtype=uint8)
    """
    word = dtype_word(dtype)
    code = _TYPES.get(_BY_SPECS.get(word, word))
    if code is None:
        raise UsageError(f"dtype is {dtype!r}, it must be one of {', '.join(_TYPES)}")
    seen = view("values", values)
    source = _abi.DEFT_BF16 if seen.dtype == UINT16 else seen.dtype
    if source not in (_abi.DEFT_F16, _abi.DEFT_BF16):
        raise UsageError(f"values is {dtype_text(seen.dtype)}, it must be float16 or bfloat16")
    if len(seen.shape) < 2:
        raise UsageError(f"values has shape {list(seen.shape)}, it must be [..., kv_heads, dim]")
    given = make_like(values, seen.shape, code) if out is None else out
    to = view("out", given)
    if out is not None and is_read_only(out):
        raise UsageError("out may not be written to")
    if to.shape != seen.shape or to.dtype not in (code, UINT8):
        has = f"{dtype_text(to.dtype)} of shape {list(to.shape)}"
        raise UsageError(f"out is {has}, it must be {DTYPE_NAMES[code]} of shape {list(seen.shape)}")
    for name, one in (("values", seen), ("out", to)):
        if one.device_type != _abi.DEFT_DEVICE_CPU:
            raise UsageError(f"{name} is on a GPU, it must be in the host's memory")
        if not is_packed(one):
            raise UsageError(f"{name} has strides {strides_text(one)}, it must be packed", "hand over a contiguous copy")
    *tokens, heads, dim = seen.shape
    shape = sized(
        _abi.deft_quantize_shape, tokens=math.prod(tokens), kv_heads=heads, dim=dim, to=code, **{"from": source}
    )
    numbers = _scales_of(scales, seen.shape[:-1])
    check(lib.deft_quantize(byref(shape), seen.data, numbers, len(numbers), to.data))
    return given


def _scales_of(scales: Any, rows: tuple[int, ...]) -> Any:
    """An array of C. `rows` is the shape of those that have one of their own each."""
    own = tuple(getattr(scales, "shape", ()))
    if len(own) > 1 and own != tuple(rows):
        raise UsageError(f"scales has shape {list(own)}, it must be a number, one for each KV head, or of shape {list(rows)}")
    listed = (scales.reshape(-1) if len(own) > 1 else scales).tolist() if hasattr(scales, "tolist") else scales
    numbers = list(listed) if isinstance(listed, (list, tuple)) else [listed]
    try:
        return (c_float * len(numbers))(*numbers)
    except TypeError:
        raise UsageError(f"scales is {scales!r}, it must be a number, a row of one for each KV head, or an array") from None
