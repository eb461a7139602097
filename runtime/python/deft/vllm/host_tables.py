"""The host's copies of vLLM's block tables.

A backend receives its table only on the GPU. Reading it there waits for the step before, which ends the overlap of asynchronous
scheduling. vLLM's model runners fill the table from the host, so this module hooks into the methods that do so. If it cannot,
because a release has other methods or the table is padding, `on_host` returns None and the table is read from the GPU."""

from __future__ import annotations

import functools
import inspect
import logging
import sys
import weakref
from array import array
from typing import Any, Callable, NamedTuple, Sequence

import numpy as np
import torch

_log = logging.getLogger("vllm.deft")
_COMPARED = 4  # times that a table is compared with the GPU's, before it is believed


_Entries = np.ndarray[Any, Any]


class Known(NamedTuple):
    """The host's knowledge of a table."""

    table: _Table  # one for each table on the GPU
    ids: array[int] | None  # of each row's request: as long as it is the same, its pages are those of before and perhaps more
    shape: tuple[int, ...]

    @property
    def entries(self) -> _Entries:
        """The table's entries. For one table their memory stays the same."""
        return self.table.rows(*self.shape)


def on_host(table: torch.Tensor, lengths: Sequence[int], page_size: int) -> Known | None:
    """Returns the content of `table` at the time when the step reads it. `table` is the first rows and columns of a builder's
    table. Each row has pages for its length; entries after these are undefined. The result is valid until the next step."""
    known = _by_pointer.get(table.data_ptr())
    return None if known is None else known.read(table, lengths, page_size)


class _Table:
    """One table on the GPU."""

    def __init__(self, on_gpu: torch.Tensor, entries: _Entries, mirror: _Mirror | None) -> None:
        self._on_gpu, self._stride = weakref.ref(on_gpu), on_gpu.stride()
        self._entries, self._mirror = entries, mirror
        self._to_compare = _COMPARED
        self._is_right = True

    @property
    def is_gone(self) -> bool:
        return self._on_gpu() is None

    def rows(self, count: int, pages: int) -> _Entries:
        return self._entries[:count, :pages]

    def read(self, table: torch.Tensor, lengths: Sequence[int], page_size: int) -> Known | None:
        if not self._is_right or self._on_gpu() is None or self._stride != table.stride():
            return None
        ids = None
        if self._mirror is not None:
            ids = self._mirror.ids
            if ids is None or len(ids) < len(lengths):
                return None
            if len(ids) > len(lengths):
                ids = ids[: len(lengths)]
        if self._to_compare and not self._is_equal(table, np.array(lengths), page_size):
            self._is_right = False
            _log.warning("vLLM's block tables differ from the host's copy, so each step waits for them")
            return None
        return Known(self, ids, table.shape)

    def _is_equal(self, table: torch.Tensor, lengths: _Entries, page_size: int) -> bool:
        self._to_compare -= 1
        count = len(lengths)  # behind these are rows of padding
        is_read = np.arange(table.shape[1]) * page_size < lengths[:, None]
        return np.array_equal(self.rows(*table.shape)[:count][is_read], table[:count].cpu().numpy()[is_read])


_by_pointer: dict[int, _Table] = {}


def _know(on_gpu: torch.Tensor, entries: _Entries, mirror: _Mirror | None = None) -> None:
    """Registers a table. `entries` are the host's entries."""
    _by_pointer[on_gpu.data_ptr()] = _Table(on_gpu, entries, mirror)


class _Mirror:
    """Mirrors one group of layers in BlockTables of the second model runner. BlockTables has rows of requests on the GPU, and
    each step gathers its own. The mirror gathers only the differences from the step before."""

    def __init__(self, gathered: torch.Tensor) -> None:
        shape = tuple(gathered.shape)
        self._requests = np.zeros(shape, np.int32)
        self.step = np.zeros(shape, np.int32)  # what is gathered; behind it are rows of padding
        self._ids = np.zeros(shape[0], np.uint64)  # another one for another request in the same row
        self._ends = [0] * shape[0]
        self._written: list[tuple[int, int, int]] = []  # requests and columns since the last step
        self._writes = self._width = 0  # the widest row's columns
        self._order = b""  # of the step
        self._rows: dict[int, int] = {}  # of each request in it
        self._gathered = np.zeros(shape[0], np.uint64)  # ids of the step's rows, also of those of padding
        self.ids: array[int] | None = None  # of the requests of the step; None: the step is not known

    def write(self, request: int, end: int, pages: list[int], is_new: bool) -> None:
        """Writes the request's last pages, up to `end`."""
        begin = end - len(pages)
        if is_new or begin != self._ends[request]:
            self._writes += 1
            self._ids[request] = self._writes
            self._order = b""
        self._ends[request], self._width = end, max(self._width, end)
        self._requests[request, begin:end] = pages
        self._written.append((request, begin, end))

    def gather(self, order: _Entries) -> None:
        """Gathers the rows of the step; `order` has the request of each row. This runs before the step's metadata is built."""
        written, self._written = self._written, []
        asked = order.tobytes()
        if asked != self._order:
            self._order, self._rows = asked, {request: row for row, request in enumerate(order.tolist())}
            ids = self._ids[order]
            self.ids = array("Q", ids.tobytes())
            changed = np.flatnonzero(self._gathered[: len(order)] != ids)
            self._gathered[: len(order)] = ids
            self.step[changed, : self._width] = self._requests[order[changed], : self._width]
        for request, begin, end in written:
            row = self._rows.get(request)
            if row is None:  # where it was is not what it is
                self._gathered[self._gathered == self._ids[request]] = 0
            else:
                self.step[row, begin:end] = self._requests[request, begin:end]

    def forget(self) -> None:
        """Forgets the step. The next known step gathers all rows."""
        self.ids, self._order, self._written = None, b"", []
        self._gathered[:] = 0


def _mirrors(tables: Any) -> list[_Mirror]:
    return getattr(tables, "deft_mirrors", [])  # none of tables that were made before anybody listened


def _made(tables: Any, *arguments: Any, **more: Any) -> None:
    tables.deft_mirrors = [_Mirror(gathered) for gathered in tables.input_block_tables]
    tables.deft_announced = None
    for mirror, gathered in zip(tables.deft_mirrors, tables.input_block_tables):
        _know(gathered, mirror.step, mirror)


def _appended(tables: Any, req_index: int, new_block_ids: Any, overwrite: bool) -> None:
    splits = getattr(tables, "blocks_per_kv_block", None)  # since 0.32 a table's blocks are those of the caches
    writes_nothing = getattr(tables, "redirect_writes_to_null_block", False)
    for group, (mirror, blocks) in enumerate(zip(_mirrors(tables), new_block_ids)):
        split = 1 if splits is None else splits[group]
        pages = [block * split + part for block in blocks for part in range(split)] if split > 1 else list(blocks)
        end = int(tables.num_blocks.np[group, req_index])
        mirror.write(req_index, end, [0] * len(pages) if writes_nothing else pages, overwrite)


def _announce(runner: Any, input_batch: Any) -> None:
    runner.block_tables.deft_announced = (input_batch.idx_mapping, input_batch.idx_mapping_np)


def _gathered(
    tables: Any, idx_mapping: Any, num_reqs_padded: int, out: Any = None, out_ptrs: Any = None, num_computed_tokens: Any = None
) -> None:
    if out is not None:
        return  # not the tables that are known
    announced = getattr(tables, "deft_announced", None)
    tables.deft_announced = None
    is_known = announced is not None and announced[0] is idx_mapping
    # Since 0.33 what lies below a window is the null block in what is gathered, by lengths that the GPU has.
    reaches = getattr(tables, "_sliding_window_reach", ()) if num_computed_tokens is not None else ()
    for group, mirror in enumerate(_mirrors(tables)):
        is_cut = group < len(reaches) and reaches[group] > 0
        if announced is not None and is_known and not is_cut:
            mirror.gather(announced[1])
        else:
            mirror.forget()


def _forget_order(tables: Any, *arguments: Any, **more: Any) -> None:
    for mirror in _mirrors(tables):
        mirror.forget()


def _asked_for(table: Any, num_reqs: int) -> None:
    """Registers the tables of the first model runner, which has each table on the host as well."""
    on_gpu = table.block_table.gpu
    known = _by_pointer.get(on_gpu.data_ptr())
    if known is None or known.is_gone:  # another engine's table was there
        _know(on_gpu, table.block_table.cpu.numpy())


def listen() -> None:
    """Hooks into the model runners of this process. Call it before they make their tables."""
    second = "vllm.v1.worker.gpu."
    _hook(
        (second + "block_table", "BlockTables", "__init__", None, _made, None),
        (second + "block_table", "BlockTables", "append_block_ids", None, _appended, _appended),
        (second + "block_table", "BlockTables", "gather_block_tables", None, _gathered, _gathered),
        (second + "block_table", "BlockTables", "get_dummy_block_tables", _forget_order, None, None),
        (second + "model_runner", "GPUModelRunner", "prepare_attn", _announce, None, _announce),
    )
    _hook(("vllm.v1.worker.block_table", "BlockTable", "get_device_tensor", None, _asked_for, _asked_for))


def _hook(*places: tuple[str, str, str, Any, Any, Any]) -> None:
    """Hooks into all of the places or none. A place is: module, class, method, functions to call before it and after it, and a
    function with the arguments that the method must have. The method may lack its last arguments with defaults."""
    found = []
    for module, kind, method, ahead, behind, like in places:
        owner = getattr(sys.modules.get(module), kind, None)
        original = getattr(owner, method, None)
        if original is None or hasattr(original, "deft_hook"):
            return
        if like and not _takes(like, original):
            _log.info("%s.%s has other arguments than are known, so steps wait until block tables are read", kind, method)
            return
        found.append((owner, method, original, ahead, behind))
    for owner, method, original, ahead, behind in found:
        setattr(owner, method, _hooked(original, ahead, behind))


def _takes(like: Callable[..., Any], original: Callable[..., Any]) -> bool:
    known, asked = ([*inspect.signature(one).parameters.values()][1:] for one in (like, original))
    needed = sum(parameter.default is parameter.empty for parameter in known)
    return needed <= len(asked) and [one.name for one in asked] == [one.name for one in known[: len(asked)]]


def _hooked(original: Callable[..., Any], ahead: Any, behind: Any) -> Callable[..., Any]:
    @functools.wraps(original)
    def method(self: Any, *arguments: Any, **more: Any) -> Any:
        if ahead is not None:
            ahead(self, *arguments, **more)
        result = original(self, *arguments, **more)
        if behind is not None:
            behind(self, *arguments, **more)
        return result

    method.deft_hook = True  # type: ignore[attr-defined]
    return method
