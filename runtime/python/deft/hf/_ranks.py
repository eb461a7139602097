"""A model that transformers' tensor-parallel plan has cut: each rank has some heads of every layer, and all tokens."""

from __future__ import annotations

from typing import Any

from .._errors import UsageError
from ._kinds import LayerKind


def heads_of_rank(kinds: list[LayerKind], model: Any) -> list[LayerKind]:
    """The layers as this rank attends in them. K and V of the other heads are other ranks', and nothing is exchanged in an
    attention: the sum that follows its output projection is the plan's."""
    ranks = getattr(model, "tp_size", None) or 1
    for kind in kinds:
        if kind.kv_heads % ranks or kind.query_heads % ranks:
            raise UsageError(
                f"{kind.query_heads} query heads and {kind.kv_heads} KV heads cannot be dealt to {ranks} ranks",
                "as many ranks as divide the KV heads",
            )
    return [
        kind._replace(query_heads=kind.query_heads // ranks, kv_heads=kind.kv_heads // ranks) if ranks > 1 else kind
        for kind in kinds
    ]
