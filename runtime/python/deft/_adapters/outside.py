"""Errors for unsupported arguments of other libraries' calls."""

from __future__ import annotations

from typing import Any


def outside(argument: str, value: Any, why: str) -> NotImplementedError:
    return NotImplementedError(f"{argument}={value!r} is not supported here: {why}")


def refuse_given(why: str, **arguments: Any) -> None:
    """Raises an error if one of these arguments is given: no value of it is supported."""
    for name, value in arguments.items():
        if value is not None and value is not False:
            shown = type(value).__name__ if hasattr(value, "__len__") and not isinstance(value, str) else value
            raise outside(name, shown, why)
