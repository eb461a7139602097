"""Tuning results, read from the structs of the C ABI."""

from __future__ import annotations

from ctypes import POINTER, c_char_p, cast
from dataclasses import asdict
from typing import Any

from . import _abi
from ._library import read, text
from ._tune import TunedClass, TunedLists, TunedSparse, TuneResult

_ENDS = {_abi.DEFT_TUNE_COMPLETE: "complete", _abi.DEFT_TUNE_BUDGET: "budget", _abi.DEFT_TUNE_CANCELLED: "cancelled"}


def _all_of(kind: Any, struct: Any, pointers: int, count: int) -> list[Any]:
    """Reads the structs of an array of pointers."""
    found = cast(pointers, POINTER(POINTER(struct)))
    return [read(kind, found[i][0]) for i in range(count)]


def sparse_of(pointer: int | None) -> Any:
    if not pointer:
        return None
    seen = cast(pointer, POINTER(_abi.deft_tuned_sparse))[0]
    lists = _all_of(TunedLists, _abi.deft_tuned_lists, seen.lists, seen.list_count)
    return asdict(read(TunedSparse, seen, end=_ENDS[seen.end], lists=lists))


def result_of(pointer: int) -> TuneResult:
    seen = cast(pointer, POINTER(_abi.deft_tune_summary))[0]
    classes = _all_of(TunedClass, _abi.deft_tuned_class, seen.classes, seen.class_count)
    said = cast(seen.warnings, POINTER(c_char_p))
    warnings = [text(said[i]) for i in range(seen.warning_count)]
    return read(TuneResult, seen, end=_ENDS[seen.end], classes=classes, warnings=warnings, sparse=sparse_of(seen.sparse))
