"""Who computes on this machine's processors: one pool of threads for the process, made when it is first needed."""

from __future__ import annotations

from ctypes import byref

from . import _abi
from ._library import Handle, lib, make, sized

_runtime: Handle | None = None


def runtime() -> Handle:
    global _runtime
    if _runtime is None:
        _runtime = Handle(make(lib.deft_runtime_make, None), lib.deft_runtime_destroy)
    return _runtime


def set_threads(threads: int) -> None:
    """How many threads run plans on the CPU from now on; 0: one for each processor that this process may use."""
    global _runtime
    options = sized(_abi.deft_runtime_options, threads=threads)
    _runtime = Handle(make(lib.deft_runtime_make, byref(options)), lib.deft_runtime_destroy)


def get_threads() -> int:
    return lib.deft_runtime_threads(runtime())
