"""What is done to rows beside attention: results over parts of the tokens become one, and K and V become 8-bit floats."""

from __future__ import annotations

import math
from ctypes import POINTER, addressof, byref, c_float, cast
from typing import Any, Sequence

from . import _abi, _ops
from ._errors import UsageError, wrong
from ._gpu import gpu
from ._library import check, lib, make, sized
from ._tensors import DTYPE_NAMES, EIGHT_BIT, UINT8, UINT16, Slot, View, dtype_text, dtype_word, expect_on_host, expect_writable, is_packed
from ._tensors import make_like, stream_of, strides_text, view

_NAMES = {"states": "outs", "states[].out": "outs[]", "states[].lse": "lses[]", "to.out": "out", "to.lse": "lse", "type": "outs[0]"}
_loaded: dict[tuple[int, int], Any] = {}  # of a GPU and a type; for as long as the process lives


class _States:
    """An array of deft_state."""

    def __init__(self, count: int) -> None:
        self._slots = [(Slot(), Slot()) for _ in range(count)]
        self._states = (_abi.deft_state * count)()
        for state, (out, lse) in zip(self._states, self._slots):
            state.out, state.lse = out.address, lse.address
        self.address = addressof(self._states)

    def fill(self, index: int, out: View, lse: View) -> None:
        for slot, seen in zip(self._slots[index], (out, lse)):
            slot.fill(seen)


def merge_states(
    outs: Sequence[Any], lses: Sequence[Any], *, out: Any = None, lse: Any = None, stream: int | None = None
) -> tuple[Any, Any]:
    """Merges attention of the same queries over parts of the tokens. Each state is the (`out`, `lse`) of a run over one part; there
    are at most 16. Returns (out, lse). A row without tokens is 0, with lse -inf. The bits depend only on the states and their
    order.

    `outs` are [queries, query_heads, head_dim], packed: float32, float16 or bfloat16, all of one type and shape. `out` and
    `lse` may be those of a whole state; any other overlap is an error. On a GPU the merge is enqueued on the stream and does not
    wait. The first merge of a type on a GPU loads its kernel; later ones can be captured.

    >>> import deft, numpy
    >>> outs = [numpy.full((1, 1, 2), value, "float32") for value in (1, 3)]
    >>> lses = [numpy.zeros((1, 1), "float32"), numpy.zeros((1, 1), "float32")]
    >>> deft.merge_states(outs, lses)[0]
    array([[[2., 2.]]], dtype=float32)
    """
    if len(outs) != len(lses):
        raise UsageError(f"there are {len(outs)} outs and {len(lses)} lses")
    expect_writable("out", out)
    expect_writable("lse", lse)
    count = len(outs)
    states = _States(count)
    merged = _States(1)
    if not outs:  # there is no array to make the result like: the library says what it takes
        check(lib.deft_merge_states(states.address, count, merged.address), _NAMES)
    first = _floats(view("outs[0]", outs[0]))
    if out is None:
        out = make_like(outs[0], first.shape, first.dtype)
    if lse is None:
        lse = make_like(outs[0], first.shape[:-1], _abi.DEFT_F32)
    is_gpu = first.device_type == _abi.DEFT_DEVICE_CUDA
    if stream is None:
        stream = stream_of(outs[0], first.device) if is_gpu else 0
    for index, (one, its_lse) in enumerate(zip(outs, lses)):
        states.fill(index, _floats(view(f"outs[{index}]", one, stream)), view(f"lses[{index}]", its_lse, stream))
    merged.fill(0, _floats(view("out", out, stream)), view("lse", lse, stream))
    if is_gpu:
        merge = _merge_of(first.device, first.dtype)
        check(lib.deft_gpu_state_merge_run(merge, states.address, count, merged.address, stream), _NAMES)
    else:
        check(lib.deft_merge_states(states.address, count, merged.address), _NAMES)
    return out, lse


def _merge_of(device: int, dtype: int) -> Any:
    merge = _loaded.get((device, dtype))
    if merge is None:
        made = make(lib.deft_gpu_state_merge_load, gpu(device), dtype, names=_NAMES)
        merge = _loaded[device, dtype] = cast(made, POINTER(_abi.deft_gpu_state_merge))
    return merge


def _floats(seen: View) -> View:
    """bfloat16 may come in uint16, because NumPy has no such type."""
    return seen._replace(dtype=_abi.DEFT_BF16) if seen.dtype == UINT16 else seen


_TYPES = {name: code for code, name in EIGHT_BIT.items()}


def quantize(values: Any, scales: Any = 1.0, dtype: Any = "float8_e4m3fn", *, out: Any = None) -> Any:
    """`values` / `scales` as 8-bit floats, to nearest even; too large values become the largest number, NaN stays NaN.

    `values` are float16 or bfloat16 on the host, packed, [..., kv_heads, dim]: rows of K or V, or a cache whose tokens have
    adjacent heads. There is one scale, one for each KV head, or one for each KV head of each token ([..., kv_heads]), finite and
    above 0. Give the scales back in the spec: K's as a parameter that `score` multiplies `s` by, V's as one that `output` or,
    for scales of tokens, `value` multiplies by. `dtype` is the cache's
    ("float8_e4m3fn", "float8_e5m2", or a library's own; Attention.cache_dtype). NumPy needs ml_dtypes for it; otherwise the result
    is the bits in uint8.

    >>> import deft, numpy
    >>> rows = numpy.array([[[1.0], [2.0]]], "float16")  # one token of two KV heads
    >>> deft.quantize(rows, [1.0, 2.0]).view("uint8")
    array([[[56],
            [56]]], dtype=uint8)
    """
    word = dtype_word(dtype)
    code = _TYPES.get(_ops.EIGHT_BIT_DTYPES.get(word, word))
    if code is None:
        raise wrong("dtype", f"is {dtype!r}, it must be one of {', '.join(_TYPES)}")
    seen = view("values", values)
    source = _abi.DEFT_BF16 if seen.dtype == UINT16 else seen.dtype
    if source not in (_abi.DEFT_F16, _abi.DEFT_BF16):
        raise wrong("values", f"is {dtype_text(seen.dtype)}, it must be float16 or bfloat16")
    if len(seen.shape) < 2:
        raise wrong("values", f"has shape {list(seen.shape)}, it must be [..., kv_heads, dim]")
    given = make_like(values, seen.shape, code) if out is None else out
    to = view("out", given)
    expect_writable("out", out)
    if to.shape != seen.shape or to.dtype not in (code, UINT8):
        has = f"{dtype_text(to.dtype)} of shape {list(to.shape)}"
        raise wrong("out", f"is {has}, it must be {DTYPE_NAMES[code]} of shape {list(seen.shape)}")
    for name, one in (("values", seen), ("out", to)):
        expect_on_host(name, one, "must be in the host's memory")
        if not is_packed(one):
            raise wrong(name, f"has strides {strides_text(one)}, it must be packed", "pass a contiguous copy")
    *tokens, heads, dim = seen.shape
    dtypes = {"from": source, "to": code}
    shape = sized(_abi.deft_quantize_shape, tokens=math.prod(tokens), kv_heads=heads, dim=dim, **dtypes)
    numbers = _scales_of(scales, seen.shape[:-1])
    check(lib.deft_quantize(byref(shape), seen.data, numbers, len(numbers), to.data))
    return given


def _scales_of(scales: Any, rows: tuple[int, ...]) -> Any:
    """An array of C. `rows` is the shape of those that have one of their own each."""
    own = tuple(getattr(scales, "shape", ()))
    if len(own) > 1 and own != tuple(rows):
        raise wrong("scales", f"has shape {list(own)}, it must be a number, one for each KV head, or of shape {list(rows)}")
    listed = (scales.reshape(-1) if len(own) > 1 else scales).tolist() if hasattr(scales, "tolist") else scales
    numbers = list(listed) if isinstance(listed, (list, tuple)) else [listed]
    try:
        return (c_float * len(numbers))(*numbers)
    except TypeError:
        raise wrong("scales", f"is {scales!r}, it must be a number, a row of one for each KV head, or an array") from None
