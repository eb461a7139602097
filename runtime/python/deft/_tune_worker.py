"""The process that tunes: a request on its standard input, lines of JSON on its standard output. It has no other threads
and has not used CUDA, because it measures in child processes that are forked."""

from __future__ import annotations

import json
import os
import signal
import sys
from ctypes import POINTER, byref, c_char_p, cast
from dataclasses import asdict
from typing import Any

from . import _abi
from ._arguments import text_of, to_bytes
from ._attention import remake
from ._errors import KINDS, Error
from ._library import Handle, check, lib, make, read, sized, text
from ._params import freeze, make_params
from ._tree import Tree
from ._tune import TunedClass, TunedLists, TunedSparse, TuneProgress, TuneResult

_DEVICES = {"any": _abi.DEFT_TUNE_ANY, "cpu": _abi.DEFT_TUNE_CPU, "gpu": _abi.DEFT_TUNE_GPU}
_ENDS = {_abi.DEFT_TUNE_COMPLETE: "complete", _abi.DEFT_TUNE_BUDGET: "budget", _abi.DEFT_TUNE_CANCELLED: "cancelled"}


def _say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


class _Listener:
    """Says on the standard output what the tuner says, and tells it to end where the user or the parent has gone."""

    def __init__(self) -> None:
        self._is_cancelled = False
        self._parent = os.getppid()
        signal.signal(signal.SIGINT, self._cancel)
        fields = dict(_abi.deft_tune_listener._fields_)
        self.struct = sized(
            _abi.deft_tune_listener,
            progress=fields["progress"](self._progress),
            note=fields["note"](lambda _, line: _say(note=text(line))),
            is_cancelled=fields["is_cancelled"](lambda _: self._is_cancelled or os.getppid() != self._parent),
        )

    def _cancel(self, *_: Any) -> None:
        self._is_cancelled = True

    def _progress(self, _: Any, pointer: int) -> None:
        _say(progress=asdict(read(TuneProgress, cast(pointer, POINTER(_abi.deft_tune_progress))[0])))


def _all_of(kind: Any, struct: Any, pointers: int, count: int) -> list[Any]:
    """What an array of pointers to structs points to."""
    found = cast(pointers, POINTER(POINTER(struct)))
    return [read(kind, found[i][0]) for i in range(count)]


def _sparse_of(pointer: int | None) -> Any:
    if not pointer:
        return None
    seen = cast(pointer, POINTER(_abi.deft_tuned_sparse))[0]
    lists = _all_of(TunedLists, _abi.deft_tuned_lists, seen.lists, seen.list_count)
    return asdict(read(TunedSparse, seen, end=_ENDS[seen.end], lists=lists))


def _result_of(pointer: int) -> TuneResult:
    seen = cast(pointer, POINTER(_abi.deft_tune_summary))[0]
    classes = _all_of(TunedClass, _abi.deft_tuned_class, seen.classes, seen.class_count)
    said = cast(seen.warnings, POINTER(c_char_p))
    warnings = [text(said[i]) for i in range(seen.warning_count)]
    return read(TuneResult, seen, end=_ENDS[seen.end], classes=classes, warnings=warnings, sparse=_sparse_of(seen.sparse))


def _run(request: Any) -> None:
    listener = _Listener()
    attention = remake(request["origin"])
    options = dict(request["options"])
    for name in ("config_file", "journal", "records_folder", "note"):
        options[name] = to_bytes(name, options[name])
    options["device"] = _DEVICES[options["device"]]
    made = make(lib.deft_tuner_make, attention, byref(sized(_abi.deft_tune_options, **options)))
    tuner = Handle(made, lib.deft_tuner_destroy)
    params = make_params(attention, freeze(request["params"]))
    if params is not None:
        check(lib.deft_tuner_set_params(tuner, params))
    for name in request["workloads"]:
        check(lib.deft_tuner_add_workload(tuner, text_of("a workload's name", name)))
    for name, tree, is_held_out in request["trees"]:
        check(lib.deft_tuner_add_tree(tuner, Tree.from_json(tree), text_of("a tree's name", name) or None, is_held_out))
    summary = make(lib.deft_tuner_run, tuner, byref(listener.struct))
    try:
        _say(summary=asdict(_result_of(summary)))
    finally:
        lib.deft_free(summary)


def main() -> None:
    try:
        _run(json.load(sys.stdin))
    except Error as error:
        status = next(status for status, kind in KINDS.items() if isinstance(error, kind))
        _say(error=error.message, hint=error.hint, field=error.field, status=status)


if __name__ == "__main__":
    main()
