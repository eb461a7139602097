"""jax's arrays. They come in by DLPack; as jax's never change, what a run writes is an array of its own."""

from __future__ import annotations

import sys
from typing import Any

from ._errors import UsageError


def is_jax(array: Any) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(array, jax.Array)


def check_is_computed(array: Any) -> None:
    """And wait for it: jax computes behind the caller's back on processors, too."""
    if isinstance(array, sys.modules["jax"].core.Tracer):
        raise UsageError("an array is traced by jax, a run takes what is computed", "call it outside jax.jit, or by jax.pure_callback")
    array.block_until_ready()


def make(array: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """A new array on the device of `array`, which the caller writes before anyone else has seen it."""
    jax = sys.modules["jax"]
    if array.device.platform != "cpu":
        # Nothing would tell jax to wait for a stream that is not its own.
        raise UsageError(
            f"q is jax's on {array.device}, a result of jax's is made on processors only",
            "share q with torch (torch.from_dlpack), or give out= of torch's",
        )
    # Memory of jax's: from_dlpack would copy another's that does not begin at a multiple of 64 bytes.
    return jax.numpy.empty(shape, dtype, device=array.device).block_until_ready()
