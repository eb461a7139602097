"""Queries and caches of latent attention. Their columns may be in two tensors."""

from __future__ import annotations

from typing import Any

import torch

# Of tokens as DeepSeek V3.2's engines write them: 512 e4m3, four float32 scales and 64 bfloat16, 656 bytes.
SCALE_COLUMNS = 128
BYTES = (torch.uint8, torch.int8)


def token_bytes(latent_dim: int, rope_dim: int) -> int:
    return latent_dim + latent_dim // SCALE_COLUMNS * 4 + rope_dim * 2


def as_bytes(cache: torch.Tensor) -> torch.Tensor:
    return cache.view(torch.uint8)


def one_tensor(first: torch.Tensor, behind: torch.Tensor) -> torch.Tensor | None:
    """Returns one tensor that both are views of, if the columns of the second follow those of the first in memory."""
    columns = first.shape[-1]
    are_one = (
        first.shape[:-1] == behind.shape[:-1]
        and first.stride() == behind.stride()
        and first.stride(-1) == 1
        and first.dtype == behind.dtype
        and first.untyped_storage().data_ptr() == behind.untyped_storage().data_ptr()
        and first.storage_offset() + columns == behind.storage_offset()
    )
    return first.as_strided((*first.shape[:-1], columns + behind.shape[-1]), first.stride()) if are_one else None


def query_of(q_nope: torch.Tensor, q_pe: torch.Tensor) -> torch.Tensor:
    """Returns q as a run reads it, with the columns of both parts side by side in each head. Copies it if it lies otherwise."""
    q = one_tensor(q_nope, q_pe)
    if q is None or (q.shape[1] > 1 and q.stride(1) != q.shape[2]):
        return torch.cat([q_nope, q_pe], dim=-1)
    return q


def cache_of(ckv: torch.Tensor, kpe: torch.Tensor) -> Any:
    """Returns the cache as a run reads it. A GPU reads it in place. Processors read one tensor, so two tensors are copied."""
    whole = one_tensor(ckv, kpe)
    if whole is not None:
        return whole
    if ckv.is_cuda:
        return ckv, kpe
    if ckv.element_size() == 1:  # of which torch joins integers
        return torch.cat([as_bytes(ckv), as_bytes(kpe)], dim=-1)
    return torch.cat([ckv, kpe], dim=-1)
