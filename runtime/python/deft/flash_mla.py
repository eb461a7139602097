"""FlashMLA's functions, with the same arguments. They find shared pages by themselves.

    from deft.flash_mla import flash_mla_with_kvcache, get_mla_metadata  # in place of: from flash_mla import ...

Tensors are torch's, on a GPU or on the CPU. An unsupported argument raises a NotImplementedError that names it.
"""

from __future__ import annotations

from typing import Any

import torch

from ._adapters.dtypes import SPEC_DTYPES
from ._adapters.latent import BYTES, SCALE_COLUMNS, as_bytes, token_bytes
from ._adapters.outside import outside, refuse_given
from ._adapters.queries import work_of
from ._adapters.steps import PagedWork, Steps
from ._adapters.variant import Variant, attention_of, make_latent_variant
from ._attention import Plan
from ._tree import Tree

__all__ = ["FlashMLASchedMeta", "flash_mla_with_kvcache", "get_mla_metadata"]


class FlashMLASchedMeta:
    """The plan of a step, made with the first call that is given this, for all layers of the step."""

    def __init__(self, list_overlap: float = 0) -> None:
        self._list_overlap = list_overlap
        self._steps: Steps | None = None
        self._planned: Any = None  # what it was made of
        self._kept: Any = None  # of the tensors that it was made of, so that nobody else's lie there
        self._lists: tuple[Any, Plan] | None = None  # of runs over lists: what it serves, and the plan

    def _plan(
        self, table: torch.Tensor, lengths: torch.Tensor, variant: Variant, each: int, causal: bool, device: torch.device
    ) -> Steps:
        asked = (variant, each, causal, device, *map(_state_of, (table, lengths)))
        if self._steps is not None and asked == self._planned:
            return self._steps
        if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
            raise RuntimeError("a plan waits for block_table and cache_seqlens, and cannot be captured: call it before once")
        requests, columns = table.shape
        pages = table.to(device, torch.int32).reshape(-1)
        on_host = pages.cpu()
        indptr = torch.arange(requests + 1, dtype=torch.int32)
        host_lengths = lengths.to("cpu", torch.int32).contiguous()
        work = work_of(attention_of(variant), on_host, indptr * columns, host_lengths, indptr * each, causal)
        if isinstance(work, PagedWork):
            work = work._replace(pages=pages, host_pages=on_host)
        else:
            work = work._replace(pages=pages)
        steps = self._steps
        if steps is None or self._planned[3] != device:
            steps = Steps(device)
        steps.plan(work, variant)
        self._steps, self._planned, self._kept = steps, asked, (table, lengths)
        return steps

    def _plan_of_lists(self, variant: Variant, batch: int, each: int, device: torch.device) -> Plan:
        """Where tokens are comes with each run, so it serves every step of as many requests and queries."""
        asked = (variant, batch, each, device)
        if self._lists is None or self._lists[0] != asked:
            tree = Tree()
            for request in range(batch):  # on whose tokens its queries agree
                root = tree.add_root(1, location=request)
                for _ in range(each):
                    tree.add_query(root)
            of_device: Any = "cpu"
            if device.type == "cuda":
                if torch.cuda.is_current_stream_capturing():
                    raise RuntimeError("a plan is made with the first call, which cannot be captured: call it before once")
                of_device = torch.cuda.current_device() if device.index is None else device.index
            plan = attention_of(variant).plan(tree, device=of_device, budget=variant.topk, list_overlap=self._list_overlap)
            self._lists = (asked, plan)
        return self._lists[1]


def get_mla_metadata(*args: Any, list_overlap: float = 0, **kwargs: Any) -> tuple[FlashMLASchedMeta, None]:
    """To be called once a step. `list_overlap`, which FlashMLA does not have: which part of a list of `indices` other queries of the
    same request list as well, as a guess; up to 32 heads, they may then read unions. Other arguments, which older releases have,
    say nothing here."""
    return FlashMLASchedMeta(list_overlap), None


def flash_mla_with_kvcache(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    block_table: torch.Tensor | None,
    cache_seqlens: torch.Tensor | None,
    head_dim_v: int,
    tile_scheduler_metadata: FlashMLASchedMeta,
    num_splits: None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    is_fp8_kvcache: bool = False,
    indices: torch.Tensor | None = None,
    attn_sink: torch.Tensor | None = None,
    extra_k_cache: torch.Tensor | None = None,
    extra_indices_in_kvcache: torch.Tensor | None = None,
    topk_length: torch.Tensor | None = None,
    extra_topk_length: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(out, lse) of q [batch, queries, heads, dim] over k_cache [blocks, page size, 1, dim]: out is [batch, queries, heads,
    head_dim_v], and lse, the natural logarithm, [batch, heads, queries]; -inf where a query sees nothing. Queries are those
    of the last tokens of `cache_seqlens`, where `causal`; else each sees all tokens. With `is_fp8_kvcache` a token of k_cache
    is 656 bytes, of any 8-bit type: 512 e4m3, four float32 scales of 128 each, and 64 bfloat16. The first call with a
    `tile_scheduler_metadata` plans the step, and waits for what it reads of a GPU; the others follow it.

    With `indices`, int32 [batch, queries, topk], a query sees the tokens of its list: block * page size + the place in the block,
    in any order, counted each time it occurs; -1 is none. With `topk_length`, int32 [batch], only so many
    from the left count. block_table and cache_seqlens are not read then.

    With `attn_sink`, float32 [heads], the output is multiplied by exp(lse) / (exp(lse) + exp(attn_sink)). -inf is no sink, +inf gives
    0, and the lse stays."""
    refuse_given("a second cache is not read", extra_k_cache=extra_k_cache, extra_indices_in_kvcache=extra_indices_in_kvcache)
    refuse_given("a second cache is not read", extra_topk_length=extra_topk_length)
    if not isinstance(tile_scheduler_metadata, FlashMLASchedMeta):
        kind = type(tile_scheduler_metadata).__name__
        raise TypeError(f"tile_scheduler_metadata is a {kind}, it must be of get_mla_metadata of deft.flash_mla")
    if num_splits is not None:
        raise ValueError("num_splits must be None, as get_mla_metadata gives it")
    given: tuple[tuple[str, torch.Tensor, int], ...] = (("q", q, 4), ("k_cache", k_cache, 4))
    if indices is not None:
        given += (("indices", indices, 3),)
    elif block_table is None or cache_seqlens is None:
        raise ValueError("block_table and cache_seqlens must be given: they say where the tokens are")
    else:
        given += (("block_table", block_table, 2), ("cache_seqlens", cache_seqlens, 1))
    for name, tensor, dimensions in given:
        if tensor.ndim != dimensions:
            raise ValueError(f"{name} has {tensor.ndim} dimensions, it must have {dimensions}")
    batch, each, heads, dim = q.shape
    if not 0 < head_dim_v < dim:
        raise ValueError(f"head_dim_v is {head_dim_v}, it must be less than the {dim} of q")
    width = token_bytes(head_dim_v, dim - head_dim_v) if is_fp8_kvcache else dim
    if is_fp8_kvcache and k_cache.shape[3] == 584:
        raise outside("k_cache", list(k_cache.shape), "tokens of 584 bytes are not read, those of 656 are")
    if k_cache.shape[2:] != (1, width):
        raise ValueError(f"k_cache is {list(k_cache.shape)}, it must be [blocks, page size, 1, {width}]")
    if indices is not None:
        indices = _lists_of(indices, topk_length, batch, each, causal)
    elif topk_length is not None:
        raise ValueError("topk_length is given, and there are no indices")
    elif len(block_table) != batch or len(cache_seqlens) != batch:
        had = f"block_table has {len(block_table)} rows and cache_seqlens {len(cache_seqlens)}"
        raise ValueError(f"{had}, q is of {batch} requests")
    if attn_sink is not None and (attn_sink.shape != (heads,) or attn_sink.dtype != torch.float32):
        raise ValueError(f"attn_sink is {attn_sink.dtype} {list(attn_sink.shape)}, it must be torch.float32 [{heads}]")
    dtype = SPEC_DTYPES.get(q.dtype)
    if dtype is None:
        raise outside("q.dtype", q.dtype, "q and the cache are float16 or bfloat16")
    if is_fp8_kvcache:
        if dtype != "bf16":
            raise outside("q.dtype", q.dtype, "with a cache of bytes, whose rotated elements are bfloat16, q is bfloat16")
        if k_cache.dtype not in (*BYTES, torch.float8_e4m3fn):
            raise ValueError(f"k_cache is {k_cache.dtype}, it must be of 8 bits where is_fp8_kvcache is set")
        k_cache = as_bytes(k_cache)
    elif k_cache.dtype != q.dtype:
        raise ValueError(f"k_cache is {k_cache.dtype}, and q {q.dtype}")
    variant = make_latent_variant(
        query_heads=heads,
        latent_dim=head_dim_v,
        rope_dim=dim - head_dim_v,
        page_size=k_cache.shape[1],
        dtype=dtype,
        output_dtype=dtype,
        sm_scale=float(dim**-0.5 if softmax_scale is None else softmax_scale),
        topk=0 if indices is None else indices.shape[1],
        cache_dtype="fp8_e4m3" if is_fp8_kvcache else "",
        scale_columns=SCALE_COLUMNS if is_fp8_kvcache else 0,
    )
    rows = q.reshape(batch * each, heads, dim)
    if indices is not None:
        out, lse = _run_lists(tile_scheduler_metadata, variant, each, rows, k_cache, indices)
    else:
        steps = tile_scheduler_metadata._plan(block_table, cache_seqlens, variant, each, causal, q.device)
        lse = torch.empty(rows.shape[:2], dtype=torch.float32, device=q.device)
        out, lse = steps.run(variant, rows, k_cache, None, None, lse)
    if attn_sink is not None:
        # A sink of the spec (rule N4) would be in the lse as well, from which a large one could not be taken out again.
        above = (lse - attn_sink).nan_to_num(nan=0.0)  # -inf - -inf of a row that sees nothing, whose output is 0
        out.mul_(above.sigmoid()[..., None])
    return out.view(batch, each, heads, head_dim_v), lse.view(batch, each, heads).transpose(1, 2)


def _lists_of(
    indices: torch.Tensor, topk_length: torch.Tensor | None, batch: int, each: int, causal: bool
) -> torch.Tensor:
    """[queries, topk], as a run takes them."""
    if causal:
        raise ValueError("causal must be False if indices are given: they decide what a query sees")
    topk = indices.shape[2]
    if indices.shape[:2] != (batch, each) or topk == 0:
        raise ValueError(f"indices is {list(indices.shape)}, it must be [{batch}, {each}, topk]")
    if indices.dtype != torch.int32:
        raise ValueError(f"indices is {indices.dtype}, it must be torch.int32")
    if topk_length is not None:
        if topk_length.shape != (batch,):
            raise ValueError(f"topk_length is {list(topk_length.shape)}, it must be [{batch}]")
        columns = torch.arange(topk, dtype=torch.int32, device=indices.device)
        indices = torch.where(columns < topk_length.to(indices.device)[:, None, None], indices, -1)
    return indices.reshape(batch * each, topk).contiguous()


def _run_lists(
    metadata: FlashMLASchedMeta, variant: Variant, each: int, q: torch.Tensor, cache: torch.Tensor, lists: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    plan = metadata._plan_of_lists(variant, len(q) // each, each, q.device)
    return plan.run_sparse(lists, q, cache, return_lse=True)


def _state_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    """By which a tensor is known again, and torch's writes to it."""
    version = None if tensor.is_inference() else tensor._version
    return (tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), version)
