"""The page table of a SequenceTree on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _abi
from ._gpu import GpuHandle, gpu
from ._library import check, lib, make
from ._tensors import View

if TYPE_CHECKING:
    from ._sequence_tree import SequenceTree


class GpuPageTable:
    """At one address for good, so that graphs may capture it. `pages`: of the table; branches that share a page have an
    entry each, so it may need more than the pool has."""

    def __init__(self, device: int, pages: int) -> None:
        made = make(lib.deft_gpu_page_table_make, gpu(device), pages)
        self._handle = GpuHandle(made, lib.deft_gpu_page_table_destroy)
        #: What runs take as `page_table`.
        self.entries = View(
            lib.deft_gpu_page_table_data(self._handle), _abi.DEFT_I32, (pages,), None, _abi.DEFT_DEVICE_CUDA, device, self
        )

    def upload(self, sequences: SequenceTree, stream: int) -> None:
        """Brings it to what the sequences have now, for runs and replays behind it; only what changed travels. Not on a
        stream that is being captured."""
        check(lib.deft_gpu_page_table_upload(self._handle, sequences._sequences, stream))
