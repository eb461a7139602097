"""A run with results in FlashInfer's form."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch

from .._adapters.outside import outside
from .._adapters.steps import Steps
from .._adapters.variant import Scales, Variant, soft_cap_of, window_of
from ._arguments import check_position_encoding, split_cache


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
    sinks: torch.Tensor | None = None,
) -> Any:
    """Returns out, or (out, lse) if `return_lse` is set. A given lse is always written. It is the logarithm to the base 2."""
    k, v = split_cache(cache, variant.kv_layout)
    return run_scaled(steps, variant, q, k, v, out, lse, return_lse, score_scale, v_scale, sinks)


def run_scaled(
    steps: Steps,
    variant: Variant,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor | None,
    lse: torch.Tensor | None,
    return_lse: bool,
    score_scale: float,
    v_scale: Any,
    sinks: torch.Tensor | None = None,
    lse_base: float = 2,
) -> Any:
    """Runs with separate K and V. `score_scale` multiplies the variant's own scale. One attention with a scale parameter serves
    every value of it, and one without serves runs that have none. Sinks work the same way."""
    scales = None
    if sinks is not None:
        variant, sinks = variant.sinking, _sinks_of(sinks, variant, q)
    if score_scale != 1 or variant.has_scales:
        variant, scales = variant.scaled, Scales(score_scale, 1.0)
        if isinstance(v_scale, (int, float)):
            scales, v_scale = scales._replace(v_scale=float(v_scale)), None
    results = run_split(steps, variant, q, k, v, out, lse, return_lse, scales, lse_base, sinks)
    if v_scale is not None and not (isinstance(v_scale, (int, float)) and v_scale == 1):
        (results[0] if return_lse else results).mul_(v_scale)
    return results


def run_split(
    steps: Steps,
    variant: Variant,
    q: torch.Tensor,
    k: Any,
    v: Any,
    out: torch.Tensor | None,
    lse: torch.Tensor | None,
    return_lse: bool,
    scales: Scales | None,
    lse_base: float = 2,
    sinks: torch.Tensor | None = None,
) -> Any:
    """Runs with K and V in deft's form."""
    if not return_lse and lse is None:
        return steps.run(variant, q, k, v, out, scales=scales, sinks=sinks)
    if lse is None:
        lse = torch.empty(q.shape[:2], dtype=torch.float32, device=q.device)
    out, lse = steps.run(variant, q, k, v, out, lse, scales, sinks)
    if lse_base != math.e:
        lse.mul_(1 / math.log(lse_base))
    return (out, lse) if return_lse else out


def _sinks_of(sinks: torch.Tensor, variant: Variant, q: torch.Tensor) -> torch.Tensor:
    if tuple(sinks.shape) != (variant.query_heads,):
        raise ValueError(f"sinks is {list(sinks.shape)}, it must be [{variant.query_heads}], a logit of each query head")
    return sinks.detach().to(device=q.device, dtype=torch.float32).contiguous()


def sinks_and_scale(arguments: tuple[Any, ...], sinks: Any, sm_scale: float) -> tuple[torch.Tensor, float]:
    """Returns the sinks and the scale of a run. A wrapper with sinks receives both as additional arguments of FlashInfer's
    kernels; the scale defaults to the plan's."""
    if len(arguments) > 2:
        raise outside("args", arguments[2:], "a wrapper with sinks is given sinks and sm_scale")
    sinks = arguments[0] if arguments else sinks
    if sinks is None:
        raise ValueError("sinks are missing: a wrapper with sinks is given them with each run")
    return sinks, float(arguments[1]) if len(arguments) > 1 else sm_scale


def check_lse_words(lse_base: str, lse_layout: str) -> None:
    for name, word, words in (("lse_base", lse_base, ("log2", "ln")), ("lse_layout", lse_layout, ("NH", "HN"))):
        if word not in words:
            raise ValueError(f"{name} is {word!r}, it must be {words[0]!r} or {words[1]!r}")


def older_call_of(planned: Variant, pos_encoding_mode: str, window_left: int, logits_soft_cap: float | None) -> Variant:
    """Returns the variant of a wrapper's `forward`, which repeats plan's arguments."""
    check_position_encoding(pos_encoding_mode)
    if planned.has_sinks:
        raise RuntimeError("a wrapper with sinks is given them with each run: call run in place of forward")
    return dataclasses.replace(planned, window_left=window_of(window_left), soft_cap=soft_cap_of(logits_soft_cap))
