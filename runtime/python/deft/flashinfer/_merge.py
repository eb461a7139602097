"""FlashInfer's functions that merge attention over parts of the tokens. Each lse is to the base 2."""

from __future__ import annotations

import math

import torch

from .. import _operations
from .._adapters.outside import outside

_MOST = 16  # states of one merge
_LN_2 = math.log(2)


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Works like flashinfer.merge_state: [rows, heads, dim] and [rows, heads] of two parts become those of both."""
    return _merged([v_a, v_b], [s_a, s_b])


def merge_states(v: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Works like flashinfer.merge_states: [rows, states, heads, dim] and [rows, states, heads]."""
    return _merged(list(v.unbind(1)), list(s.unbind(1)))


def merge_state_in_place(
    v: torch.Tensor, s: torch.Tensor, v_other: torch.Tensor, s_other: torch.Tensor, mask: torch.Tensor | None = None
) -> None:
    """Works like flashinfer.merge_state_in_place. Rows for which `mask` is false stay as they are."""
    out, lse = _merged([v, v_other], [s, s_other])
    if mask is not None:
        rows = mask.to(device=v.device, dtype=torch.bool)
        out, lse = torch.where(rows[:, None, None], out, v), torch.where(rows[:, None], lse, s)
    v.copy_(out)
    s.copy_(lse)


def _merged(outs: list[torch.Tensor], lses: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    if not outs:
        raise ValueError("v has no states, there must be at least 1")
    if outs[0].dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise outside("v", outs[0].dtype, "states are float32, float16 or bfloat16")
    outs = [out.detach().contiguous() for out in outs]
    lses = [(lse.detach().float() * _LN_2).contiguous() for lse in lses]
    out, lse = outs[0], lses[0]
    # Sixteen at a time; what is merged so far is the first of the next ones.
    for first in range(1, max(len(outs), 2), _MOST - 1):
        part = slice(first, first + _MOST - 1)
        out, lse = _operations.merge_states([out, *outs[part]], [lse, *lses[part]])
    return out, lse.mul_(1 / _LN_2)
