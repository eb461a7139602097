"""Runs steps of beams over a decoder's cache."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Callable, Iterator

import torch

from .._attention import Plan
from .._beam_tree import BeamTree
from .._sequence_tree import SequenceTree
from ._branch import Branch
from ._cache import PagedCache, as_tensor
from ._forward import Parts, Rows
from ._kinds import Kind
from ._plans import PageTable, Plans


class BeamTable:
    """The beams' page table on the model's device."""

    def __init__(self, cache: PagedCache, beams: BeamTree) -> None:
        self._beams = beams
        self._on_gpu: torch.Tensor | None = None
        if cache.device.type == "cuda":
            # At one address for good, so that graphs may capture it.
            entries = PageTable.ENTRIES_A_PAGE * cache.pages.shape[2]
            self._on_gpu = torch.zeros(entries, dtype=torch.int32, device=cache.device)

    def start(self) -> None:
        """Copies the table of a new search; it does not change during the search."""
        if self._on_gpu is not None:
            table = as_tensor(self._beams.page_table)
            self._on_gpu[: len(table)].copy_(table)

    def upload(self) -> Any:
        """Returns the table for the runs that follow."""
        return self._beams.page_table if self._on_gpu is None else self._on_gpu


class BeamPlans(Plans):
    """Plans of beams. The number of stretches grows from step to step."""

    def _make(self, kind: Kind) -> Plan:
        plan = super()._make(kind)
        if self._runs_ahead:  # a graph has the room of its capture
            beams, tokens = self._tree.query_count, self._tree.tokens
            plan.reserve(beams, beams, 2 * tokens, device=self._cache.device)
        return plan


class BeamSteps:
    """Steps of beams over a decoder's cache, with a BeamTree. The tree of the decoder's branches lends it pages for each
    search. The decoder keeps this object and its captured graphs from search to search."""

    def __init__(self, parts: Parts, make_forward: Callable[[Parts, BeamTree], Any]) -> None:
        self._cache = parts.cache
        self.beams = BeamTree(parts.cache.page_size)
        self._table = BeamTable(parts.cache, self.beams)
        self.forward = make_forward(parts._replace(table=self._table), self.beams)

    @contextmanager
    def search(self, prompt: Branch, most_tokens: int) -> Iterator[None]:
        """Starts beams at the prompt, for a `with` block. Together the beams may decode at most `most_tokens`. At the end their
        pages are freed."""
        sequences, page_size = self._cache.sequences, self._cache.page_size
        stretches, entries = _history_of(sequences, prompt.node, page_size)
        # A page is begun when the one before is full or free.
        pages = min(sequences.free_pages, -(-most_tokens // page_size) + 1)
        lent = sequences.add_root(pages * page_size)
        try:
            first = sequences.node(lent).location // page_size
            own = as_tensor(sequences.page_table)[first : first + pages] if pages else []
            self.beams.start([stretches], own, table=entries)
            self._table.start()
            yield
        finally:
            sequences.prune(lent)

    def rows(self, parents: torch.Tensor, tokens: torch.Tensor) -> Rows:
        """Advances the beams and returns the rows of the step."""
        step = self.beams.advance(parents)
        positions = torch.frombuffer(step.positions, dtype=torch.int32).to(torch.int64)
        return Rows(tokens, positions, torch.frombuffer(step.slots, dtype=torch.int64))


def _history_of(sequences: SequenceTree, node: int, page_size: int) -> tuple[list[tuple[int, int]], list[int]]:
    """Returns the stretches of the path to a node, and a page table for these."""
    path = []
    parent: int | None = node
    while parent is not None:
        path.append(sequences.node(parent))
        parent = path[-1].parent
    table = as_tensor(sequences.page_table)
    stretches: list[tuple[int, int]] = []
    entries: list[int] = []
    for facts in reversed(path):
        if facts.tokens:
            first, last = facts.location // page_size, (facts.location + facts.tokens - 1) // page_size
            stretches.append((len(entries) * page_size + facts.location % page_size, facts.tokens))
            entries += table[first : last + 1].tolist()
    return stretches, entries
