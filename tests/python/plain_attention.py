"""Attention written to be read, in double precision, for tests of the doors of other libraries and engines."""

import math

import torch


def pages_of(cache, indices, length, layout):
    """The tokens of a request, [length, heads, dim]."""
    tokens = cache[indices.long()]
    if layout == "HND":
        tokens = tokens.transpose(1, 2)
    return tokens.reshape(-1, *tokens.shape[2:])[:length]


def plain(q, k, v, seen, *, scale=None, soft_cap=0.0, window_left=-1):
    """Row i of q sees the first seen[i] tokens of k and v, those before its window left out. (out, lse to the base 2)"""
    heads = q.shape[1]
    k = k.double().repeat_interleave(heads // k.shape[1], 1)
    v = v.double().repeat_interleave(heads // v.shape[1], 1)
    scores = torch.einsum("qhd,khd->qhk", q.double(), k) * (q.shape[2] ** -0.5 if scale is None else scale)
    if soft_cap > 0:
        scores = soft_cap * torch.tanh(scores / soft_cap)
    seen = torch.tensor(seen)[:, None, None]
    position = torch.arange(k.shape[0])[None, None, :]
    hidden = position >= seen
    if window_left >= 0:
        hidden = hidden | (position < seen - 1 - window_left)
    lse = torch.logsumexp(scores.masked_fill(hidden, -math.inf), -1)
    weights = torch.exp(scores.masked_fill(hidden, -math.inf) - lse.masked_fill(lse.isinf(), 0)[..., None])
    return torch.einsum("qhk,khd->qhd", weights, v), lse * math.log2(math.e)


def assert_close(out, right, lse=None, right_lse=None):
    """To what 16 bits hold of the result, with sums in single precision."""
    step = {torch.float16: 2**-10, torch.bfloat16: 2**-7}[out.dtype]
    assert torch.isfinite(out).all()
    error = (out.double() - right).abs() - step * right.abs()
    assert error.max() < 2e-3 if out.dtype == torch.float16 else error.max() < 1e-2
    if lse is not None:
        both_blind = lse.isinf() & right_lse.isinf()
        assert ((lse.double() - right_lse).abs().masked_fill(both_blind, 0) < 2e-3).all()
