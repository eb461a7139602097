"""The process that tunes. It reads a request from standard input and writes lines of JSON to standard output. It has no other
threads and has not used CUDA, because it measures in forked child processes."""

from __future__ import annotations

import json
import os
import signal
import sys
from ctypes import POINTER, byref, cast
from dataclasses import asdict
from typing import Any

from . import _abi
from ._arguments import text_of, to_bytes
from ._attention import remake
from ._errors import KINDS, Error
from ._library import Handle, check, lib, make, read, sized, text
from ._params import freeze, make_params
from ._tree import Tree
from ._tune import TuneProgress
from ._tune_results import result_of

_DEVICES = {"any": _abi.DEFT_TUNE_ANY, "cpu": _abi.DEFT_TUNE_CPU, "gpu": _abi.DEFT_TUNE_GPU}


def _say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


class _Listener:
    """Writes the tuner's messages to standard output, and ends the tuner if the user or the parent process has gone."""

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
        _say(summary=asdict(result_of(summary)))
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
