"""A model cut by transformers' tensor-parallel plan: each rank has some heads of every layer, and all tokens."""

from __future__ import annotations

from typing import Any

from .._adapters.ranks import agree_on_configs
from ._kinds import Kind


def heads_of_rank(kinds: list[Kind], model: Any) -> list[Kind]:
    """Returns the kinds of the layers on this rank. Other ranks have the K and V of the other heads. Attentions exchange
    nothing; the plan sums up after the output projection."""
    ranks = ranks_of(model)
    return [kind.of_rank(ranks) for kind in kinds]


def ranks_of(model: Any) -> int:
    return getattr(model, "tp_size", None) or 1


def agree(model: Any) -> None:
    """Makes all ranks use the same configs. Each rank with a part of the model calls it before it compiles."""
    if ranks_of(model) > 1:
        mesh = getattr(model, "_device_mesh", None)
        names = getattr(mesh, "mesh_dim_names", None) or ()
        agree_on_configs(mesh.get_group("tp") if mesh is not None and "tp" in names else None)
