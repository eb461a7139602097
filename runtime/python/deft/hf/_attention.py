"""The attention function that transformers calls."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator, Protocol

import torch
from transformers import AttentionInterface

from .._errors import UsageError
from ._kinds import Kind
from ._latent import handing_over_latents

NAME = "deft"


class Step(Protocol):
    """The input of the layers in one pass: a model's forward passes its keyword `deft_step` on to them."""

    kinds: list[Kind]

    def attend(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Writes K and V of the step's tokens to the cache, then computes the attention of each query to its path. q is
        [1, heads, tokens, key_dim], the result [tokens, heads, value_dim]."""
        ...


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    softcap: float | None = None,
    deft_step: Step | None = None,
    **unused: Any,
) -> tuple[torch.Tensor, None]:
    if deft_step is None:
        raise UsageError(f'attention "{NAME}" needs the tree of the step', "deft.hf.TreeDecoder(model) runs the model")
    layer = int(module.layer_idx)
    kind = deft_step.kinds[layer]
    # What the config was read as, and what the layer says now, are two sources of one thing.
    for name, said, read in (
        ("scaling", scaling, kind.scale),
        ("sliding_window", sliding_window, kind.window),
        ("softcap", softcap, kind.softcap),
    ):
        if said != read:
            raise UsageError(f"layer {layer} has {name} = {said}, its config was read as {read}")
    if unused.get("s_aux") is not None:
        raise UsageError(f"layer {layer} has sinks, which deft.hf does not know")
    out = deft_step.attend(layer, kind.queries(module, query), key, value)
    return kind.outputs(module, out, query)[None].to(query.dtype), None


# No mask is registered beside it: then transformers makes none, and hands on None.
AttentionInterface.register(NAME, attend)


@contextmanager
def attending_by_deft(model: Any) -> Iterator[None]:
    """Makes the model attend through deft during a step. Afterwards the model is as before: its own attention is back, and its
    modules are in training mode again if they were."""
    config = model.config.get_text_config()
    before = config._attn_implementation
    training = [module for module in model.modules() if module.training]
    config._attn_implementation = NAME
    _set_training(training, False)
    try:
        with handing_over_latents(model):
            yield
    finally:
        config._attn_implementation = before
        _set_training(training, True)


def _set_training(modules: list[torch.nn.Module], mode: bool) -> None:
    """Sets the mode of these modules only. `train` and `eval` would also set the modules below them."""
    for module in modules:
        module.training = mode
