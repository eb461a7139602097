"""Who computes on this machine's processors: one pool of threads for the process, made when it is first needed."""

from __future__ import annotations

import os
from ctypes import byref

from . import _abi
from ._arguments import expect_whole
from ._library import Handle, lib, make, sized

_runtime: Handle | None = None
_threads = 0  # as set_threads has it


def _made() -> Handle:
    options = sized(_abi.deft_runtime_options, threads=_threads)
    return Handle(make(lib.deft_runtime_make, byref(options)), lib.deft_runtime_destroy)


def runtime() -> Handle:
    global _runtime
    if _runtime is None:
        _runtime = _made()
    return _runtime


def set_threads(threads: int) -> None:
    """How many threads run plans on the CPU from now on; 0: one for each processor that this process may use."""
    global _runtime, _threads
    before, _threads = _threads, expect_whole("threads", threads, least=0)
    try:
        _runtime = _made()
    except BaseException:
        _threads = before
        raise


def get_threads() -> int:
    return lib.deft_runtime_threads(runtime())


def _leave_to_parent() -> None:
    """A forked process has the pool's memory and none of its threads: who gave it back would wait for them for good. It is
    left as it is, and the next run makes another."""
    global _runtime
    if _runtime is not None:
        _runtime._as_parameter_ = None  # nobody's any more
        _runtime = None


os.register_at_fork(after_in_child=_leave_to_parent)
