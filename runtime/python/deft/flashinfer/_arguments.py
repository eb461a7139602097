"""Translates FlashInfer's arguments and refuses unsupported ones."""

from __future__ import annotations

from typing import Any

import torch

from .._adapters.dtypes import CACHE_DTYPES, SPEC_DTYPES
from .._adapters.outside import outside

_MOST_TOKENS = 2**31 - 1  # of a request


def check_layout(kv_layout: str) -> str:
    if kv_layout not in ("NHD", "HND"):
        raise KeyError(f"kv_layout is {kv_layout!r}, it must be 'NHD' or 'HND'")
    return kv_layout


def check_position_encoding(pos_encoding_mode: str) -> None:
    if pos_encoding_mode != "NONE":
        raise outside("pos_encoding_mode", pos_encoding_mode, "rotate q and K before they come here")


def check_backend(backend: str) -> None:
    """Checks `backend`. It does not choose kernels here, but some names also ask for other page tables and caches."""
    if backend not in ("auto", "fa2", "fa3"):
        raise outside("backend", backend, "its page tables and its caches are others")


def check_workspace(name: str, buffer: torch.Tensor) -> None:
    """Checks the workspace's alignment, as FlashInfer does. deft writes nothing there."""
    past = buffer.data_ptr() % 16 if buffer.numel() else 0
    if past:
        raise ValueError(f"{name} must be 16-byte aligned, its address is {past} past a multiple of 16")


def check_stride_variant(variant: str, is_planned: bool) -> None:
    """Checks the arguments only. FlashInfer loads another kernel for K and V with different strides, and must not do so in a
    capture. Kernels here take any strides, so there is nothing to load."""
    if variant != "independent":
        raise ValueError(f"variant must be 'independent', it is {variant!r}")
    if not is_planned:
        raise RuntimeError("plan() must complete before a paged-KV-stride variant is loaded")


def dtype_word(argument: str, dtype: Any) -> str:
    """Returns the dtype as a spec writes it."""
    found = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    word = SPEC_DTYPES.get(found)
    if word is None:
        raise outside(argument, found, "q and the output are float16 or bfloat16, K and V these or 8-bit floats")
    return word


def cache_word(kv_data_type: Any) -> str:
    """Returns the cache's 8-bit float type as a spec writes it, or an empty text if K and V have q's type."""
    found = getattr(torch, kv_data_type) if isinstance(kv_data_type, str) else kv_data_type
    return CACHE_DTYPES.get(found, "")


def one_dtype_word(q_data_type: Any, kv_data_type: Any) -> str:
    word = dtype_word("q_data_type", q_data_type)
    if kv_data_type is not None and not cache_word(kv_data_type) and dtype_word("kv_data_type", kv_data_type) != word:
        raise outside("kv_data_type", kv_data_type, f"K and V are of q's type, {q_data_type}")
    return word


def split_cache(cache: Any, kv_layout: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns views of K and V, from a pair of tensors or from one tensor that has both in each page."""
    if isinstance(cache, (tuple, list)):
        k, v = cache
        return _with_slots(k, 4, kv_layout), _with_slots(v, 4, kv_layout)
    if not isinstance(cache, torch.Tensor):
        raise KeyError(f"the cache is a {type(cache).__name__}, it must be a tensor or a pair of them")
    return _with_slots(cache, 5, kv_layout).unbind(1)


def _with_slots(cache: torch.Tensor, dimensions: int, kv_layout: str) -> torch.Tensor:
    """Adds a dimension for slots if pages of one token lack it."""
    if cache.ndim == dimensions - 1:
        return cache.unsqueeze(-3 if kv_layout == "NHD" else -2)
    if cache.ndim != dimensions:
        raise ValueError(f"the cache has {cache.ndim} dimensions, it must have {dimensions}")
    return cache


def lengths_of(indptr: torch.Tensor, last_page_len: torch.Tensor, page_size: int) -> torch.Tensor:
    """Returns the tokens of each request. All tensors are on the host."""
    requests = len(last_page_len)
    if len(indptr) != requests + 1:
        raise ValueError(f"indptr has {len(indptr)} entries, there must be {requests + 1} for {requests} requests")
    pages = indptr.to(torch.int64).diff()
    request = first_of(pages < 0)
    if request is not None:
        ends = [int(end) for end in indptr[request : request + 2]]
        raise ValueError(f"request {request}: its pages go from {ends[0]} to {ends[1]}, indptr must not fall")
    request = first_of((pages > 0) & ((last_page_len < 1) | (last_page_len > page_size)))
    if request is not None:
        raise ValueError(f"request {request}: {int(last_page_len[request])} tokens in its last page, must be 1 to {page_size}")
    lengths = torch.where(pages > 0, (pages - 1) * page_size + last_page_len, 0)
    request = first_of(lengths > _MOST_TOKENS)
    if request is not None:
        has = f"{int(pages[request])} pages of {page_size} with {int(lengths[request])} tokens"
        raise ValueError(f"request {request}: {has}, it can have at most {_MOST_TOKENS}")
    return lengths.to(torch.int32)


def first_of(wrong: torch.Tensor) -> int | None:
    return int(wrong.nonzero()[0]) if bool(wrong.any()) else None


def as_int32(name: str, values: torch.Tensor) -> torch.Tensor:
    """Converts to int32 on the same device. Wider integers must fit; checking this waits for a GPU, but planning waits as well."""
    if values.dtype == torch.int32:
        return values
    if values.is_floating_point() or values.is_complex() or values.dtype == torch.bool:
        raise ValueError(f"{name} is {values.dtype}, it must be torch.int32")
    wide = values.to(torch.int64)
    converted = wide.to(torch.int32)
    place = first_of(converted != wide)
    if place is not None:
        raise ValueError(f"{name}[{place}] is {int(wide[place])}, which does not fit into int32")
    return converted


def host_ints(name: str, values: torch.Tensor) -> torch.Tensor:
    """Copies numbers to the host for planning. This waits for a GPU."""
    return as_int32(name, values.cpu()).contiguous()
