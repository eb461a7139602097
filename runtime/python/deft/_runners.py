"""Plans and batches by number: what a graph of torch can hold of them."""

from __future__ import annotations

import itertools
import sys
import weakref
from typing import Any

from ._errors import UsageError

_runners: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_numbers = itertools.count(1)


def number_of(runner: Any) -> int:
    """A number that no other has in this process. It keeps nothing alive."""
    number = next(_numbers)
    _runners[number] = runner
    if "torch" in sys.modules:  # before torch.compile sees the runner: while it looks, nothing can be registered
        from . import torch_ops  # noqa: F401
    return number


def runner_of(number: int) -> Any:
    runner = _runners.get(number)
    if runner is None:
        raise UsageError(f"there is no plan or batch {number}", "it is gone, or was made in another process")
    return runner


def is_traced() -> bool:
    """Whether torch.compile or torch.export looks at this call instead of running it."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_compiling()
