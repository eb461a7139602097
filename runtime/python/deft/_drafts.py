"""Which drafts see which: masks of bits, where the plan is that reads them."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from ctypes import addressof
from typing import Any

from . import _abi
from ._errors import UsageError
from ._library import sized
from ._tensors import BOOL, UINT32, Slot, View, dtype_text, maker_of, stream_of, view

_WORD = 32


class DraftMask:
    """The structs of one call, kept for the next."""

    def __init__(self) -> None:
        self._bits, self._depths, self._lengths = Slot(), Slot(), Slot()
        self._mask = sized(_abi.deft_draft_mask, bits=self._bits.address)
        self.address = addressof(self._mask)

    def fill(self, bits: View, depths: View | None, lengths: View | None) -> int:
        self._bits.fill(*bits[:6])
        self._mask.depths = None if depths is None else self._depths.fill(*depths[:6])
        self._mask.lengths = None if lengths is None else self._lengths.fill(*lengths[:6])
        return self.address


def place_of(bits: Any, stream: int | None) -> tuple[bool, int, int]:
    """Whether the mask is on a GPU, on which, and the stream on which its maker computes now, if none is given."""
    seen = view("bits", bits)
    if seen.device_type != _abi.DEFT_DEVICE_CUDA:
        return False, 0, 0
    return True, seen.device, stream_of(bits, seen.device) if stream is None else stream


def words_of(bits: Any, stream: int) -> View:
    """The mask in words of 32 bits; truth values are packed, on a GPU behind what is on the stream."""
    seen = view("bits", bits)
    if seen.dtype != BOOL:
        if seen.dtype not in (UINT32, _abi.DEFT_I32):
            raise UsageError(f"bits is {dtype_text(seen.dtype)}, it must be words of int32 or uint32, or bool")
        return seen
    shape = list(seen.shape)
    if len(shape) != 3 or shape[1] != shape[2]:
        raise UsageError(f"bits is {shape} of bool, it must be [requests, drafts, drafts]", "or words of int32 or uint32")
    maker = maker_of(bits)
    if maker == "torch":
        packed = _packed_by_torch(bits, stream)
    elif maker == "numpy":
        packed = _packed_by_numpy(bits)
    else:
        raise UsageError(f"bits is bool of a {type(bits).__name__}, truth values are taken of NumPy and torch", "hand over words")
    return view("bits", packed)._replace(owner=packed)


def int32_view(name: str, array: Any) -> View | None:
    if array is None:
        return None
    seen = view(name, array)
    if seen.dtype != _abi.DEFT_I32:
        raise UsageError(f"{name} is {dtype_text(seen.dtype)}, it must be int32")
    return seen


def _packed_by_numpy(mask: Any) -> Any:
    numpy = sys.modules["numpy"]
    drafts = mask.shape[-1]
    padded = numpy.zeros((*mask.shape[:-1], _round_up(drafts)), bool)
    padded[..., :drafts] = mask
    return numpy.packbits(padded, axis=-1, bitorder="little").view("<u4")


def _packed_by_torch(mask: Any, stream: int) -> Any:
    torch = sys.modules["torch"]
    on_stream = nullcontext()
    if mask.is_cuda and stream != torch.cuda.current_stream(mask.device).cuda_stream:
        on_stream = torch.cuda.stream(torch.cuda.ExternalStream(stream, device=mask.device))
    with on_stream:
        drafts = mask.shape[-1]
        padded = torch.zeros((*mask.shape[:-1], _round_up(drafts)), dtype=torch.int32, device=mask.device)
        padded[..., :drafts] = mask
        places = torch.arange(_WORD, dtype=torch.int32, device=mask.device)
        bits = padded.view(*mask.shape[:-1], -1, _WORD) << places
        return bits.sum(-1, dtype=torch.int32)  # no two have a bit in common


def _round_up(drafts: int) -> int:
    return -(-drafts // _WORD) * _WORD
