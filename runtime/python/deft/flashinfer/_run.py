"""A run, with what FlashInfer's results have of their own."""

from __future__ import annotations

import math
from typing import Any

import torch

from .._doors.steps import Steps
from .._doors.variant import Scales, Variant
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
    score_scale: float = 1.0,
    v_scale: Any = None,
) -> Any:
    """out, or (out, lse); lse is the logarithm to the base 2. `score_scale` is a factor beside the variant's own scale: one
    attention serves every value of it, and one without serves runs that have none."""
    k, v = split_cache(cache, variant.kv_layout)
    scales = None
    if score_scale != 1 or variant.has_scales:
        variant, scales = variant.scaled, Scales(score_scale, 1.0)
        if isinstance(v_scale, (int, float)):
            scales, v_scale = scales._replace(v_scale=float(v_scale)), None
    if return_lse:
        if lse is None:
            lse = torch.empty(q.shape[:2], dtype=torch.float32, device=q.device)
        out, lse = steps.run(variant, q, k, v, out, lse, scales)
        lse.mul_(_LOG2_E)
    else:
        out = steps.run(variant, q, k, v, out, scales=scales)
    if v_scale is not None and not (isinstance(v_scale, (int, float)) and v_scale == 1):
        out.mul_(v_scale)
    return (out, lse) if return_lse else out
