"""Attentions made from Python functions for the score, the mask and other hooks."""

from __future__ import annotations

from itertools import count
from typing import Any, Callable

from . import _ops
from ._arguments import expect_whole
from ._attention import Attention, compile
from ._captured import Captures, tracing
from ._compiled import Selects
from ._errors import DiagnosticError, UsageError
from ._expr import BOOL, Expr, lift, number, refuse, shared, text_of
from ._hook_arguments import HEAD, S, X, arguments_of
from ._tensors import dtype_word
from .lang import kv_head, query, token

_CACHE_DTYPES = {written: word for word, name in _ops.EIGHT_BIT_DTYPES.items() for written in (name, word)}
_QUERY = query
Hook = Callable[..., Any]
_DTYPES = {"f16": "f16", "float16": "f16", "bf16": "bf16", "bfloat16": "bf16"}


def attention(
    *,
    query_heads: int, kv_heads: int | None = None, head_dim: int | None = None, name: str = "traced",
    key_dim: int | None = None, value_dim: int | None = None, latent: tuple[int, int] | tuple[int, int, int] | None = None,
    score: Hook | None = None, mask: Hook | None = None, score_mod: Hook | None = None, mask_mod: Hook | None = None,
    query: Hook | None = None, key: Hook | None = None, value: Hook | None = None, output: Any = None, sink: Any = None,
    dtype: Any = "bf16", output_dtype: Any = None, lse: bool = False, scale: float | None = None, sigmoid: bool | float = False,
    page_size: int | None = 16, order: str = "nhd", cache_dtype: Any = None, products: Any = None, bound: str = "tree",
    select: Selects | None = None,
) -> Attention:
    """Compiles an attention from Python functions for its score, mask and other hooks. deft calls them once, on values that record
    operations; the result's `spec` shows the outcome.

    Arguments are bound by name, in any order: a function declares the values that it reads. `score` replaces `s`, q.k * scale.
    `mask` says whether a query sees a token of its path. Both may read `q_pos`, `kv_pos`, `head`, `kv_head`, `depth` and
    `query`. FlexAttention's functions work unchanged, with its names (`score`, `b`, `h`, `q_idx`, `kv_idx`). `query`, `key` and
    `output` replace each element of q, of K when it is read, and of a row of results. `value` multiplies V by a factor of the
    token. `sink` (a function of `head`, an array or a number) is a logit in the denominator only. These hooks may read `x` (the
    element), `x_half` and `x_pair` (its rotary partners), `x_rms`, `dim`, `pos`, `head`, `kv_head`, `q_pos` and `kv_pos`; an
    error lists the names that a hook may read. `output` is a dtype, or such a function; its result has `output_dtype`.

    Use functions of torch, NumPy and deft.lang; `//` and `%` are Python's. An error names an operation that the language cannot
    express. A captured array with a number for each head becomes a parameter of its name, with these values unless a run passes
    others. So does an array over the cache's tokens (`doc[lang.token]`, `scale[lang.token, lang.kv_head]`) or over queries
    (`own[lang.query]`).

    `key_dim` (also of q) and `value_dim` (also of the output) replace `head_dim` if they differ. `latent=(512, 64)` replaces
    all three with a latent cache, `latent(dim = 512, rope = 64)`: it has one KV head, K is all 576 elements of a token, V is
    the first 512, and `scale` is required. With a `cache_dtype` of 8 bits, `latent=(512, 64, 128)` has a float32 scale for each
    128 of the 512 elements in a token's row; the row's 656 bytes are the last dimension of k.

    `page_size=None` is a contiguous cache. `cache_dtype` is the type of K and V if it differs from q's: with pages, also 8-bit
    floats (torch.float8_e4m3fn, "fp8_e5m2"). `products` of an 8-bit type, with a cache of that type, also rounds q and the
    weights to 8 bits, which is less exact (rule A12). `sigmoid` is True, or a bias, for sigmoid attention.
    `select=deft.Selects(budgets=(1024,))` is for layers that choose tokens. `bound="path"` is for masks that show later tokens,
    such as `lambda q_pos, kv_pos: (kv_pos <= q_pos) | (kv_pos < 512)`. Such masks decide on all tokens of the query's path, to
    the end of its node. With `"tree"` they decide only on those up to the query's own.

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
    if kv_heads is None:
        kv_heads = query_heads if latent is None else 1
    captures = Captures(query_heads, kv_heads, HEAD, kv_head, _QUERY, token)
    if bound not in ("tree", "path"):
        raise UsageError(f"there is no bound {bound!r} of a mask", "tree and path")
    made, output = (output, None) if _is_function(output) else (None, output)
    if output is not None and output_dtype is not None:
        raise UsageError("both output and output_dtype are dtypes")
    output = output_dtype if output is None else output
    if sink is not None and sigmoid is not False:
        raise UsageError("a sigmoid has no sink")
    functions = {
        "mask": _only("mask", mask, mask_mod),
        "score": _only("score", score, score_mod),
        "query": query,
        "key": key,
        "value": value,
        "output": made,
    }
    hooks = {what: _trace(what, function, captures, bound) for what, function in functions.items()}
    hooks["sink"] = _sink(sink, captures, bound)
    if latent is not None and (page_size is None or order != "nhd"):
        raise UsageError("a latent cache has pages, and no order of heads", "give a page_size, and no order")
    given = {"head_dim": head_dim, "key_dim": key_dim, "value_dim": value_dim}
    lines = [f"query_heads = {query_heads};", f"kv_heads = {kv_heads};"]
    lines += [f"{what} = {dim};" for what, dim in given.items() if dim is not None]
    kind = _dtype(dtype)
    if kind != "bf16":
        lines.append(f"dtype = {kind};")
    cache = "" if cache_dtype is None else f", dtype = {_dtype(cache_dtype, _CACHE_DTYPES)}"
    if page_size is None and cache:
        raise UsageError(f"a contiguous cache has q's dtype, not {cache_dtype}", "give a page_size")
    if latent is not None:
        dim, rope, *scales = latent
        cache += "".join(f", scales = {columns}" for columns in scales)
        lines.append(f"kv_cache = latent(dim = {dim}, rope = {rope}, page_size = {page_size}{cache});")
    elif page_size is None:
        lines.append("kv_cache = contiguous;")
    elif cache or (page_size, order) != (16, "nhd"):
        lines.append(f"kv_cache = paged(page_size = {page_size}, order = {order}{cache});")
    if products is not None:
        lines.append(f"products = {_dtype(products, _CACHE_DTYPES)};")
    if scale is not None:
        lines.append(f"scale = {float(scale)!r};")
    if sigmoid is not False:
        lines.append("normalize = sigmoid;" if sigmoid is True else f"normalize = sigmoid({float(sigmoid)!r});")
    written = f"{_dtype(output or dtype)}{' with lse' if lse else ''}"
    if made is None and (output is not None or lse):
        lines.append(f"output = {written};")
    if select is not None:
        lines.append(_select_block(select))
    lines += captures.declarations
    lines += _hooks(hooks, bound, written, captures)
    text = f"attention {name} {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n"
    compiled = compile(text, name=name)
    compiled.captured.update(captures.values)
    return compiled


def _dtype(dtype: Any, more: dict[str, str] | None = None) -> str:
    known = {**_DTYPES, **(more or {})}
    word = known.get(dtype_word(dtype))
    if word is None:
        raise UsageError(f"there is no attention of dtype {dtype}", " and ".join(dict.fromkeys(known.values())))
    return word


def _select_block(select: Selects) -> str:
    if not isinstance(select, Selects):
        raise UsageError(f"select is {select!r}, it must be a deft.Selects", "deft.Selects(budgets=(1024,))")
    budgets = [str(expect_whole("a budget of select", budget, least=1)) for budget in select.budgets]
    kept = [] if select.by == "caller" else [f"{name} = {expect_whole(name, getattr(select, name), least=0)};" for name in ("keep_first", "keep_last")]
    budget = budgets[0] if len(budgets) == 1 else f"tune({', '.join(budgets)})"
    return f"select {{ budget = {budget}; by = {select.by}; {' '.join(kept)} }}"


def _only(what: str, one: Any, other: Any) -> Any:
    if one is not None and other is not None:
        raise UsageError(f"both {what} and {what}_mod are given")
    return other if one is None else one


def _trace(what: str, function: Any, captures: Captures, bound: str) -> Expr | None:
    if function is None:
        return None
    if not _is_function(function):
        raise UsageError(f"{what} is {function!r}, it must be a function")
    taken = arguments_of(what, function, bound)
    before = tracing.set(captures)
    try:
        result = captures.open(function)(*taken.by_place, **taken.by_name)
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
    return lift(result) if what == "mask" else number(result)


def _sink(sink: Any, captures: Captures, bound: str) -> Expr | None:
    if sink is None or _is_function(sink):
        return _trace("sink", sink, captures, bound)
    if isinstance(getattr(sink, "shape", None), tuple) and len(sink.shape) > 0:
        return captures.element("sinks", sink, HEAD)
    return number(sink)


def _is_function(what: Any) -> bool:
    return callable(what) and not isinstance(what, type)


def _hooks(hooks: dict[str, Expr | None], bound: str, written: str, captures: Captures) -> list[str]:
    """Returns the `let`s and the hooks that use them; `written` is the type of an output."""
    mask = hooks["mask"]
    if mask is not None and mask.kind != BOOL:
        raise refuse(f"the mask `{mask}`, which is a number", "compare it")
    roots = [expr for expr in hooks.values() if expr is not None]
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
    for what in ("score", "query", "key", "value"):
        expr = hooks[what]
        if expr is not None and expr is not (S if what == "score" else X):
            lines.append(f"{what} = {text_of(expr, names)};")
    if (sink := hooks["sink"]) is not None:
        lines.append(f"normalize = softmax with sink({text_of(sink, names)});")
    if (output := hooks["output"]) is not None:
        lines.append(f"output = {text_of(output, names)} as {written};")
    return lines
