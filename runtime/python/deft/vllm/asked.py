"""Reads the user's settings from vLLM: --additional-config '{"deft": {"products": "fp8_e4m3"}}'."""

from __future__ import annotations

from typing import Any

from .._adapters.outside import outside

_PRODUCTS = ("fp8_e4m3",)


def current_config() -> Any:
    """Returns vLLM's config while it makes layers, otherwise None."""
    from vllm.config import get_current_vllm_config_or_none

    return get_current_vllm_config_or_none()


def products_of(vllm_config: Any) -> str:
    """Returns the type in which q and K, and weights and V, are multiplied (rule A12). An empty text means 16 bits."""
    more = getattr(vllm_config, "additional_config", None)
    asked = more.get("deft", {}) if isinstance(more, dict) else {}
    for name in asked:
        if name != "products":
            raise outside("additional_config", {"deft": {name: asked[name]}}, "deft has `products` there, and nothing else")
    products: str = asked.get("products", "")
    if products and products not in _PRODUCTS:
        raise outside("products", products, f"they are of {' or '.join(_PRODUCTS)}, or, without it, of 16 bits")
    return products
