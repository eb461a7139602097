"""FlashInfer's wrapper for latent attention over a paged cache."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import torch

from .._adapters.dtypes import CACHE_DTYPES
from .._adapters.latent import BYTES, SCALE_COLUMNS, as_bytes, cache_of, query_of, token_bytes
from .._adapters.outside import outside, refuse_given
from .._adapters.queries import work_of
from .._adapters.steps import PagedWork, Room, Steps, TreeWork
from .._adapters.variant import Scales, Variant, attention_of, make_latent_variant
from ._arguments import as_int32, cache_word, check_backend, check_workspace, dtype_word, host_ints, one_dtype_word
from ._run import run_split

_REQUIRED = ("num_heads", "head_dim_ckv", "head_dim_kpe", "page_size", "causal", "sm_scale", "q_data_type", "kv_data_type")


class _Requests(NamedTuple):
    """The requests of a step, as rows of pages."""

    qo_indptr: torch.Tensor
    kv_indptr: torch.Tensor
    kv_indices: torch.Tensor
    kv_len_arr: torch.Tensor


@dataclasses.dataclass(frozen=True)
class MLAPlanMetadata:
    """Like flashinfer.mla.MLAPlanMetadata: the requests of a step as rows of pages, as a table, or both. Then the rows count."""

    qo_indptr: torch.Tensor | None = None
    kv_indptr: torch.Tensor | None = None
    kv_indices: torch.Tensor | None = None
    kv_len_arr: torch.Tensor | None = None
    cum_seq_lens_q: torch.Tensor | None = None
    block_tables: torch.Tensor | None = None
    seq_lens: torch.Tensor | None = None
    max_q_len: int | None = None

    @classmethod
    def csr(
        cls, qo_indptr: torch.Tensor, kv_indptr: torch.Tensor, kv_indices: torch.Tensor, kv_len_arr: torch.Tensor
    ) -> MLAPlanMetadata:
        return cls(qo_indptr, kv_indptr, kv_indices, kv_len_arr)

    @classmethod
    def dense(
        cls, cum_seq_lens_q: torch.Tensor, block_tables: torch.Tensor, seq_lens: torch.Tensor, max_q_len: int | None = None
    ) -> MLAPlanMetadata:
        return cls(cum_seq_lens_q=cum_seq_lens_q, block_tables=block_tables, seq_lens=seq_lens, max_q_len=max_q_len)

    @classmethod
    def dual(
        cls,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_len_arr: torch.Tensor,
        *,
        cum_seq_lens_q: torch.Tensor,
        block_tables: torch.Tensor,
        seq_lens: torch.Tensor,
        max_q_len: int | None = None,
    ) -> MLAPlanMetadata:
        return cls(qo_indptr, kv_indptr, kv_indices, kv_len_arr, cum_seq_lens_q, block_tables, seq_lens, max_q_len)


class BatchMLAPagedAttentionWrapper:
    """Works like flashinfer.mla.BatchMLAPagedAttentionWrapper, but reads pages that requests share once.

    Only the workspace's device matters. FlashInfer prepares for the layouts of `plan` and its `lse_mode`; deft ignores them. A
    run takes either layout, and its own arguments choose the lse. `kv_data_type` may be an 8-bit float type. With torch.uint8,
    `kv_cache` has rows of 656 bytes, one for each token, as in DeepSeek V3.2's engines."""

    def __init__(
        self,
        float_workspace_buffer: torch.Tensor,
        use_cuda_graph: bool = False,
        qo_indptr: torch.Tensor | None = None,
        kv_indptr: torch.Tensor | None = None,
        kv_indices: torch.Tensor | None = None,
        kv_len_arr: torch.Tensor | None = None,
        backend: str = "auto",
    ) -> None:
        check_backend(backend)
        check_workspace("float_workspace_buffer", float_workspace_buffer)
        self.device = float_workspace_buffer.device
        self._use_cuda_graph = use_cuda_graph
        self._pages: torch.Tensor | None = None  # where graphs read them
        self._batch_size = 0  # of graphs
        if use_cuda_graph:
            buffers = {"qo_indptr": qo_indptr, "kv_indptr": kv_indptr, "kv_indices": kv_indices, "kv_len_arr": kv_len_arr}
            for name, buffer in buffers.items():
                if not isinstance(buffer, torch.Tensor):
                    raise ValueError(f"{name} must be a tensor where use_cuda_graph is set")
            assert kv_indices is not None and kv_len_arr is not None
            self._pages, self._batch_size = kv_indices, len(kv_len_arr)
        self._steps = Steps(self.device)
        self._variant: Variant | None = None
        self._sm_scale = 0.0  # of the plan; the attention may be of another one, which runs make up for
        self._queries = 0
        self._most_queries = 0  # of a captured graph
        self._kind: type | None = None  # of its work

    def plan(
        self,
        qo_indptr: torch.Tensor | None = None,
        kv_indptr: torch.Tensor | None = None,
        kv_indices: torch.Tensor | None = None,
        kv_len_arr: torch.Tensor | None = None,
        num_heads: int | None = None,
        head_dim_ckv: int | None = None,
        head_dim_kpe: int | None = None,
        page_size: int | None = None,
        causal: bool | None = None,
        sm_scale: float | None = None,
        q_data_type: Any = None,
        kv_data_type: Any = None,
        use_profiler: bool = False,
        *,
        metadata: Any = None,
        cum_seq_lens_q: torch.Tensor | None = None,
        block_tables: torch.Tensor | None = None,
        seq_lens: torch.Tensor | None = None,
        max_q_len: int | None = None,
        query_layout: str | None = None,
        kv_cache_layout: str | None = None,
        lse_mode: str = "none",
        output_dtype: Any = None,
        output_scale: str = "none",
        scale_mode: str = "default",
        skip_softmax: bool = False,
        enable_pdl: bool | None = None,
        use_sinks: bool = False,
    ) -> None:
        """Plans the requests of the step. Give them by `qo_indptr` to `kv_len_arr`, by `cum_seq_lens_q` to `seq_lens`, or by an
        MLAPlanMetadata, ours or FlashInfer's. Like FlashInfer's plan, it waits for arguments on a GPU and cannot be captured. If it
        raises an error, runs and replays still use the step before."""
        given = {
            "num_heads": num_heads,
            "head_dim_ckv": head_dim_ckv,
            "head_dim_kpe": head_dim_kpe,
            "page_size": page_size,
            "causal": causal,
            "sm_scale": sm_scale,
            "q_data_type": q_data_type,
            "kv_data_type": kv_data_type,
        }
        missing = [name for name in _REQUIRED if given[name] is None]
        if missing:
            raise TypeError(f"plan() missing required arguments: {', '.join(missing)}")
        assert num_heads is not None and head_dim_ckv is not None and head_dim_kpe is not None
        assert page_size is not None and sm_scale is not None
        refuse_given("look at the kernels with a profiler of the GPU", use_profiler=use_profiler)
        refuse_given("no token is left out", skip_softmax=skip_softmax)
        refuse_given("it is not passed on to the spec", use_sinks=use_sinks)
        for name, mode, only in (("output_scale", output_scale, "none"), ("scale_mode", scale_mode, "default")):
            if mode != only:
                raise outside(name, mode, "scales are numbers that a run is given, or lie in the cache")
        has_rows = kv_data_type in (torch.uint8, "uint8")
        dtype = dtype_word("q_data_type", q_data_type) if has_rows else one_dtype_word(q_data_type, kv_data_type)
        if has_rows and dtype != "bf16":
            raise outside("q_data_type", q_data_type, "with a cache of bytes, whose rotated elements are bfloat16, q is bfloat16")
        if cache_word(kv_data_type) and not has_rows and dtype != "bf16":
            raise ValueError(f"q_data_type is {q_data_type}; a cache of 8 bits goes with q_data_type=torch.bfloat16")
        variant = make_latent_variant(
            query_heads=num_heads,
            latent_dim=head_dim_ckv,
            rope_dim=head_dim_kpe,
            page_size=page_size,
            dtype=dtype,
            output_dtype=dtype if output_dtype is None else dtype_word("output_dtype", output_dtype),
            sm_scale=float(sm_scale),
            cache_dtype="fp8_e4m3" if has_rows else cache_word(kv_data_type),
            scale_columns=SCALE_COLUMNS if has_rows else 0,
        )
        csr, dense = (qo_indptr, kv_indptr, kv_indices, kv_len_arr), (cum_seq_lens_q, block_tables, seq_lens)
        requests = _requests_of(metadata, csr, dense)
        self._plan(variant, requests, bool(causal))

    def _plan(self, variant: Variant, requests: _Requests, causal: bool) -> None:
        names = ("qo_indptr", "kv_indptr", "kv_len_arr")
        queries, indptr, lengths = (host_ints(name, getattr(requests, name)) for name in names)
        for name, offsets in (("qo_indptr", queries), ("kv_indptr", indptr)):
            if len(offsets) <= len(lengths):
                must = f"there must be {len(lengths) + 1} for {len(lengths)} requests"
                raise ValueError(f"{name} has {len(offsets)} entries, {must}")
        queries, indptr = (offsets[: len(lengths) + 1] for offsets in (queries, indptr))  # more are of no request
        count = int(queries[-1])
        given = as_int32("kv_indices", requests.kv_indices)
        if self._pages is not None:
            self._check_fits(self._pages, len(lengths), len(given), count)
        pages = given.to(self.device).contiguous() if self._pages is None else self._pages[: len(given)]
        on_host = given.cpu().contiguous()  # what planning reads
        work: PagedWork | TreeWork
        work = work_of(attention_of(variant), on_host, indptr, lengths, queries, causal)
        if isinstance(work, PagedWork):
            work = work._replace(pages=pages, host_pages=on_host)
        else:
            work = work._replace(pages=pages)
        if self._pages is not None and self._variant is None:
            room = Room(len(lengths) + 1, count, len(self._pages) * variant.page_size)
            self._steps = Steps(self.device, room)
        elif self._pages is not None and type(work) is not self._kind:
            raise ValueError(
                f"causal={causal}, with these numbers of queries and tokens, takes a plan of another kind than the first one "
                "of a wrapper for CUDA graphs"
            )
        planned = variant.at_scale_of(self._variant)
        self._steps.plan(work, planned.running_at(variant.scale))
        # Now that nothing can be refused: until here a replay is one of the step before.
        if self._pages is not None and pages.data_ptr() != given.data_ptr():
            pages.copy_(given)
        if self._variant is None:
            self._most_queries, self._kind = count, type(work)
        self._variant, self._sm_scale, self._queries = planned, variant.scale, count

    def _check_fits(self, buffer: torch.Tensor, batch_size: int, index_count: int, queries: int) -> None:
        """Checks the requests against the buffers of a wrapper for graphs."""
        if batch_size != self._batch_size:
            raise ValueError(f"there are {batch_size} requests, the wrapper for CUDA graphs was made for {self._batch_size}")
        if index_count > len(buffer):
            raise ValueError(f"kv_indices has {index_count} entries, the wrapper's buffer has {len(buffer)}")
        if self._variant is not None and queries > self._most_queries:
            raise ValueError(f"there are {queries} queries, the first plan of the wrapper for CUDA graphs had {self._most_queries}")

    def run(
        self,
        q_nope: torch.Tensor | None = None,
        q_pe: torch.Tensor | None = None,
        ckv_cache: torch.Tensor | None = None,
        kpe_cache: torch.Tensor | None = None,
        out: torch.Tensor | None = None,
        lse: torch.Tensor | None = None,
        return_lse: bool = False,
        profiler_buffer: torch.Tensor | None = None,
        kv_len: torch.Tensor | None = None,
        page_table: torch.Tensor | None = None,
        return_lse_base_on_e: bool = False,
        o_scale: float | None = None,
        *,
        query: Any = None,
        kv_cache: Any = None,
        ckv_scale: float | None = None,
        ckv_scale_arr: torch.Tensor | None = None,
        kpe_scale: float | None = None,
        sinks: torch.Tensor | None = None,
        skip_softmax_threshold_scale_factor: float | None = None,
        bmm1_scale: Any = None,
        bmm2_scale: Any = None,
    ) -> Any:
        """Returns out, or (out, lse) if `return_lse` is set; lse is to the base 2 or e. A given `lse` is always written. Parts
        of one tensor are read in place. Queries in two tensors are copied into one; on a CPU a cache in two tensors is as well."""
        variant = self._variant
        if variant is None:
            raise RuntimeError("nothing is planned yet: call plan before run")
        for name, value in {"kv_len": kv_len, "page_table": page_table, "o_scale": o_scale}.items():
            if value is not None:
                raise ValueError(f"{name} is for FlashInfer's backend cutlass: the arguments of plan count")
        cache_scale = _scale_of(variant, ckv_scale, ckv_scale_arr, kpe_scale)
        refuse_given("look at the kernels with a profiler of the GPU", profiler_buffer=profiler_buffer)
        refuse_given("it is not passed on to the spec", sinks=sinks)
        refuse_given("no token is left out", skip_softmax_threshold_scale_factor=skip_softmax_threshold_scale_factor)
        refuse_given("scales are those of plan", bmm1_scale=bmm1_scale, bmm2_scale=bmm2_scale)
        q = _whole_or_parts("query", query, ("q_nope", q_nope), ("q_pe", q_pe))
        cache = _whole_or_parts("kv_cache", kv_cache, ("ckv_cache", ckv_cache), ("kpe_cache", kpe_cache))
        widths = (variant.head_dim, variant.rope_dim)
        rows, page = (self._queries, variant.query_heads), (None, variant.page_size)
        _check("query", ("q_nope", "q_pe"), q, rows, widths, variant.dtype)
        if variant.scale_columns:
            cache = _rows_of(cache, page, token_bytes(*widths))
        else:
            _check("kv_cache", ("ckv_cache", "kpe_cache"), cache, page, widths, variant.cache_dtype or variant.dtype)
        factor = variant.factor_to(self._sm_scale)
        scales = None
        if factor != 1 or cache_scale != 1:
            variant, scales = variant.scaled, Scales(factor * cache_scale, cache_scale)
        return run_split(
            self._steps,
            variant,
            query_of(*q) if isinstance(q, tuple) else q,
            cache_of(*cache) if isinstance(cache, tuple) else cache,
            None,
            out,
            lse,
            return_lse,
            scales,
            math.e if return_lse_base_on_e else 2,
        )


def _scale_of(variant: Variant, ckv_scale: float | None, ckv_scale_arr: Any, kpe_scale: float | None) -> float:
    """Returns the factor for the elements of an 8-bit cache."""
    for name, value in {"ckv_scale": ckv_scale, "ckv_scale_arr": ckv_scale_arr, "kpe_scale": kpe_scale}.items():
        if value is not None and (not variant.cache_dtype or variant.scale_columns):
            has = "rows have scales of their own" if variant.scale_columns else "kv_data_type is not of 8 bits"
            raise ValueError(f"{name} is given, and {has}")
    if variant.cache_dtype and not variant.scale_columns and (ckv_scale is None) == (ckv_scale_arr is None):
        raise ValueError("Exactly one of ckv_scale or ckv_scale_arr goes with a cache of 8 bits; here it is ckv_scale")
    refuse_given("a cache has one scale, ckv_scale", ckv_scale_arr=ckv_scale_arr)
    scale, of_rope = (1.0 if given is None else float(given) for given in (ckv_scale, kpe_scale))
    if scale != of_rope:
        raise outside("kpe_scale", of_rope, f"one number is that of all elements of a token, and ckv_scale is {scale}")
    return scale


def _rows_of(cache: Any, page: tuple[int | None, int], width: int) -> torch.Tensor:
    """Checks a cache with scales in its rows."""
    if not isinstance(cache, torch.Tensor):
        raise ValueError(f"ckv_cache and kpe_cache are given, and rows of {width} bytes have all: give kv_cache")
    if cache.ndim not in (3, 4) or cache.shape[1] != page[1] or (cache.ndim == 4 and cache.shape[2] != 1) or cache.shape[-1] != width:
        raise ValueError(f"kv_cache is {list(cache.shape)}, it must be [any, {page[1]}, {width}] as planned")
    if cache.dtype not in (*BYTES, torch.float8_e4m3fn):
        raise ValueError(f"kv_cache.dtype={cache.dtype} does not match the planned type, of 8 bits")
    return as_bytes(cache)


def _requests_of(metadata: Any, csr: tuple[Any, ...], dense: tuple[Any, ...]) -> _Requests:
    """Reads the requests from FlashInfer's MLAPlanMetadata, or from its fields."""
    if metadata is not None:
        if any(one is not None for one in (*csr, *dense)):
            raise ValueError("metadata is given, and fields of it beside it")
        csr = tuple(getattr(metadata, name) for name in _Requests._fields)
        dense = tuple(getattr(metadata, name) for name in ("cum_seq_lens_q", "block_tables", "seq_lens"))
    elif any(one is not None for one in csr) and any(one is not None for one in dense):
        raise ValueError("requests are said by kv_indptr and kv_indices, or by block_tables, not by both")
    if all(one is not None for one in csr):
        return _Requests(*csr)
    if any(one is not None for one in csr) or any(one is None for one in dense):
        raise TypeError("plan() takes qo_indptr, kv_indptr, kv_indices and kv_len_arr, or cum_seq_lens_q, block_tables and seq_lens")
    queries, tables, lengths = dense
    if tables.ndim != 2:
        raise ValueError(f"block_tables has {tables.ndim} dimensions, it must be [requests, pages]")
    rows, columns = tables.shape
    return _Requests(queries, torch.arange(rows + 1, dtype=torch.int32) * columns, tables.reshape(-1), lengths)


def _whole_or_parts(name: str, given: Any, first: tuple[str, Any], second: tuple[str, Any]) -> Any:
    """Returns a tensor, or a pair of tensors."""
    parts = (first[1], second[1])
    if given is None:
        if all(part is not None for part in parts):
            return parts
        if any(part is not None for part in parts):
            raise ValueError(f"{first[0]} and {second[0]} must both be given")
        raise TypeError(f"run() takes {name}, or {first[0]} and {second[0]}")
    if any(part is not None for part in parts):
        raise TypeError(f"run() takes {name}, or {first[0]} and {second[0]}, not both")
    is_pair = isinstance(given, tuple) and len(given) == 2 and all(isinstance(part, torch.Tensor) for part in given)
    if not is_pair and not isinstance(given, torch.Tensor):
        raise TypeError(f"{name} is a {type(given).__name__}, it must be a tensor or a tuple of two")
    return given


def _check(
    name: str, parts: tuple[str, str], given: Any, outer: tuple[int | None, int], widths: tuple[int, int], dtype: str
) -> None:
    """Checks shapes and types; an error names the tensor."""
    tensors = [*zip(parts, given, widths)] if isinstance(given, tuple) else [(name, given, sum(widths))]
    for one, tensor, width in tensors:
        must = (*outer, width)
        shape = tuple(tensor.shape)
        if len(shape) != 3 or any(size not in (None, had) for size, had in zip(must, shape)):
            sizes = ", ".join("any" if size is None else str(size) for size in must)
            raise ValueError(f"{one} is {list(shape)}, it must be [{sizes}] as planned")
        if CACHE_DTYPES.get(tensor.dtype) != dtype and dtype_word(one, tensor.dtype) != dtype:
            raise ValueError(f"{one}.dtype={tensor.dtype} does not match the planned type, {dtype}")
