"""FlashInfer's custom masks. Only draft trees are supported: each query sees the whole context, and of the last q_len tokens it
sees itself and its ancestors. Masks are read in place without waiting for them. A row that hides part of the context is turned
into an invalid row; the plan's kernel detects it, and the host reports it later."""

from __future__ import annotations

from itertools import accumulate

import torch

from .._adapters.draft_masks import MOST_DRAFTS, Bits, Drafts, Rows, no_tree, numbers, rows_of, words_of
from ._arguments import first_of



def drafts_of(
    mask: torch.Tensor | None,
    packed: torch.Tensor | None,
    counts: torch.Tensor,
    lengths: torch.Tensor,
    device: torch.device,
    has_padding: bool = False,
) -> Drafts:
    """Reads the drafts of a mask. `packed` has priority if given, as in FlashInfer. `counts`: queries of each request.
    `lengths`: tokens of each request. Both are on the host. `has_padding`: an engine has padding requests at the end, to which
    the mask shows all tokens; they become chains, because nobody reads their results."""
    own, tokens = counts.tolist(), lengths.tolist()
    for request, (queries, length) in enumerate(zip(own, tokens)):
        if queries > MOST_DRAFTS:
            raise no_tree(f"request {request} has {queries} queries, with a mask at most {MOST_DRAFTS}")
        if queries > length:
            raise no_tree(f"request {request} has {queries} queries and {length} tokens")
    name, given = ("custom_mask", mask) if packed is None else ("packed_custom_mask", packed)
    assert given is not None
    if packed is not None and packed.dtype != torch.uint8:
        raise ValueError(f"packed_custom_mask is {packed.dtype}, it must be torch.uint8")
    unit = 1 if packed is None else 8  # elements that stand in one of the tensor's
    ends = [*accumulate((-(-queries * length // unit) for queries, length in zip(own, tokens)), initial=0)]
    if given.numel() < ends[-1]:
        what = "elements" if packed is None else "bytes, in which each request begins with one,"
        raise ValueError(f"{name} has {given.numel()} {what} and {ends[-1]} are needed")
    flat = given.to(device, non_blocking=True).reshape(-1)[: ends[-1]]
    seen = Bits(flat, packed is not None)
    rows = rows_of([end * unit for end in ends[:-1]], own, tokens, device)
    shows_context = seen.all_between(rows.begin, rows.end)
    if not flat.is_cuda:
        _check_context(seen, rows, shows_context)
    bits = words_of(seen, rows, has_padding) * shows_context[..., None]
    depths = numbers(rows.begin.shape[1], torch.int32, device).expand_as(rows.begin).contiguous()
    return Drafts(counts.int(), (lengths - counts).int(), bits, depths)


def _check_context(seen: Bits, rows: Rows, shows_context: torch.Tensor) -> None:
    hidden = (~shows_context).nonzero()
    if not len(hidden):
        return
    request, query = hidden[0].tolist()
    token = first_of(~seen.at(torch.arange(int(rows.begin[request, query]), int(rows.end[request, query]))))
    raise no_tree(f"query {query} of request {request} does not see token {token}")
