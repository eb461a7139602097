"""Who is told what the library does that happens seldom and costs much; and ranges for profilers."""

from __future__ import annotations

from ctypes import POINTER, byref, cast
from dataclasses import dataclass
from typing import Any, Callable

from . import _abi
from ._arguments import kind_of
from ._errors import UsageError
from ._library import check, lib, sized


@dataclass(frozen=True)
class LogMessage:
    """Something that happened."""

    kind: str  # "compile", "cache hit", "cache miss", "plan" or "stale plan"
    text: str  # one line
    duration_us: float | None  # how long it took; None: it has no duration


_fields: Any = _abi.deft_log_listener._fields_
_Callback = dict(_fields)["message"]
_callback: Any = None  # the library's now, so it has to live


def set_log(function: Callable[[LogMessage], None] | None) -> None:
    """Tells `function` from now on of each compilation, hit and miss in the cache of kernels, plan and stale plan; None: nobody,
    as at the beginning. (deft.tune works in another process, and has its own way to tell.) It is called in whichever thread
    something happens, and must not call set_log. An exception that leaves it goes to sys.unraisablehook and no farther."""
    global _callback
    if function is None:
        check(lib.deft_set_log(None))
        _callback = None
        return

    if not callable(function):
        raise UsageError(f"the log is {kind_of(function)}, it must be a function of a LogMessage, or None")

    def told(_: Any, message: int) -> None:
        of = cast(message, POINTER(_abi.deft_log_message)).contents
        duration = of.duration_us if of.duration_us >= 0 else None
        function(LogMessage(of.kind_name.decode(), of.text.decode(errors="replace"), duration))

    callback = _Callback(told)
    check(lib.deft_set_log(byref(sized(_abi.deft_log_listener, message=callback))))
    _callback = callback


def set_nvtx(is_on: bool) -> bool:
    """Ranges (NVTX, domain "deft") around each plan, run and compilation from now on, or no more; DEFT_NVTX=1 in the environment
    has them from the beginning. False where the library was built without NVTX's headers, and has none."""
    return bool(lib.deft_set_nvtx(is_on))
