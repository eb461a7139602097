"""What the layers of a model attend by: a spec for each kind of layer, made from the model's config."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._errors import UsageError

#: Configs whose attention is known to be said in full by _kind_of. Of others a layer might do what no field tells.
MODEL_TYPES = ("llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3_text")


class LayerKind(NamedTuple):
    """All that tells one layer's attention from another's."""

    query_heads: int
    kv_heads: int
    head_dim: int
    scale: float
    window: int | None  # sees so many last tokens, the query's own among them
    softcap: float | None

    def spec(self, dtype: str, page_size: int, more: str = "") -> str:
        """`dtype` is "f16" or "bf16"; `more` what a plan of layers adds."""
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


def layer_kinds(config: Any) -> list[LayerKind]:
    """The kind of each layer of a text model."""
    if config.model_type not in MODEL_TYPES:
        known = ", ".join(MODEL_TYPES)
        raise UsageError(f"there are no specs for models of type `{config.model_type}`", f"it is one of {known}")
    if getattr(config, "use_bidirectional_attention", None):
        raise UsageError("the config has use_bidirectional_attention, a tree's tokens see those before them only")
    return [_kind_of(config, layer) for layer in range(config.num_hidden_layers)]


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
