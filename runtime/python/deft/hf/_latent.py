"""Layers with a latent cache (DeepSeek V2 and V3): all heads share a token's entry. The projections that turn it into K and V
are absorbed into q and the output."""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import Any, Iterator, NamedTuple

import torch

from .._errors import UsageError


class LatentKind(NamedTuple):
    """The facts that distinguish one such layer's attention from another's."""

    query_heads: int
    latent_dim: int  # of what a token's K and V are made of, which is V to the kernel
    rope_dim: int  # columns behind it that are turned by the position
    nope_dim: int  # of a head of q, before its rope_dim
    value_dim: int  # of a head's output
    scale: float

    @property
    def window(self) -> None:
        return None

    @property
    def softcap(self) -> None:
        return None

    def spec(self, dtype: str, page_size: int, more: str = "") -> str:
        """Returns the spec, as LayerKind.spec does."""
        lines = [
            f"query_heads = {self.query_heads};",
            f"scale = {float(self.scale)!r};",
            f"dtype = {dtype};",
            f"kv_cache = latent(dim = {self.latent_dim}, rope = {self.rope_dim}, page_size = {page_size});",
        ]
        if more:
            lines.append(more)
        body = "\n".join(f"  {line}" for line in lines)
        return f'import "library.deft";\n\nattention latent {{\n{body}\n}}\n'

    @property
    def entry_shape(self) -> tuple[int, ...]:
        """The shape of a token's cache entry: one row."""
        return (1, self.latent_dim + self.rope_dim)

    @property
    def run_dim(self) -> int:
        return self.latent_dim

    def entries(self, latent: torch.Tensor, rope: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (torch.cat((latent[0, 0], rope[0, 0]), dim=-1),)

    def of_rank(self, ranks: int) -> LatentKind:
        if ranks > 1:
            raise UsageError(f"a model with latent caches cannot be dealt to {ranks} ranks", "load it without tp_size")
        return self

    def queries(self, module: Any, q: torch.Tensor) -> torch.Tensor:
        """Projects q so that its scores with a latent equal its scores with the K made from that latent."""
        nope, rope = q[0].split([self.nope_dim, self.rope_dim], dim=-1)
        to_k, _ = self._projections(module, q)
        return torch.cat((nope @ to_k, rope), dim=-1)[None]

    def outputs(self, module: Any, out: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
        """Turns weighted sums of latents into weighted sums of the V made from them."""
        _, to_v = self._projections(module, q)
        return (out.to(q.dtype).transpose(0, 1) @ to_v.transpose(1, 2)).transpose(0, 1)

    def _projections(self, module: Any, q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns views of W_UK [heads, nope_dim, latent_dim] and W_UV [heads, value_dim, latent_dim]."""
        if not hasattr(module, "expand_kv"):
            raise UsageError(
                f"a {type(module).__name__} of this transformers does not pass its latents", "transformers 5.24 does"
            )
        made = module.kv_b_proj
        # What absorbs them reads weights, and does not call the module, which may do more than multiply.
        if type(made) is not torch.nn.Linear or made.bias is not None:
            raise UsageError(
                f"layer {module.layer_idx} has a kv_b_proj of type {type(made).__name__}, it cannot be absorbed",
                "a torch.nn.Linear without bias can: dequantize it, or merge its adapter",
            )
        weight = made.weight
        if (weight.dtype, weight.device) != (q.dtype, q.device):
            raise UsageError(
                f"layer {module.layer_idx} has a kv_b_proj of {weight.dtype} on {weight.device}, q is {q.dtype} on {q.device}"
            )
        of_heads = weight.view(self.query_heads, self.nope_dim + self.value_dim, self.latent_dim)
        to_k, to_v = of_heads.split([self.nope_dim, self.value_dim], dim=1)
        return to_k, to_v


def latent_kind_of(config: Any, layer: int) -> LatentKind:
    scale = (config.qk_nope_head_dim + config.qk_rope_head_dim) ** -0.5
    rope = getattr(config, "rope_parameters", None) or {}
    # YaRN's, for positions behind those of training. Its other mscale is in the rotary part itself.
    if rope.get("rope_type", "default") != "default" and rope.get("mscale_all_dim"):
        factor = rope["factor"]
        mscale = 0.1 * rope["mscale_all_dim"] * math.log(factor) + 1.0 if factor > 1 else 1.0
        scale = scale * mscale * mscale
    return LatentKind(
        query_heads=config.num_attention_heads,
        latent_dim=config.kv_lora_rank,
        rope_dim=config.qk_rope_head_dim,
        nope_dim=config.qk_nope_head_dim,
        value_dim=config.v_head_dim,
        scale=scale,
    )


@contextmanager
def handing_over_latents(model: Any) -> Iterator[None]:
    """Makes layers with latent caches pass the latent and the rotary part to their attention. They do not compute K and V."""
    modules = [module for module in model.modules() if hasattr(module, "expand_kv")]
    before = [vars(module).get("expand_kv") for module in modules]
    for module in modules:
        module.expand_kv = _as_they_are
    try:
        yield
    finally:
        for module, own in zip(modules, before):
            if own is None:
                del module.expand_kv
            else:
                module.expand_kv = own


def _as_they_are(latent: torch.Tensor, rope: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return latent, rope
