"""Reads a batch's inputs: block tables and draft masks. Planning reads block tables on the host; runs read them where they are.
A mask of bits says which drafts see which, and stays on the plan's device."""

from __future__ import annotations

import sys
from array import array
from contextlib import nullcontext
from ctypes import addressof, c_int32, c_uint64
from typing import Any, NamedTuple

from . import _abi
from ._arguments import row_of
from ._errors import UsageError, wrong
from ._library import sized, struct_of
from ._tensors import BOOL, UINT32, Ints, Slot, View, dtype_text, expect_on_host, int32_view, ints, is_packed, maker_of
from ._tensors import stream_of, strides_text, view

_WORD = 32


class BlockTable(NamedTuple):
    pages: Any  # deft_page_table, of the host's memory
    seen: View  # all entries in one row, where runs read them
    kept: Any  # what `pages` points to


def read_block_table(block_tables: Any, indptr: Any = None, host_tables: Any = None, holders: Any = None) -> BlockTable:
    """Reads a block table as PagedBatch.update accepts it, or returns one that was read before."""
    if isinstance(block_tables, BlockTable):
        return block_tables
    seen = view("block_tables", block_tables)
    if holders is not None and not is_packed(seen):
        raise wrong("block_tables", f"has strides {strides_text(seen)}, with holders it must be packed")
    if indptr is not None and not is_packed(seen):
        raise wrong("block_tables", f"has strides {strides_text(seen)}, it must be one packed row")
    if host_tables is None:
        host_tables = _table_on_host(block_tables)
        given = seen if host_tables is block_tables else view("block_tables", host_tables)
    else:
        given = _as_laid_out(host_tables, seen)
    if indptr is None:
        pages, kept = _rows_of(given, host_tables)
    else:
        pages, kept = _packed_rows_of(host_tables, ints("indptr", on_host(indptr)))
    if holders is not None:
        given = int32_view("holders", holders)
        if given.shape != seen.shape or not is_packed(given):
            raise wrong("holders", f"has shape {list(given.shape)}, it must be packed, {list(seen.shape)} as block_tables")
        pages.holders, kept = given.data, (kept, holders, given.owner)
    in_one_row = seen._replace(shape=(pages.entry_count,), strides=None, owner=(block_tables, seen.owner))
    return BlockTable(pages, in_one_row, kept)


def on_host(array: Any) -> Any:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor) and array.is_cuda:
        return array.cpu()
    return array


def copy_on_gpu(table: View, device: Any) -> Any:
    """Copies a host's table to a GPU with torch. When this returns, every stream can read the copy."""
    torch = sys.modules["torch"]
    (count,) = table.shape
    if count == 0:  # torch makes no tensor of such memory
        return torch.empty(0, dtype=torch.int32, device=device)
    return torch.frombuffer((c_int32 * count).from_address(table.data), dtype=torch.int32).to(device)


def _table_on_host(tables: Any) -> Any:
    """Copies a GPU's table to the host with the same strides, because locations refer to the table that runs read."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(tables, torch.Tensor) or not tables.is_cuda or tables.ndim != 2:
        return on_host(tables)
    rows, pages = tables.shape
    if pages > 1 and tables.stride(1) != 1:
        raise wrong("block_tables", f"has strides {list(tables.stride())}, entries of a row must lie side by side")
    stride = tables.stride(0) if rows > 1 else pages
    copy = torch.empty((max(rows - 1, 0) * stride + pages,), dtype=tables.dtype).as_strided((rows, pages), (stride, 1))
    return copy.copy_(tables)


def _as_laid_out(host_tables: Any, seen: View) -> View:
    """Checks that the host's table has the shape and strides of the table that runs read, because locations refer to the
    latter."""
    given = view("host_tables", host_tables)
    if given.device_type != _abi.DEFT_DEVICE_CPU:
        raise UsageError("host_tables are on a GPU, planning reads them on the host", field="host_tables")
    if given.shape != seen.shape:
        raise wrong("host_tables", f"has shape {[*given.shape]}, block_tables has {[*seen.shape]}")
    if given.strides != seen.strides:
        raise wrong("host_tables", f"has strides {strides_text(given)}, block_tables has {strides_text(seen)}")
    return given


def _rows_of(seen: View, tables: Any) -> tuple[Any, Any]:
    if seen.dtype != _abi.DEFT_I32:
        raise wrong("block_tables", f"is {dtype_text(seen.dtype)}, it must be int32")
    if len(seen.shape) != 2:
        raise wrong("block_tables", f"has {len(seen.shape)} dimensions, it must be [rows, pages]")
    rows, pages = seen.shape
    stride, step = seen.strides or (pages, 1)
    if (step != 1 and pages > 1) or (stride < pages and rows > 1):
        raise wrong("block_tables", f"has strides [{stride}, {step}], entries of a row must lie side by side")
    if pages == 0:  # rows of no pages are told by an indptr alone
        starts = ints("block_tables", [0] * (rows + 1))
        return struct_of(_abi.deft_page_table, indptr=starts.address, indptr_count=starts.count), (tables, starts)
    entries = (rows - 1) * stride + pages if rows else 0
    rows_of = {"row_stride": max(stride, 1), "row_pages": pages}
    return struct_of(_abi.deft_page_table, entries=seen.data, entry_count=entries, **rows_of), (tables, seen.owner)


def _packed_rows_of(pages: Any, indptr: Ints) -> tuple[Any, Any]:
    """Reads rows that lie back to back."""
    entries = ints("block_tables", pages)
    where = {"indptr": indptr.address, "indptr_count": indptr.count}
    return struct_of(_abi.deft_page_table, entries=entries.address, entry_count=entries.count, **where), (entries, indptr)


def most_of(numbers: Ints) -> int:
    return max((c_int32 * numbers.count).from_address(numbers.address), default=0)


def ids_of(ids: Any) -> Ints:
    if type(ids) is array and ids.typecode == "Q":
        return Ints(*ids.buffer_info(), ids)
    if isinstance(ids, (list, tuple, range)):
        row = row_of("ids", ids, c_uint64)
        return Ints(addressof(row), len(ids), row)
    seen = view("ids", ids)
    if seen.dtype not in (0x0140, 0x0040) or len(seen.shape) != 1 or seen.strides is not None:
        raise wrong("ids", f"is {dtype_text(seen.dtype)}, it must be one packed row of uint64")
    expect_on_host("ids", seen, "is read on the host", "pass a copy")
    return Ints(seen.data, seen.shape[0], (ids, seen.owner))


class DraftMask:
    """Holds the structs of one call and reuses them for the next."""

    def __init__(self) -> None:
        self._bits, self._depths, self._lengths = Slot(), Slot(), Slot()
        self._mask = sized(_abi.deft_draft_mask, bits=self._bits.address)
        self.address = addressof(self._mask)

    def fill(self, bits: View, depths: View | None, lengths: View | None) -> int:
        self._bits.fill(bits)
        self._mask.depths = None if depths is None else self._depths.fill(depths)
        self._mask.lengths = None if lengths is None else self._lengths.fill(lengths)
        return self.address


def place_of(bits: Any, stream: int | None) -> tuple[bool, int, int]:
    """Returns whether the mask is on a GPU, the GPU's number, and a stream: the given one, or the current stream of the mask's
    library."""
    seen = view("bits", bits)
    if seen.device_type != _abi.DEFT_DEVICE_CUDA:
        return False, 0, 0
    return True, seen.device, stream_of(bits, seen.device) if stream is None else stream


def words_of(bits: Any, stream: int) -> View:
    """Returns the mask in words of 32 bits. Booleans are packed; on a GPU this runs in stream order."""
    seen = view("bits", bits)
    if seen.dtype != BOOL:
        if seen.dtype not in (UINT32, _abi.DEFT_I32):
            raise wrong("bits", f"is {dtype_text(seen.dtype)}, it must be words of int32 or uint32, or bool")
        return seen
    shape = list(seen.shape)
    if len(shape) != 3 or shape[1] != shape[2]:
        raise wrong("bits", f"is {shape} of bool, it must be [requests, drafts, drafts]", "or words of int32 or uint32")
    maker = maker_of(bits)
    if maker == "torch":
        packed = _packed_by_torch(bits, stream)
    elif maker == "numpy":
        packed = _packed_by_numpy(bits)
    else:
        kind = type(bits).__name__
        raise wrong("bits", f"is bool of a {kind}, truth values are taken of NumPy and torch", "pass words")
    return view("bits", packed)._replace(owner=packed)


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
