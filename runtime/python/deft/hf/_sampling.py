"""Chooses the next token."""

from __future__ import annotations

from typing import Iterable, Sequence

import torch
from transformers import (
    LogitsProcessorList,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from ._branch import Branch


class Sampler:
    """Chooses as transformers' generate does: with the same seed and rows it draws the same tokens. Without arguments it draws
    from the model's own distribution. `processors` (of transformers) come before temperature, top_k and top_p."""

    def __init__(
        self,
        *,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        generator: torch.Generator | None = None,
        processors: Iterable[object] = (),
    ) -> None:
        self._generator = generator
        self._processors = LogitsProcessorList(processors)
        if temperature != 1.0:
            self._processors.append(TemperatureLogitsWarper(temperature))
        if top_k:
            self._processors.append(TopKLogitsWarper(top_k))
        if top_p < 1.0:
            self._processors.append(TopPLogitsWarper(top_p))

    def choose(self, logits: torch.Tensor, paths: torch.Tensor) -> torch.Tensor:
        """Returns a token for each row of logits. A row of `paths` (int64) has the tokens before it, for processors that read
        them."""
        scores = self._processors(paths, logits.float())
        return torch.multinomial(scores.softmax(dim=-1), num_samples=1, generator=self._generator).squeeze(1)


class Greedy(Sampler):
    """Chooses the most probable token, after `processors`."""

    def __init__(self, *, processors: Iterable[object] = ()) -> None:
        super().__init__(processors=processors)

    def choose(self, logits: torch.Tensor, paths: torch.Tensor) -> torch.Tensor:
        return self._processors(paths, logits.float()).argmax(dim=-1)


def stack_logits(branches: Sequence[Branch]) -> torch.Tensor:
    """Returns the logits of decoded branches, [branches, vocabulary]."""
    rows = [branch.logits for branch in branches]
    assert all(row is not None for row in rows)
    return torch.stack(rows)  # type: ignore[arg-type]
