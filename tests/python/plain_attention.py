"""Attention written to be read, in double precision, for tests of the wrappers and plug-ins of other libraries."""

import math

import torch


def pages_of(cache, indices, length, layout):
    """The tokens of a request, [length, heads, dim]."""
    tokens = cache[indices.long()]
    if layout == "HND":
        tokens = tokens.transpose(1, 2)
    return tokens.reshape(-1, *tokens.shape[2:])[:length]


def plain(q, k, v, seen, *, window_left=-1, **more):
    """Row i of q sees the first seen[i] tokens of k and v, those before its window left out. (out, lse to the base 2)"""
    seen = torch.tensor(seen)[:, None]
    position = torch.arange(k.shape[0])[None, :]
    shown = position < seen
    if window_left >= 0:
        shown = shown & (position >= seen - 1 - window_left)
    return plain_shown(q, k, v, shown, **more)


def plain_shown(q, k, v, shown, *, scale=None, soft_cap=0.0, sinks=None):
    """Row i of q sees the tokens of shown[i]. `sinks`: a logit of each head, which only the denominator and the lse see."""
    heads = q.shape[1]
    k = k.double().repeat_interleave(heads // k.shape[1], 1)
    v = v.double().repeat_interleave(heads // v.shape[1], 1)
    scores = torch.einsum("qhd,khd->qhk", q.double(), k) * (q.shape[2] ** -0.5 if scale is None else scale)
    if soft_cap > 0:
        scores = soft_cap * torch.tanh(scores / soft_cap)
    scores = scores.masked_fill(~shown[:, None, :], -math.inf)
    lse = torch.logsumexp(scores, -1)
    if sinks is not None:
        lse = torch.logaddexp(lse, sinks.double().expand_as(lse))
    weights = torch.exp(scores - lse.masked_fill(lse.isinf(), 0)[..., None])
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


def packed(cache):
    """As FlashMLA packs tokens: 512 e4m3, four scales, 64 bfloat16. Gives these, and what they mean."""
    groups = cache[..., :512].float().unflatten(-1, (4, 128))
    scales = groups.abs().amax(-1, keepdim=True) / 448
    numbers = (groups / scales).to(torch.float8_e4m3fn)
    parts = (numbers.flatten(-2), scales.squeeze(-1), cache[..., 512:].contiguous())
    meant = (numbers.float() * scales).to(torch.bfloat16).flatten(-2)
    return torch.cat([part.view(torch.uint8) for part in parts], -1), torch.cat([meant, cache[..., 512:]], -1)
