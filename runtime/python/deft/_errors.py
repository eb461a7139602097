"""Errors as exceptions whose text is the diagnostic."""

from __future__ import annotations

from . import _abi


class Error(Exception):
    """An error of deft. Its text is for people: the `message`, for a wrong spec with each
    place and a caret under it, and a `hint` if there is one. `field` names the wrong argument, if there is one.

    >>> import deft
    >>> try:
    ...     deft.compile("attention a { query_heads = 4; kv_heads = 3; head_dim = 64; }")
    ... except deft.Error as error:
    ...     print(type(error).__name__, "^" in str(error))
    DiagnosticError True
    """

    def __init__(self, message: str, hint: str = "", field: str = "") -> None:
        super().__init__(f"{message}\n  = hint: {hint}" if hint else message)
        self.message, self.hint, self.field = message, hint, field


class DiagnosticError(Error, ValueError):
    """The input is wrong: a spec, a tree, a package, a Python function that no spec can express."""


class UsageError(Error, ValueError):
    """The call is wrong: a tensor of another type, shape, stride or device, an unknown parameter, a plan of an older
    tree."""


class MachineError(Error, RuntimeError):
    """The machine or the build lacks something: a GPU, NVRTC, memory, the compiler."""


class InternalError(Error, RuntimeError):
    """A bug of deft."""


KINDS: dict[int, type[Error]] = {
    _abi.DEFT_DIAGNOSTICS: DiagnosticError,
    _abi.DEFT_USAGE: UsageError,
    _abi.DEFT_ENVIRONMENT: MachineError,
    _abi.DEFT_INTERNAL: InternalError,
}


def wrong(field: str, detail: str, hint: str = "") -> UsageError:
    """Of an argument: what is wrong with it follows its name."""
    return UsageError(f"{field} {detail}", hint, field)
