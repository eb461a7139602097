"""Attention over parts of the tokens, computed apart, becomes attention over all of them."""

from __future__ import annotations

from ctypes import POINTER, addressof, cast
from typing import Any, Sequence

from . import _abi
from ._errors import UsageError
from ._gpu import gpu
from ._library import check, lib, make
from ._tensors import UINT16, Slot, View, dtype_text, is_read_only, make_like, stream_of, view

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
            slot.fill(*seen[:6])


def merge_states(
    outs: Sequence[Any],
    lses: Sequence[Any],
    *,
    out: Any = None,
    lse: Any = None,
    stream: int | None = None,
) -> tuple[Any, Any]:
    """Gives (out, lse) of the same queries over all of the tokens that states have seen, each state a part of them: `out` and
    `lse` as runs give them, at most 16 states. A row that no state has seen a token of is 0, its lse -inf. The bits depend
    on nothing but what is merged and its order.

    `outs` are [queries, query_heads, head_dim], packed: float32, float16 or bfloat16, all of one type and shape. `out` and
    `lse` may be those of a state, all of them; any other overlap is an error. Where arrays lie on a GPU, the merge is put on the stream and is not waited for.
    The first of a GPU and a type loads its kernel; those behind it can be captured.

    >>> import deft, numpy
    >>> outs = [numpy.full((1, 1, 2), value, "float32") for value in (1, 3)]
    >>> lses = [numpy.zeros((1, 1), "float32"), numpy.zeros((1, 1), "float32")]
    >>> deft.merge_states(outs, lses)[0]
    array([[[2., 2.]]], dtype=float32)
    """
    if len(outs) != len(lses):
        raise UsageError(f"there are {len(outs)} outs and {len(lses)} lses")
    if not 1 <= len(outs) <= _abi.DEFT_MOST_STATES:
        raise UsageError(f"{len(outs)} states cannot be merged in a call, it takes 1 to {_abi.DEFT_MOST_STATES}")
    for name, array in (("out", out), ("lse", lse)):
        if array is not None and is_read_only(array):
            raise UsageError(f"{name} may not be written to")
    first = _floats("outs[0]", view("outs[0]", outs[0]))
    if out is None:
        out = make_like(outs[0], first.shape, first.dtype)
    if lse is None:
        lse = make_like(outs[0], first.shape[:-1], _abi.DEFT_F32)
    count = len(outs)
    is_gpu = first.device_type == _abi.DEFT_DEVICE_CUDA
    if stream is None:
        stream = stream_of(outs[0], first.device) if is_gpu else 0
    states = _States(count)
    merged = _States(1)
    seen = [
        (_floats(f"outs[{index}]", view(f"outs[{index}]", one, stream)), view(f"lses[{index}]", its_lse, stream))
        for index, (one, its_lse) in enumerate(zip(outs, lses))
    ]
    for index, (_, its) in enumerate(seen):
        if its.dtype != _abi.DEFT_F32:
            raise UsageError(f"lses[{index}] is {dtype_text(its.dtype)}, it must be float32")
    for index, state in enumerate(seen):
        states.fill(index, *state)
    into = _floats("out", view("out", out, stream)), view("lse", lse, stream)
    merged.fill(0, *into)
    if is_gpu:
        merge = _merge_of(first.device, first.dtype)
        check(lib.deft_gpu_state_merge_run(merge, states.address, count, merged.address, stream))
    else:
        check(lib.deft_merge_states(states.address, count, merged.address))
    return out, lse


def _merge_of(device: int, dtype: int) -> Any:
    merge = _loaded.get((device, dtype))
    if merge is None:
        made = make(lib.deft_gpu_state_merge_load, gpu(device), dtype)
        merge = _loaded[device, dtype] = cast(made, POINTER(_abi.deft_gpu_state_merge))
    return merge


def _floats(name: str, seen: View) -> View:
    """bfloat16 may come in uint16, because NumPy has no such type."""
    if seen.dtype in (_abi.DEFT_F32, _abi.DEFT_F16, _abi.DEFT_BF16):
        return seen
    if seen.dtype == UINT16:
        return seen._replace(dtype=_abi.DEFT_BF16)
    raise UsageError(f"{name} is {dtype_text(seen.dtype)}, it must be float32, float16 or bfloat16")
