"""An attention whose score and mask are Python functions."""

from __future__ import annotations

import inspect
from itertools import count
from typing import Any, Callable

from ._attention import Attention, compile
from ._captured import Captures, tracing
from ._errors import DiagnosticError, UsageError
from ._expr import BOOL, F32, I32, Expr, lift, name, number, refuse
from ._print import shared, text_of
from .lang import kv_head

_S = name("s", F32)
_HEAD = name("head", I32, True)
# -1 where there is nothing before: under `tree` no token is there that anything could be asked for, and `path` takes 0 tokens of a root.
_Q_POS = name("q_pos", I32, True)
_KV_POS = name("kv_pos", I32, True)
_BATCH = Expr("batch", (), I32, True)
_CACHE_DTYPES = {"float8_e4m3fn": "fp8_e4m3", "fp8_e4m3": "fp8_e4m3", "float8_e5m2": "fp8_e5m2", "fp8_e5m2": "fp8_e5m2"}
_DTYPES = {"f16": "f16", "float16": "f16", "bf16": "bf16", "bfloat16": "bf16"}


def attention(
    *,
    query_heads: int,
    kv_heads: int | None = None,
    head_dim: int,
    score: Callable[..., Any] | None = None,
    mask: Callable[..., Any] | None = None,
    score_mod: Callable[..., Any] | None = None,
    mask_mod: Callable[..., Any] | None = None,
    name: str = "traced",
    dtype: Any = "bf16",
    output: Any = None,
    lse: bool = False,
    scale: float | None = None,
    page_size: int | None = 16,
    order: str = "nhd",
    cache_dtype: Any = None,
    sigmoid: bool | float = False,
    bound: str = "tree",
) -> Attention:
    """Compiles an attention whose score and mask are Python functions. They are called once, on values that note what is
    done to them; `spec` of what comes back shows what became of them.

    `score(s, head, q_pos, kv_pos)` takes the place of s = q.k * scale, `mask(q_pos, kv_pos)` says which tokens of its path
    a query sees. FlexAttention's `score_mod(score, b, h, q_idx, kv_idx)` and `mask_mod(b, h, q_idx, kv_idx)` are taken as
    they are, under either name: they are told by their number of arguments. Functions of torch, NumPy and deft.lang can be
    used; what the language cannot say is an error that names it. An array that a function has captured, with a number for
    each head, becomes a parameter of its name, with these values where a run gives no others.

    `page_size=None` is a contiguous cache. `cache_dtype` is that of K and V where it is another than q's: with pages, and
    8-bit floats, too (torch.float8_e4m3fn, "fp8_e5m2"). `sigmoid` is True, or a bias, for sigmoid attention.

    `bound="path"` is for masks that show a query tokens behind its own, such as
    `lambda q_pos, kv_pos: (kv_pos <= q_pos) | (kv_pos < 512)`: the mask decides on all tokens of the query's path, to the end of
    its node. By `"tree"` it decides on those up to the query's own, and no mask shows more.

    >>> import deft, numpy
    >>> slopes = numpy.array([0.5, 0.25, 0.125, 0.0625], "float32")
    >>> att = deft.attention(query_heads=4, head_dim=64, page_size=None, dtype="f16",
    ...                      score=lambda s, head, q_pos, kv_pos: s - slopes[head] * (q_pos - kv_pos),
    ...                      mask=lambda q_pos, kv_pos: (q_pos - kv_pos < 128) | (kv_pos < 4))
    >>> print(att.spec)
    attention traced {
      query_heads = 4;
      kv_heads = 4;
      head_dim = 64;
      dtype = f16;
      kv_cache = contiguous;
      param slopes : f32[query_heads];
      let t1 = q_pos - kv_pos;
      mask = tree && (t1 < 128 || kv_pos < 4);
      score = s - slopes[head] * t1;
    }
    <BLANKLINE>
    """
    kv_heads = query_heads if kv_heads is None else kv_heads
    captures = Captures(query_heads, kv_heads, _HEAD, kv_head)
    if bound not in ("tree", "path"):
        raise UsageError(f"there is no bound {bound!r} of a mask", "tree and path")
    traced_score = _trace("score", _only("score", score, score_mod), captures, _SCORE_ARGUMENTS)
    traced_mask = _trace("mask", _only("mask", mask, mask_mod), captures, _MASK_ARGUMENTS)
    lines = [f"query_heads = {query_heads};", f"kv_heads = {kv_heads};", f"head_dim = {head_dim};"]
    kind = _dtype(dtype)
    if kind != "bf16":
        lines.append(f"dtype = {kind};")
    cache = "" if cache_dtype is None else f", dtype = {_dtype(cache_dtype, _CACHE_DTYPES)}"
    if page_size is None and cache:
        raise UsageError(f"a contiguous cache has q's dtype, not {cache_dtype}", "give a page_size")
    if page_size is None:
        lines.append("kv_cache = contiguous;")
    elif cache or (page_size, order) != (16, "nhd"):
        lines.append(f"kv_cache = paged(page_size = {page_size}, order = {order}{cache});")
    if scale is not None:
        lines.append(f"scale = {float(scale)!r};")
    if sigmoid is not False:
        lines.append("normalize = sigmoid;" if sigmoid is True else f"normalize = sigmoid({float(sigmoid)!r});")
    if output is not None or lse:
        lines.append(f"output = {_dtype(output or dtype)}{' with lse' if lse else ''};")
    lines += captures.declarations
    lines += _hooks(traced_score, traced_mask, bound, captures)
    text = f"attention {name} {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n"
    compiled = compile(text, name=name)
    compiled.captured.update(captures.values)
    return compiled


def _dtype(dtype: Any, more: dict[str, str] | None = None) -> str:
    known = {**_DTYPES, **(more or {})}
    word = known.get(str(getattr(dtype, "__name__", dtype)).rpartition(".")[2])
    if word is None:
        raise UsageError(f"there is no attention of dtype {dtype}", " and ".join(dict.fromkeys(known.values())))
    return word


def _only(what: str, one: Any, other: Any) -> Any:
    if one is not None and other is not None:
        raise UsageError(f"both {what} and {what}_mod are given")
    return other if one is None else one


# By their number.
_SCORE_ARGUMENTS = {4: (_S, _HEAD, _Q_POS, _KV_POS), 5: (_S, _BATCH, _HEAD, _Q_POS, _KV_POS)}
_MASK_ARGUMENTS = {2: (_Q_POS, _KV_POS), 4: (_BATCH, _HEAD, _Q_POS, _KV_POS)}


def _trace(what: str, function: Any, captures: Captures, arguments: dict[int, tuple[Expr, ...]]) -> Expr | None:
    if function is None:
        return None
    taken = arguments.get(_count(function))
    if taken is None:
        numbers = " or ".join(str(count) for count in arguments)
        raise UsageError(f"the {what} takes {_count(function)} arguments, not {numbers}", "see deft.attention")
    before = tracing.set(captures)
    try:
        result = captures.open(function)(*taken)
    except DiagnosticError as error:
        raise DiagnosticError(f"the {what}: {error.message}", error.hint) from error
    except IndexError as error:  # NumPy's, which has asked a traced value for its number
        raise DiagnosticError(
            f"the {what}: a spec cannot say an element of an array that is no variable around the function",
            "give it a name of its own: w = self.w",
        ) from error
    finally:
        tracing.reset(before)
    if result is None:
        raise DiagnosticError(f"the {what} gives nothing back")
    return number(result) if what == "score" else lift(result)


def _count(function: Any) -> int:
    """How many arguments it must be given."""
    parameters = inspect.signature(function).parameters.values()
    return sum(
        parameter.default is parameter.empty and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        for parameter in parameters
    )


def _hooks(score: Expr | None, mask: Expr | None, bound: str, captures: Captures) -> list[str]:
    """`let`s, the mask and the score."""
    if mask is not None and mask.kind != BOOL:
        raise refuse(f"the mask `{mask}`, which is a number", "compare it")
    roots = [expr for expr in (mask, score) if expr is not None]
    names: dict[int, str] = {}
    lines = []
    free = (name for name in map("t{}".format, count(1)) if not captures.has(name))
    for expr in shared(roots):
        text = text_of(expr, names)
        names[id(expr)] = next(free)
        lines.append(f"let {names[id(expr)]} = {text};")
    if mask is not None and not (mask.op == "name" and mask.args[0] == "true"):
        text = text_of(mask, names)
        lines.append(f"mask = {bound} && ({text});")
    elif bound != "tree":
        lines.append(f"mask = {bound};")
    if score is not None and score is not _S:
        lines.append(f"score = {text_of(score, names)};")
    return lines
