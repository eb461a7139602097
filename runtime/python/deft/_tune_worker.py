"""The process that tunes: a request on its standard input, lines of JSON on its standard output. It has no other threads
and has not used CUDA, because it measures in child processes that are forked."""

from __future__ import annotations

import json
import os
import signal
import sys
from ctypes import POINTER, byref, cast
from typing import Any

from . import _abi
from ._arguments import text_of
from ._attention import remake
from ._errors import KINDS, Error
from ._library import Handle, check, lib, make, sized, to_bytes
from ._params import freeze, make_params
from ._tree import Tree

_DEVICES = {"any": _abi.DEFT_TUNE_ANY, "cpu": _abi.DEFT_TUNE_CPU, "gpu": _abi.DEFT_TUNE_GPU}
_ENDS = {
    _abi.DEFT_TUNE_COMPLETE: "complete",
    _abi.DEFT_TUNE_BUDGET: "budget",
    _abi.DEFT_TUNE_CANCELLED: "cancelled",
}
_PROGRESS = ("best_us", "untuned_us", "seconds_left", "class_index", "classes", "measured", "left")
_CLASS = ("untuned_us", "tuned_us", "gain", "held_out_gain", "trees", "candidates", "rejected")
_CLASS_TEXTS = ("tree_class", "config", "note")
_CLASS_FLAGS = ("is_done", "keeps_untuned", "is_complete")
_SPARSE = ("tile_tokens", "stages", "warps", "tile_gain", "known", "seconds")
_LISTS = ("budget", "queries", "item_tokens", "untuned_us", "tuned_us", "gain")


def _say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def _words(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace")


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
            note=fields["note"](lambda _, line: _say(note=_words(line))),
            is_cancelled=fields["is_cancelled"](lambda _: self._is_cancelled or os.getppid() != self._parent),
        )

    def _cancel(self, *_: Any) -> None:
        self._is_cancelled = True

    def _progress(self, _: Any, pointer: int) -> None:
        seen = cast(pointer, POINTER(_abi.deft_tune_progress))[0]
        numbers = {name: getattr(seen, name) for name in _PROGRESS}
        _say(progress={"tree_class": _words(seen.tree_class), "stage": _words(seen.stage), **numbers})


def _class_of(one: Any) -> dict[str, Any]:
    return {
        **{name: _words(getattr(one, name)) for name in _CLASS_TEXTS},
        **{name: getattr(one, name) for name in _CLASS},
        **{name: bool(getattr(one, name)) for name in _CLASS_FLAGS},
    }


def _sparse_of(pointer: int | None) -> dict[str, Any] | None:
    if not pointer:
        return None
    seen = cast(pointer, POINTER(_abi.deft_tuned_sparse))[0]
    lists = cast(seen.lists, POINTER(POINTER(_abi.deft_tuned_lists)))
    return {
        **{name: getattr(seen, name) for name in _SPARSE},
        "is_packaged": bool(seen.is_packaged),
        "end": _ENDS[seen.end],
        "file": _words(seen.file),
        "lists": [{name: getattr(lists[i][0], name) for name in _LISTS} for i in range(seen.list_count)],
    }


def _summary_of(pointer: int) -> dict[str, Any]:
    seen = cast(pointer, POINTER(_abi.deft_tune_summary))[0]
    classes = cast(seen.classes, POINTER(POINTER(_abi.deft_tuned_class)))
    warnings = cast(seen.warnings, POINTER(_abi.c_char_p))
    return {
        "device": _words(seen.device),
        "end": _ENDS[seen.end],
        "seconds": seen.seconds,
        "measured": seen.measured,
        "reused": seen.reused,
        "config_file": _words(seen.config_file),
        "journal": _words(seen.journal),
        "classes": [_class_of(classes[i][0]) for i in range(seen.class_count)],
        "warnings": [_words(warnings[i]) for i in range(seen.warning_count)],
        "sparse": _sparse_of(seen.sparse),
    }


def _run(request: Any) -> None:
    listener = _Listener()
    attention = remake(request["origin"])
    options = dict(request["options"])
    for name in ("config_file", "journal", "records_folder", "note"):
        options[name] = to_bytes(name, options[name])
    options["device"] = _DEVICES[options["device"]]
    tuner = Handle(
        make(lib.deft_tuner_make, attention, byref(sized(_abi.deft_tune_options, **options))), lib.deft_tuner_destroy
    )
    params = make_params(attention, freeze(request["params"]))
    if params is not None:
        check(lib.deft_tuner_set_params(tuner, params))
    for name in request["workloads"]:
        check(lib.deft_tuner_add_workload(tuner, text_of("a workload's name", name)))
    for name, tree, is_held_out in request["trees"]:
        check(lib.deft_tuner_add_tree(tuner, Tree.from_json(tree), text_of("a tree's name", name) or None, is_held_out))
    summary = make(lib.deft_tuner_run, tuner, byref(listener.struct))
    try:
        _say(summary=_summary_of(summary))
    finally:
        lib.deft_free(summary)


def main() -> None:
    try:
        _run(json.load(sys.stdin))
    except Error as error:
        status = next(status for status, kind in KINDS.items() if isinstance(error, kind))
        _say(error=error.message, hint=error.hint, status=status)


if __name__ == "__main__":
    main()
