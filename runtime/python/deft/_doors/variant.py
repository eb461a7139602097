"""Which attention a caller's arguments ask for, as a spec."""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
from typing import NamedTuple

from .._attention import Attention, compile
from .._errors import Error
from .outside import outside

_NAME = "door"  # of every attention that is made here
_LEAST_F32, _MOST_F32 = 2.0**-126, 2.0**128 - 2.0**104
_LAST_POSITION = 2**31 - 2  # a path has at most 2^31 - 1 tokens


@dataclasses.dataclass(frozen=True)
class Variant:
    query_heads: int
    kv_heads: int
    head_dim: int
    page_size: int
    kv_layout: str
    dtype: str  # of q, and of K and V where the next one is empty
    cache_dtype: str
    output_dtype: str
    scale: float
    soft_cap: float  # 0: none
    window_left: int  # tokens before the query's own that it sees; -1: all
    has_scales: bool = False  # of scores and of V, a number each, which a run is given (Scales)

    @functools.cached_property  # asked for at each step
    def shape(self) -> tuple[object, ...]:
        """What a plan and a captured graph stay with; the rest may change from run to run."""
        return dataclasses.astuple(self)[:8]

    @functools.cached_property
    def scaled(self) -> Variant:
        """This for runs with any scales."""
        return self if self.has_scales else dataclasses.replace(self, has_scales=True)

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
    def first_values(self) -> dict[str, float] | None:
        """Of parameters, with which a GPU's kernels are loaded as a step is planned: each run brings its own."""
        return Scales(1.0, 1.0)._asdict() if self.has_scales else None

    def spec(self) -> str:
        cache = f"page_size = {self.page_size}, order = {self.kv_layout.lower()}"
        if self.cache_dtype:
            cache += f", dtype = {self.cache_dtype}"
        lines = [
            f"query_heads = {self.query_heads};",
            f"kv_heads = {self.kv_heads};",
            f"head_dim = {self.head_dim};",
            f"scale = {self.scale!r};",
            f"dtype = {self.dtype};",
            f"kv_cache = paged({cache});",
        ]
        score, output = "s", ""
        if self.has_scales:
            lines += ["param k_scale : f32;", "param v_scale : f32;"]
            score, output = "s * k_scale", "x * v_scale as "
        lines.append(f"output = {output}{self.output_dtype} with lse;")
        if self.soft_cap > 0:
            score = f"{self.soft_cap!r} * tanh({score} / {self.soft_cap!r})"
        if score != "s":
            lines.append(f"score = {score};")
        if self.window_left >= 0:
            lines.append(f"mask = tree && kv_pos > q_pos - {self.window_left + 1};")
        return f"attention {_NAME} {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n"

    def words(self) -> str:
        """The arguments that it was made of, as FlashInfer and the engines name them."""
        given: dict[str, object] = {
            "num_qo_heads": self.query_heads,
            "num_kv_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "page_size": self.page_size,
            "q_data_type": self.dtype,
        }
        if self.cache_dtype:
            given["kv_data_type"] = self.cache_dtype
        if self.soft_cap > 0:
            given["logits_soft_cap"] = self.soft_cap
        if self.window_left >= 0:
            given["window_left"] = self.window_left
        return ", ".join(f"{name}={value}" for name, value in given.items())


class Scales(NamedTuple):
    """What scores and the output are multiplied by: the scales of K and of V where elements of an 8-bit cache need some."""

    k_scale: float
    v_scale: float


class speaking_of:
    """deft's errors name an attention; of one that was made of arguments they name whose these are, and what they were."""

    def __init__(self, caller: str, variant: Variant) -> None:
        self._caller, self._variant = caller, variant

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Error) and f"`{_NAME}`" in str(error):
            known = f"{self._caller} ({self._variant.words()})"
            raise type(error)(*(text.replace(f"`{_NAME}`", known) for text in (error.message, error.hint))) from None


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
) -> Variant:
    """Of the arguments as FlashInfer and the engines name them."""
    if head_dim % 16 or not 16 <= head_dim <= 256:
        raise outside("head_dim", head_dim, "it is a multiple of 16 from 16 to 256")
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
    return compile(variant.spec(), name=_NAME)
