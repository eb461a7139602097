"""The kinds of layers in a model: one spec for each kind, made from the model's config."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Union

import torch

from .._errors import UsageError
from ._latent import LatentKind, latent_kind_of


class LayerKind(NamedTuple):
    """The facts that distinguish one layer's attention from another's."""

    query_heads: int
    kv_heads: int
    head_dim: int
    scale: float
    window: int | None  # sees so many last tokens, the query's own among them
    softcap: float | None

    def spec(self, dtype: str, page_size: int, more: str = "") -> str:
        """Returns the spec. `dtype` is "f16" or "bf16"; `more` is added by a plan of layers."""
        lines = [
            f"query_heads = {self.query_heads};",
            f"kv_heads = {self.kv_heads};",
            f"head_dim = {self.head_dim};",
            f"scale = {float(self.scale)!r};",
            f"dtype = {dtype};",
            f"kv_cache = paged(page_size = {page_size}, order = nhd);",
        ]
        if self.window is not None:
            lines.append(f"mask = tree && sliding_window({self.window});")
        if self.softcap is not None:
            lines.append(f"score = softcap(s, {float(self.softcap)!r});")
        if more:
            lines.append(more)
        name = "window" if self.window is not None else "full"
        body = "\n".join(f"  {line}" for line in lines)
        return f'import "library.deft";\n\nattention {name} {{\n{body}\n}}\n'

    @property
    def entry_shape(self) -> tuple[int, ...]:
        """The shape of a token's cache entry: rows of K and V."""
        return (2, self.kv_heads, self.head_dim)

    @property
    def run_dim(self) -> int:
        """The number of columns in a run's results."""
        return self.head_dim

    def entries(self, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Turns a layer's K and V, [1, kv_heads, tokens, ...], into cache entries: [tokens, ...] each."""
        return k[0].transpose(0, 1), v[0].transpose(0, 1)

    def of_rank(self, ranks: int) -> LayerKind:
        """Returns the kind of this layer on one of several ranks."""
        if self.kv_heads % ranks or self.query_heads % ranks:
            raise UsageError(
                f"{self.query_heads} query heads and {self.kv_heads} KV heads cannot be dealt to {ranks} ranks",
                "as many ranks as divide the KV heads",
            )
        return self._replace(query_heads=self.query_heads // ranks, kv_heads=self.kv_heads // ranks)

    def queries(self, module: Any, q: torch.Tensor) -> torch.Tensor:
        """Turns a layer's q into the q of the spec's attention."""
        return q

    def outputs(self, module: Any, out: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
        """Turns the attention's result into the result that the layer expects."""
        return out


#: A class for each way to attend: all that differs between them is said by its methods.
Kind = Union[LayerKind, LatentKind]


def layer_kinds(config: Any) -> list[Kind]:
    """Returns the kind of each layer of a text model."""
    if config.model_type not in MODEL_TYPES:
        known = ", ".join(MODEL_TYPES)
        raise UsageError(f"there are no specs for models of type `{config.model_type}`", f"it is one of {known}")
    if getattr(config, "use_bidirectional_attention", None):
        raise UsageError("the config has use_bidirectional_attention, a tree's tokens see those before them only")
    return [_READERS[config.model_type](config, layer) for layer in range(config.num_hidden_layers)]


def _kind_of(config: Any, layer: int) -> LayerKind:
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return LayerKind(
        query_heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        head_dim=head_dim,
        scale=(getattr(config, "query_pre_attn_scalar", None) or head_dim) ** -0.5,
        window=_window_of(config, layer),
        # Gemma 3 has the field, and no layer that looks at it.
        softcap=config.attn_logit_softcapping if config.model_type == "gemma2" else None,
    )


def _window_of(config: Any, layer: int) -> int | None:
    window = getattr(config, "sliding_window", None)
    if window is None or config.model_type == "mistral":  # Mistral's layers are alike
        return window
    layer_types = getattr(config, "layer_types", None)
    if layer_types is None:
        raise UsageError("the config has a sliding window, and does not say which layers have it", "layer_types = [...]")
    return window if layer_types[layer] == "sliding_attention" else None


# Configs whose attention is known to be said in full by what reads them. Of others a layer might do what no field tells.
_READERS: dict[str, Callable[[Any, int], Kind]] = {
    **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3_text"), _kind_of),
    **dict.fromkeys(("deepseek_v2", "deepseek_v3"), latent_kind_of),
}
MODEL_TYPES = tuple(_READERS)
