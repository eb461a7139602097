"""Captured steps: small files of a program's decode steps, for `deftc replay` on another machine."""

from __future__ import annotations

import os
from ctypes import POINTER, byref, c_int64, cast
from types import TracebackType
from typing import Literal, NamedTuple

from . import _abi
from ._arguments import expect_whole, to_bytes
from ._errors import UsageError
from ._library import check, lib, make, read, sized

_WHAT = {"host": _abi.DEFT_CAPTURE_HOST, "device": _abi.DEFT_CAPTURE_DEVICE, "tensors": _abi.DEFT_CAPTURE_TENSORS}


class CaptureState(NamedTuple):
    """Counts the steps captured so far."""

    folder: str  # of what is or was captured last; empty: nothing was
    ended: str  # why no more is written; empty: it goes on, or was ended by the program
    bytes: int  # that were written
    steps: int  # that were written
    is_on: bool


class Capture:
    """A capture that ends with its `with` block."""

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        stop_capture()


def capture(
    folder: str | os.PathLike[str],
    what: Literal["host", "device", "tensors"] = "host",
    *,
    most_steps: int = 256,
    most_bytes: int = 1 << 30,
) -> Capture:
    """Captures steps as files in the folder from now on, overriding DEFT_CAPTURE. For each plan it captures the first four
    trees, then those whose number is a power of two. `deftc replay FILE` runs one again. `what`: "host" waits for nothing. With
    "device", a captured step on a GPU waits for its stream and adds page table, lengths and drafts. "tensors" also adds q, K
    and V. The capture ends at a limit, or when it cannot write a step; no run fails because of it.

    >>> import deft, numpy, tempfile
    >>> att = deft.compile("attention a { query_heads = 4; kv_heads = 2; head_dim = 64; dtype = f16; kv_cache = contiguous; }")
    >>> tree = deft.Tree()
    >>> _ = tree.add_query(tree.add_root(10, location=0))
    >>> q, k, v = (numpy.ones(shape, "float16") for shape in ((1, 4, 64), (10, 2, 64), (10, 2, 64)))
    >>> with tempfile.TemporaryDirectory() as folder, deft.capture(folder):
    ...     _ = att.run(tree, q, k, v)
    ...     deft.capture_state().steps
    1
    """
    if what not in _WHAT:
        raise UsageError(f"is {what!r}, not one of {', '.join(_WHAT)}", field="what")
    options = sized(
        _abi.deft_capture_options,
        folder=to_bytes("folder", os.fspath(folder)),
        what=_WHAT[what],
        most_steps=expect_whole("most_steps", most_steps, least=1),
        most_bytes=expect_whole("most_bytes", most_bytes, c_int64, least=1),
    )
    check(lib.deft_set_capture(byref(options)))
    return Capture()


def stop_capture() -> None:
    check(lib.deft_set_capture(None))


def capture_state() -> CaptureState:
    made = make(lib.deft_get_capture)
    try:
        return read(CaptureState, cast(made, POINTER(_abi.deft_capture_state))[0])
    finally:
        lib.deft_free(made)
