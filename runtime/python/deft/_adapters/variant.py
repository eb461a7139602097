"""Which attention a caller's arguments ask for, as a spec."""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
from typing import Any, NamedTuple

from .._attention import Attention, compile
from .outside import outside

_NAME = "adapter"  # of every attention that is made here
_LEAST_F32, _MOST_F32 = 2.0**-126, 2.0**128 - 2.0**104
_LAST_POSITION = 2**31 - 2  # a path has at most 2^31 - 1 tokens


@dataclasses.dataclass(frozen=True)
class Variant:
    query_heads: int
    kv_heads: int
    head_dim: int
    page_size: int  # 0: a contiguous cache
    kv_layout: str
    dtype: str  # of q, and of K and V where the next one is empty
    cache_dtype: str
    output_dtype: str
    scale: float
    soft_cap: float  # 0: none
    window_left: int  # tokens before the query's own that it sees; -1: all
    has_scales: bool = False  # of scores and of V, a number each, which a run is given (Scales)
    rope_dim: int = 0  # of a latent cache: elements of a token behind its head_dim; 0: K and V are separate
    has_sinks: bool = False  # a logit of each query head, which a run is given
    sees_path: bool = False  # a query sees its whole request, also the tokens behind its own
    topk: int = 0  # tokens of lists that runs are given; 0: they read what each query sees
    value_dim: int = 0  # of V and the output, where head_dim is K's and q's; 0: one dim for all
    scale_columns: int = 0  # of a latent cache with scales in its rows: elements that share one
    has_head_scales: bool = False  # of has_scales: a number for each KV head
    is_part: bool = False  # its output is one rank's, to be merged by lse: V's scale and sinks come behind that
    products: str = ""  # of fewer bits than q has, as a spec says it (rule A12)

    def __hash__(self) -> int:  # steps and runs look up what they have of it
        return self._hash

    @functools.cached_property
    def _hash(self) -> int:
        return hash(dataclasses.astuple(self))

    @functools.cached_property  # asked for at each step
    def shape(self) -> tuple[object, ...]:
        """What a plan and a captured graph stay with; the rest may change from run to run."""
        more = (self.rope_dim, self.sees_path, self.topk, self.value_dim, self.scale_columns, self.products)
        return (*dataclasses.astuple(self)[:8], *more)

    @functools.cached_property
    def scaled(self) -> Variant:
        """This for runs with any scales."""
        return self if self.has_scales else dataclasses.replace(self, has_scales=True)

    @functools.cached_property
    def sinking(self) -> Variant:
        """This for runs with sinks."""
        return self if self.has_sinks else dataclasses.replace(self, has_sinks=True)

    def running_at(self, scale: float) -> Variant:
        """Which of the two, this or `scaled`, a run with `scale` takes."""
        return self if scale == self.scale else self.scaled

    def at_scale_of(self, other: Variant | None) -> Variant:
        """`other` if only its scale differs: runs then bring the factor between the two, and one attention serves both."""
        return other if other is not None and dataclasses.replace(self, scale=other.scale) == other else self

    def factor_to(self, scale: float) -> float:
        """What scores of this are multiplied by to be those of `scale`."""
        factor = scale / self.scale
        if not _LEAST_F32 <= factor <= _MOST_F32:
            raise outside("sm_scale", scale, f"its attention is of {self.scale:.4g}, and float32 has no number for the factor")
        return factor

    @property
    def first_values(self) -> dict[str, Any] | None:
        """Of parameters, with which a GPU's kernels are loaded as a step is planned: each run brings its own."""
        one = [1.0] * self.kv_heads if self.has_head_scales else 1.0
        scales = Scales(one, None if self.is_part else one) if self.has_scales else None
        return values_of(scales, [0.0] * self.query_heads if self.has_sinks else None)

    def spec(self) -> str:
        dims = [f"kv_heads = {self.kv_heads};", f"head_dim = {self.head_dim};"]
        if self.value_dim:
            dims[1:] = [f"key_dim = {self.head_dim};", f"value_dim = {self.value_dim};"]
        kind, cache = "paged", [f"page_size = {self.page_size}", f"order = {self.kv_layout.lower()}"]
        if not self.page_size:
            kind, cache = "contiguous", []
        if self.rope_dim:
            dims = []
            kind, cache = "latent", [f"dim = {self.head_dim}", f"rope = {self.rope_dim}", f"page_size = {self.page_size}"]
        if self.cache_dtype:
            cache.append(f"dtype = {self.cache_dtype}")
        if self.scale_columns:
            cache.append(f"scales = {self.scale_columns}")
        lines = [
            f"query_heads = {self.query_heads};",
            *dims,
            f"scale = {self.scale!r};",
            f"dtype = {self.dtype};",
            f"kv_cache = {kind}({', '.join(cache)});" if cache else f"kv_cache = {kind};",
        ]
        if self.products:
            lines.append(f"products = {self.products};")
        score, output = "s", ""
        if self.has_scales:
            size, index = ("[kv_heads]", "[kv_head]") if self.has_head_scales else ("", "")
            lines.append(f"param k_scale : f32{size};")
            score = f"s * k_scale{index}"
            if not self.is_part:
                lines.append(f"param v_scale : f32{size};")
                output = f"x * v_scale{index} as "
        if self.has_sinks:
            lines += ["param sinks : f32[query_heads];", "normalize = softmax with sink(sinks[head]);"]
        lines.append(f"output = {output}{self.output_dtype} with lse;")
        if self.soft_cap > 0:
            score = f"{self.soft_cap!r} * tanh({score} / {self.soft_cap!r})"
        if score != "s":
            lines.append(f"score = {score};")
        bound = "path" if self.sees_path else "tree"
        if self.topk:
            lines.append(f"select {{ budget = {self.topk}; by = caller; }}")
        if self.window_left >= 0:
            lines.append(f"mask = {bound} && kv_pos > q_pos - {self.window_left + 1};")
        elif self.sees_path:
            lines.append("mask = path;")
        return f"attention {_NAME} {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n"

    def words(self) -> str:
        """The arguments that it was made of, as FlashInfer and the engines name them."""
        given: dict[str, object] = {"num_qo_heads": self.query_heads, "num_kv_heads": self.kv_heads, "head_dim": self.head_dim}
        if self.value_dim:
            del given["head_dim"]
            given |= {"head_dim_qk": self.head_dim, "head_dim_vo": self.value_dim}
        if self.rope_dim:
            given = {"num_heads": self.query_heads, "head_dim_ckv": self.head_dim, "head_dim_kpe": self.rope_dim}
        if self.page_size:
            given["page_size"] = self.page_size
        given["q_data_type"] = self.dtype
        if self.cache_dtype:
            given["kv_data_type"] = self.cache_dtype + (" with scales" if self.scale_columns else "")
        if self.products:
            given["products"] = self.products
        if self.topk:
            given["topk"] = self.topk
        if self.soft_cap > 0:
            given["logits_soft_cap"] = self.soft_cap
        if self.window_left >= 0:
            given["window_left"] = self.window_left
        return ", ".join(f"{name}={value}" for name, value in given.items())


class Scales(NamedTuple):
    """What scores and the output are multiplied by: the scales of K and of V where elements of an 8-bit cache need some. Numbers,
    or float32 arrays of one for each KV head. That of q, if it has one, is in K's."""

    k_scale: Any
    v_scale: Any  # None: whoever merges parts multiplies by it


def values_of(scales: Scales | None, sinks: Any = None) -> dict[str, Any] | None:
    """Of a run's parameters."""
    values: dict[str, Any] = {} if scales is None else scales._asdict()
    if scales is not None and scales.v_scale is None:
        del values["v_scale"]
    return (values if sinks is None else {**values, "sinks": sinks}) or None


@functools.lru_cache(maxsize=256, typed=True)  # a window of 17.0 is an error, also behind one of 17
def make_variant(
    *,
    query_heads: int,
    kv_heads: int,
    head_dim: int,
    page_size: int,
    kv_layout: str,
    dtype: str,
    output_dtype: str,
    sm_scale: float | None,
    logits_soft_cap: float | None,
    window_left: int,
    cache_dtype: str = "",
    has_scales: bool = False,
    head_dim_vo: int | None = None,
    has_sinks: bool = False,
    has_head_scales: bool = False,
    is_part: bool = False,
    products: str = "",
) -> Variant:
    """Of the arguments as FlashInfer and the engines name them. `head_dim_vo`: of V and the output, None: as K's."""
    value_dim = head_dim if head_dim_vo is None else head_dim_vo
    for argument, dim in (("head_dim", head_dim), ("head_dim_vo", value_dim)):
        if dim % 16 or not 16 <= dim <= 256:
            raise outside(argument, dim, "it is a multiple of 16 from 16 to 256")
    if query_heads > 128 * kv_heads:
        raise outside("num_qo_heads", query_heads, f"there are {kv_heads} KV heads, and at most 128 query heads for each")
    return Variant(
        query_heads,
        kv_heads,
        head_dim,
        page_size,
        kv_layout,
        dtype,
        cache_dtype,
        output_dtype,
        scale_of(sm_scale, head_dim),
        soft_cap_of(logits_soft_cap),
        window_of(window_left),
        has_scales,
        has_sinks=has_sinks,
        value_dim=0 if value_dim == head_dim else value_dim,
        has_head_scales=has_head_scales,
        is_part=is_part,
        products=products,
    )


@functools.lru_cache(maxsize=256)
def make_latent_variant(
    *,
    query_heads: int,
    latent_dim: int,
    rope_dim: int,
    page_size: int,
    dtype: str,
    output_dtype: str,
    sm_scale: float,
    topk: int = 0,
    cache_dtype: str = "",
    has_scales: bool = False,
    scale_columns: int = 0,
    is_part: bool = False,
) -> Variant:
    """Of the arguments as FlashInfer names them for latent caches; `topk` is FlashMLA's."""
    if latent_dim % 16 or not 16 <= latent_dim <= 512:
        raise outside("head_dim_ckv", latent_dim, "it is a multiple of 16 from 16 to 512")
    if rope_dim % 16 or not 16 <= rope_dim <= 128:
        raise outside("head_dim_kpe", rope_dim, "it is a multiple of 16 from 16 to 128")
    if query_heads > 128:
        raise outside("num_heads", query_heads, "there is one KV head, and at most 128 query heads for it")
    if scale_columns and latent_dim % (4 * scale_columns):
        raise outside("head_dim_ckv", latent_dim, f"a token has four scales of {scale_columns} elements each, or eight")
    return Variant(
        query_heads,
        1,
        latent_dim,
        page_size,
        "NHD",
        dtype,
        cache_dtype,
        output_dtype,
        scale_of(sm_scale, latent_dim),
        0.0,
        -1,
        has_scales,
        rope_dim=rope_dim,
        topk=topk,
        scale_columns=scale_columns,
        is_part=is_part,
    )


def soft_cap_of(logits_soft_cap: float | None) -> float:
    """0: none, as FlashInfer has it of whatever is not greater."""
    cap = float(logits_soft_cap or 0.0)
    if cap <= 0:
        return 0.0
    if not _LEAST_F32 <= cap <= _MOST_F32:
        raise outside("logits_soft_cap", cap, f"it is 0 for none, or from {_LEAST_F32:.4g} to {_MOST_F32:.4g}")
    return cap


def window_of(window_left: int) -> int:
    """-1: none. So is one that reaches from every position to the first."""
    try:
        tokens = operator.index(window_left)
    except TypeError:
        raise ValueError(f"window_left is {window_left!r}, it must be a whole number of tokens, or -1 for none") from None
    return tokens if 0 <= tokens < _LAST_POSITION else -1


def scale_of(sm_scale: float | None, head_dim: int, *factors: float | None) -> float:
    scale = 1 / math.sqrt(head_dim) if sm_scale is None else float(sm_scale)
    for factor in factors:
        if factor is not None:
            scale *= float(factor)
    if not _LEAST_F32 <= scale <= _MOST_F32:
        raise outside("sm_scale", scale, f"with the scales of q and K it is from {_LEAST_F32:.4g} to {_MOST_F32:.4g}")
    return scale


@functools.lru_cache(maxsize=256)
def attention_of(variant: Variant) -> Attention:
    return compile(variant.spec(), name=_NAME, title=f"the attention ({variant.words()})")
