"""A run, with what FlashInfer's results have of their own."""

from __future__ import annotations

import math
from typing import Any

import torch

from .._doors.steps import Steps
from .._doors.variant import Variant
from ._arguments import split_cache

_LOG2_E = math.log2(math.e)


def run(
    steps: Steps,
    variant: Variant,
    q: torch.Tensor,
    cache: Any,
    out: torch.Tensor | None = None,
    lse: torch.Tensor | None = None,
    return_lse: bool = False,
    v_scale: Any = None,
) -> Any:
    """out, or (out, lse); lse is the logarithm to the base 2."""
    k, v = split_cache(cache, variant.kv_layout)
    if return_lse:
        if lse is None:
            lse = torch.empty(q.shape[:2], dtype=torch.float32, device=q.device)
        out, lse = steps.run(variant, q, k, v, out, lse)
        lse.mul_(_LOG2_E)
    else:
        out = steps.run(variant, q, k, v, out)
    if v_scale is not None and not (isinstance(v_scale, (int, float)) and v_scale == 1):
        out.mul_(v_scale)
    return (out, lse) if return_lse else out
