"""Objects that exist once in a process: the thread pool for processors, the log, the numbers by which torch's graphs refer to
plans. Also the report on this machine, and the console script `deftc`."""

from __future__ import annotations

import itertools
import json
import os
import sys
import weakref
from ctypes import POINTER, byref, cast
from dataclasses import dataclass
from typing import Any, Callable

from . import _abi
from ._arguments import expect_whole, kind_of
from ._errors import UsageError
from ._library import FOLDER, Handle, check, lib, make, sized, take_text, text

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
    """Sets how many threads run plans on the CPU; 0: one for each processor that this process may use."""
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
    """Drops the thread pool in a forked process. The child has the pool's memory but none of its threads, so freeing the pool
    would wait for them forever. The next run makes another pool."""
    global _runtime
    if _runtime is not None:
        _runtime._as_parameter_ = None  # nobody's any more
        _runtime = None


os.register_at_fork(after_in_child=_leave_to_parent)


@dataclass(frozen=True)
class LogMessage:
    """One event of the log."""

    kind: str  # "compile", "cache hit", "cache miss", "plan", "stale plan" or "capture"
    text: str  # one line
    duration_us: float | None  # how long it took; None: it has no duration


_callback: Any = None  # the library's now, so it has to live


def set_log(function: Callable[[LogMessage], None] | None) -> None:
    """Calls `function` for each compilation, hit and miss in the cache of kernels, plan, stale plan and captured step. None
    ends the calls. (deft.tune runs in another process and has its own arguments for this.) The call comes in the thread of the
    event and must not call set_log. An exception in it goes to sys.unraisablehook."""
    global _callback
    if function is None:
        check(lib.deft_set_log(None))
        _callback = None
        return

    if not callable(function):
        raise UsageError(f"the log is {kind_of(function)}, it must be a function of a LogMessage, or None")

    def told(_: Any, message: int) -> None:
        of = cast(message, POINTER(_abi.deft_log_message)).contents
        function(LogMessage(text(of.kind_name), text(of.text), of.duration_us if of.duration_us >= 0 else None))

    callback = dict(_abi.deft_log_listener._fields_)["message"](told)
    check(lib.deft_set_log(byref(sized(_abi.deft_log_listener, message=callback))))
    _callback = callback


def set_nvtx(is_on: bool) -> bool:
    """Turns NVTX ranges (domain "deft") around each plan, run and compilation on or off. DEFT_NVTX=1 in the environment turns
    them on at the start. Returns False if the library was built without NVTX's headers."""
    return bool(lib.deft_set_nvtx(is_on))


_runners: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_numbers = itertools.count(1)


def number_of(runner: Any) -> int:
    """Returns a number for a plan or a batch that no other has in this process. The number keeps nothing alive."""
    number = next(_numbers)
    _runners[number] = runner
    return number


def runner_of(number: int) -> Any:
    runner = _runners.get(number)
    if runner is None:
        raise UsageError(f"there is no plan or batch {number}", "it is gone, or was made in another process")
    return runner


class Doctor(dict[str, Any]):
    """A report on this machine: `usable`, and a finding each for compiler, cpu, gpu, nvrtc and cache, with `ok`, `text` and,
    for a missing part, `mend`. As text it lists the findings as `deftc doctor` does."""

    def __repr__(self) -> str:
        lines = [f"deftc {self['deftc']}"]
        for name in ("compiler", "cpu", "gpu", "nvrtc", "cache"):
            finding = self[name]
            lines.append(f"  {'ok' if finding['ok'] else '--'}  {name:10}{finding['text']}")
            if "mend" in finding:
                lines.append(f"                = hint: {finding['mend']}")
        return "\n".join(lines)

    __str__ = __repr__


def doctor() -> Doctor:
    """Reports the abilities of this machine, and how to fix missing parts.

    >>> import deft
    >>> deft.doctor()["cpu"]["ok"]
    True
    """
    return Doctor(json.loads(take_text(lib.deft_doctor)))


def support() -> dict[str, Any]:
    """Returns the support table, as `deftc doctor --support --json` prints it: `attention` (features by processor and GPU
    architecture), `interfaces` (functions by language) and `engines` (plug-ins by feature).

    >>> import deft
    >>> [row["cpu"]["ok"] for row in deft.support()["attention"] if row["feature"] == "latent"]
    [True]
    """
    table: dict[str, Any] = json.loads(take_text(lib.deft_support))
    return table


def run_deftc() -> None:
    """Replaces this process by the wheel's `deftc` program."""
    program = str(FOLDER / "bin" / "deftc")
    try:
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"cannot run {program}: {error.strerror}")
