"""A model that transformers' tensor-parallel plan has cut: each rank has some heads of every layer, and all tokens."""

from __future__ import annotations

from typing import Any

from .._adapters.ranks import agree_on_configs
from ._kinds import Kind


def heads_of_rank(kinds: list[Kind], model: Any) -> list[Kind]:
    """The layers as this rank attends in them. K and V of the other heads are other ranks', and nothing is exchanged in an
    attention: the sum that follows its output projection is the plan's."""
    ranks = ranks_of(model)
    return [kind.of_rank(ranks) for kind in kinds]


def ranks_of(model: Any) -> int:
    return getattr(model, "tp_size", None) or 1


def agree(model: Any) -> None:
    """On the configs that plans are made with. Each rank that has a part of the model calls it, before it compiles."""
    if ranks_of(model) > 1:
        mesh = getattr(model, "_device_mesh", None)
        names = getattr(mesh, "mesh_dim_names", None) or ()
        agree_on_configs(mesh.get_group("tp") if mesh is not None and "tp" in names else None)
