"""The tokens of its request that each query sees."""

from __future__ import annotations

from typing import Any, Mapping

import torch

from .._attention import Attention
from .steps import PagedWork, TreeWork


def work_of(
    attention: Attention,
    pages: torch.Tensor,
    indptr: torch.Tensor | None,
    lengths: torch.Tensor,
    query_indptr: torch.Tensor,
    causal: bool,
    *,
    options: Mapping[str, Any] = {},
) -> PagedWork | TreeWork:
    """Makes the work of a step. Request i has the queries from query_indptr[i] on. If `causal`, they are its last tokens;
    otherwise each sees all tokens of the request. `options` are the plan's options, which affect the shared tokens. All tensors
    except `pages` are on the host."""
    counts = query_indptr.diff()
    if bool((counts == 1).all()) or (causal and bool((counts <= lengths).all())):
        return PagedWork(pages, indptr, lengths, query_indptr)
    # A batch asks for the last tokens of a request only. Who shares what is found with these; then all are asked.
    asked = counts.minimum(lengths) if causal else counts.clamp(max=1)
    starts = torch.zeros_like(query_indptr)
    torch.cumsum(asked, 0, out=starts[1:])
    found = PagedWork(pages, indptr, lengths, starts).make_batch(attention, options).tree
    tree = found.copy()
    own = found.queries
    nothing = tree.add_root(0, 0)
    queries: list[tuple[int, int | None]] = []
    for count, first, end in zip(counts.tolist(), starts.tolist(), starts.tolist()[1:]):
        if causal:
            queries += [(nothing, None)] * (count - (end - first))  # those before the first token
            queries += own[first:end]
        else:
            queries += own[first:end] * count
    tree.set_queries(queries)
    return TreeWork(pages, tree)
