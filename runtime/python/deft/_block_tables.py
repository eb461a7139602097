"""Block tables of engines: planning reads them on the host, runs where they are."""

from __future__ import annotations

import sys
from ctypes import c_int32
from typing import Any, NamedTuple

from . import _abi
from ._errors import UsageError
from ._library import sized
from ._tensors import Ints, View, dtype_text, ints, is_packed, strides_text, view


class BlockTable(NamedTuple):
    pages: Any  # deft_page_table, of the host's memory
    seen: View  # all entries in one row, where runs read them
    kept: Any  # what `pages` points to


def read_block_table(block_tables: Any, indptr: Any = None, host_tables: Any = None) -> BlockTable:
    """As PagedBatch.update takes them."""
    seen = view("block_tables", block_tables)
    if indptr is not None and not is_packed(seen):
        raise UsageError(f"block_tables has strides {strides_text(seen)}, it must be one packed row")
    host_tables = _table_on_host(block_tables) if host_tables is None else _as_laid_out(host_tables, seen)
    if indptr is None:
        pages, kept = _rows_of(host_tables)
    else:
        pages, kept = _packed_rows_of(host_tables, ints("indptr", on_host(indptr)))
    in_one_row = seen._replace(shape=(pages.entry_count,), strides=None, owner=(block_tables, seen.owner))
    return BlockTable(pages, in_one_row, kept)


def on_host(array: Any) -> Any:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor) and array.is_cuda:
        return array.cpu()
    return array


def copy_on_gpu(table: View, device: Any) -> Any:
    """A host's table, by torch. When this returns it is there, for whatever stream."""
    torch = sys.modules["torch"]
    (count,) = table.shape
    if count == 0:  # torch makes no tensor of such memory
        return torch.empty(0, dtype=torch.int32, device=device)
    return torch.frombuffer((c_int32 * count).from_address(table.data), dtype=torch.int32).to(device)


def _table_on_host(tables: Any) -> Any:
    """With the strides that it has on a GPU: places are those of the table that runs read."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(tables, torch.Tensor) or not tables.is_cuda or tables.ndim != 2:
        return on_host(tables)
    rows, pages = tables.shape
    if pages > 1 and tables.stride(1) != 1:
        raise UsageError(f"block_tables has strides {list(tables.stride())}, entries of a row must lie side by side")
    stride = tables.stride(0) if rows > 1 else pages
    copy = torch.empty((max(rows - 1, 0) * stride + pages,), dtype=tables.dtype).as_strided((rows, pages), (stride, 1))
    return copy.copy_(tables)


def _as_laid_out(host_tables: Any, seen: View) -> Any:
    """Places are those of the table that runs read."""
    given = view("host_tables", host_tables)
    if given.device_type != _abi.DEFT_DEVICE_CPU:
        raise UsageError("host_tables are on a GPU, planning reads them on the host")
    for what, mine, theirs in (("shape", given.shape, seen.shape), ("strides", strides_text(given), strides_text(seen))):
        if mine != theirs:
            shown = list(mine) if what == "shape" else mine, list(theirs) if what == "shape" else theirs
            raise UsageError(f"host_tables has {what} {shown[0]}, block_tables has {shown[1]}")
    return host_tables


def _rows_of(tables: Any) -> tuple[Any, Any]:
    seen = view("block_tables", tables)
    if seen.dtype != _abi.DEFT_I32:
        raise UsageError(f"block_tables is {dtype_text(seen.dtype)}, it must be int32")
    if len(seen.shape) != 2:
        raise UsageError(f"block_tables has {len(seen.shape)} dimensions, it must be [rows, pages]")
    rows, pages = seen.shape
    stride, step = seen.strides or (pages, 1)
    if (step != 1 and pages > 1) or (stride < pages and rows > 1):
        raise UsageError(f"block_tables has strides [{stride}, {step}], entries of a row must lie side by side")
    if pages == 0:  # rows of no pages are told by an indptr alone
        starts = ints("block_tables", [0] * (rows + 1))
        return sized(_abi.deft_page_table, indptr=starts.address, indptr_count=starts.count), (tables, starts)
    entries = (rows - 1) * stride + pages if rows else 0
    table = sized(
        _abi.deft_page_table, entries=seen.data, entry_count=entries, row_stride=max(stride, 1), row_pages=pages
    )
    return table, (tables, seen.owner)


def _packed_rows_of(pages: Any, indptr: Ints) -> tuple[Any, Any]:
    """Rows back to back."""
    entries = ints("block_tables", pages)
    table = sized(
        _abi.deft_page_table,
        entries=entries.address,
        entry_count=entries.count,
        indptr=indptr.address,
        indptr_count=indptr.count,
    )
    return table, (entries, indptr)
