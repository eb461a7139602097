"""Functions become specs, and the specs compute what the functions do."""

import functools
import inspect
import math

import deft
import numpy as np
import pytest
from deft import _ops, lang
from evaluate import assert_close, evaluate

HEADS, DIM = 4, 16
SLOPES = np.array([0.5, 0.25, 0.125, 0.0625], "float32")


def attention(**hooks):
    return deft.attention(query_heads=HEADS, kv_heads=2, head_dim=DIM, page_size=None, dtype="f16", **hooks)


def capped(s, head, q_pos, kv_pos):
    return 20.0 * np.tanh(s / 20.0)


def alibi(s, head, q_pos, kv_pos):
    return s - SLOPES[head] * (q_pos - kv_pos)


def alibi_by_formula(s, head, q_pos, kv_pos):
    return s + (kv_pos - q_pos) * np.exp2(-((head + 1) * 8.0 / HEADS))


def biased(s, head, q_pos, kv_pos):
    return np.where((q_pos - kv_pos) % 3 == 1, s * 0.5, s + (kv_pos < 7) * 2 - abs(q_pos - 2 * kv_pos) / 64)


def powers(s, head, q_pos, kv_pos):
    near = np.minimum(q_pos - kv_pos, 8) ** 2 / 16
    return s + near - np.maximum(near, 1.0) + np.sqrt(near + 1)


def window(q_pos, kv_pos):
    return (q_pos - kv_pos < 32) | (kv_pos < 4)


def blocks(q_pos, kv_pos):
    return (q_pos // 16 == kv_pos // 16) | (kv_pos // 32 <= 0)


def negative_remainder(q_pos, kv_pos):
    return (kv_pos - q_pos) % 4 != 1


def rounded(q_pos, kv_pos):
    return kv_pos >= q_pos // 8 * 8 - 16


def inverted(q_pos, kv_pos):
    return ~(kv_pos == 3) & ((kv_pos < 50) ^ (q_pos - kv_pos < 20))


def by_quotients(s, head, q_pos, kv_pos):
    return s - 0.25 * ((kv_pos - q_pos) // 16) + (q_pos - kv_pos) // -7 / 32 + np.floor_divide(kv_pos, head + 2) / 16


def waves(s, head, q_pos, kv_pos):
    return s * np.cos(q_pos * 0.25) + np.sin(kv_pos * 0.5) + np.floor(s * 2.0) - 2.0 ** -(head + 1) * np.power(0.5, kv_pos % 3)


def neighbours(q_pos, kv_pos):
    (q_row, q_column), (row, column) = divmod(q_pos, 8), divmod(kv_pos, 8)
    return (abs(np.clip(q_row, 2, 11) - row) <= 2) & (abs(q_column - column) <= 3)


def same(s, head, q_pos, kv_pos):
    return s


def shuffled(rng, function):
    """The same with its arguments in another order, some of them by FlexAttention's names."""
    if function is None:
        return None
    names = [*inspect.signature(function).parameters]
    flex = {"s": "score", "head": "h", "q_pos": "q_idx", "kv_pos": "kv_idx"}
    called = {name: flex[name] if rng.random() < 0.3 else name for name in names}
    order = ", ".join(rng.permutation([*called.values()]))
    given = ", ".join(f"{name}={own}" for name, own in called.items())
    return eval(f"lambda {order}: function({given})", {"function": function})


def test_every_function_here_computes_the_same_in_both_worlds(rng, family):
    q = rng.standard_normal((2, HEADS, DIM)).astype("float16")
    k, v = (rng.standard_normal((114, 2, DIM)).astype("float16") for _ in range(2))
    for score, mask in [
        (capped, None),
        (alibi, None),
        (alibi_by_formula, None),
        (biased, None),
        (powers, None),
        (by_quotients, None),
        (waves, neighbours),
        (None, window),
        (None, blocks),
        (None, negative_remainder),
        (None, rounded),
        (None, inverted),
        (alibi, window),
        (same, blocks),
    ]:
        att = attention(score=score, mask=mask)
        out = att.run(family, q, k, v)
        assert_close(out, evaluate(family, q, k, v, DIM**-0.5, score, mask)[0], "float16")
        assert attention(score=shuffled(rng, score), mask=shuffled(rng, mask)).spec == att.spec


def test_flexattention_takes_its_own_signatures():
    def score_mod(score, b, h, q_idx, kv_idx):
        return score + SLOPES[h] * (kv_idx - q_idx)

    def mask_mod(b, h, q_idx, kv_idx):
        return q_idx >= kv_idx

    att = attention(score_mod=score_mod, mask_mod=mask_mod)
    assert "score = s + SLOPES[head] * (kv_pos - q_pos);" in att.spec
    assert "mask = tree && (q_pos >= kv_pos);" in att.spec
    assert att.captured == {"SLOPES": SLOPES.tolist()}
    assert attention(score=score_mod, mask=mask_mod).spec == att.spec


def test_flexattentions_own_masks_are_taken_joined_and_as_methods():
    torch = pytest.importorskip("torch")
    flex = pytest.importorskip("torch.nn.attention.flex_attention")

    class Windows:
        def __init__(self, slopes):
            self.slopes = slopes

        def near(self, b, h, q_idx, kv_idx):
            return q_idx - kv_idx < 8

        def score(self, score, b, h, q_idx, kv_idx):
            return score + self.slopes[h]

    windows, first = Windows(torch.tensor(SLOPES)), torch.tensor([1, 2, 3, 4], dtype=torch.int32)
    one_of = flex.or_masks(windows.near, lambda b, h, q_idx, kv_idx: kv_idx < first[h])
    att = attention(score_mod=windows.score, mask_mod=flex.and_masks(flex.noop_mask, one_of))
    assert "mask = tree && (q_pos - kv_pos < 8 || kv_pos < first[head]);" in att.spec
    assert "score = s + array[head];" in att.spec
    assert att.captured == {"array": SLOPES.tolist(), "first": [1, 2, 3, 4]}
    blocks = attention(mask=lambda b, h, q_idx, kv_idx: torch.div(q_idx, 4, rounding_mode="floor") == kv_idx // 4)
    assert "mask = tree && (q_pos - q_pos % 4 == kv_pos - kv_pos % 4);" in blocks.spec


def test_what_partial_has_bound_is_captured_by_its_name():
    def slanted(slopes, score, b, h, q_idx, kv_idx):
        return score - slopes[h] * q_idx

    att = attention(score_mod=functools.partial(slanted, SLOPES))
    assert "param slopes : f32[query_heads];" in att.spec
    halved = functools.partial(np.multiply, 0.5)
    assert "score = 0.5 * s;" in attention(score=lambda s, head, q_pos, kv_pos: halved(s)).spec


def test_captured_arrays_are_parameters_that_a_run_may_replace(rng, family):
    tables = {"bias": rng.standard_normal(HEADS).astype("float32"), "cap": np.array(5.0, "float32")}

    def make():
        bias, cap = tables["bias"], tables["cap"]

        def inner(s, h):
            return s + bias[h]

        return lambda s, head, q_pos, kv_pos: cap * np.tanh(inner(s, head) / cap)

    att = attention(score=make())
    assert [(param.name, param.length) for param in att.params] == [("cap", 1), ("bias", HEADS)] or [
        (param.name, param.length) for param in att.params
    ] == [("bias", HEADS), ("cap", 1)]
    q = rng.standard_normal((2, HEADS, DIM)).astype("float16")
    k, v = (rng.standard_normal((114, 2, DIM)).astype("float16") for _ in range(2))
    assert_close(att.run(family, q, k, v), evaluate(family, q, k, v, DIM**-0.5, make())[0], "float16")
    tables = {"bias": np.zeros(HEADS, "float32"), "cap": np.array(2.0, "float32")}
    out = att.run(family, q, k, v, params=tables)
    assert_close(out, evaluate(family, q, k, v, DIM**-0.5, make())[0], "float16")


def test_captured_tables_are_read_at_any_number(rng, family):
    biases = rng.standard_normal((HEADS, 8)).astype("float32")

    def score(s, head, q_pos, kv_pos):
        return s + biases[head, np.minimum(q_pos - kv_pos, 7)]

    att = attention(score=score)
    assert f"param biases : f32[{8 * HEADS}];" in att.spec
    q = rng.standard_normal((2, HEADS, DIM)).astype("float16")
    k, v = (rng.standard_normal((114, 2, DIM)).astype("float16") for _ in range(2))
    assert_close(att.run(family, q, k, v), evaluate(family, q, k, v, DIM**-0.5, score)[0], "float16")


def test_what_is_used_twice_is_written_once():
    att = attention(score=lambda s, head, q_pos, kv_pos: s * lang.exp(q_pos - kv_pos) + lang.exp(q_pos - kv_pos))
    assert att.spec.count("exp(") == 1 and "let t1 = exp(q_pos - kv_pos);" in att.spec


@pytest.mark.parametrize("word", _ops.FUNCTIONS)
def test_every_function_of_the_language_can_be_said(word):
    names = {"min": lang.minimum, "max": lang.maximum, "abs": lang.absolute, "floor_div": lang.floor_divide}
    function = names.get(word) or getattr(lang, word)
    if word in _ops.REALS or word == "abs":
        spec = deft.attention(query_heads=2, kv_heads=1, head_dim=32, score=lambda s: function(s)).spec
    else:
        spec = deft.attention(query_heads=2, kv_heads=1, head_dim=32, score=lambda s, q_pos, kv_pos: s + function(q_pos, kv_pos + 1)).spec
    assert f"{word}(" in spec
    with pytest.raises(deft.DiagnosticError, match=word):  # a word that the compiler knows as its own
        deft.compile(f"attention a {{ query_heads = 2; kv_heads = 1; head_dim = 32; param {word} : f32 = 1.0; }}")


def test_names_that_a_spec_may_not_declare_are_changed():
    tree = SLOPES
    att = attention(score=lambda s, head, q_pos, kv_pos: s + tree[head])
    assert "param tree_ : f32[query_heads];" in att.spec
    t1 = σ = SLOPES
    att = attention(score=lambda s, head, q_pos, kv_pos: s + t1[head] * (q_pos - kv_pos) * (q_pos - kv_pos))
    assert "param t1 : f32[query_heads];" in att.spec and "let t2 = q_pos - kv_pos;" in att.spec
    assert "param u3c3 : f32[query_heads];" in attention(score=lambda s, head, q_pos, kv_pos: s + σ[head]).spec


@pytest.mark.parametrize(
    "score, message",
    [
        (lambda s, head, q_pos, kv_pos: s if q_pos > kv_pos else 0.0, "`if`, `and`"),
        (lambda s, head, q_pos, kv_pos: max(s, 0.0), "`if`, `and`"),
        (lambda s, head, q_pos, kv_pos: s + (1 < kv_pos < 5), "chain of comparisons"),
        (lambda s, head, q_pos, kv_pos: math.tanh(s), "a function of Python's math"),
        (lambda s, head, q_pos, kv_pos: np.arctan(s), "the function `arctan`"),
        (lambda s, head, q_pos, kv_pos: s.cumsum(0), "`.cumsum` of `s`"),
        (lambda s, head, q_pos, kv_pos: s // 16, "the floor division `//` of a number that is not whole"),
        (lambda s, head, q_pos, kv_pos: s + q_pos // 0, "the floor division `q_pos // 0`"),
        (lambda s, head, q_pos, kv_pos: s ** (q_pos - kv_pos), "the power `** q_pos - kv_pos`"),
        (lambda s, head, q_pos, kv_pos: s % 2.0, "the remainder `%` of a number that is not whole"),
        (lambda s, head, q_pos, kv_pos: s**2.5, "the power `** 2.5`"),
        (lambda s, head, q_pos, kv_pos: s + (q_pos & kv_pos), "the bitwise `&` of numbers"),
        (lambda s, head, q_pos, kv_pos: s + (q_pos << 1), "the shift `<<`"),
        (lambda s, head, q_pos, kv_pos: s + SLOPES[head, kv_pos], "an index for each dimension"),
        (lambda s, head, q_pos, kv_pos: s + SLOPES[1:], "an index for each dimension"),
        (lambda s, head, q_pos, kv_pos: s + SLOPES.sum(), "`.sum` of the captured array `SLOPES`"),
        (lambda s, head, q_pos, kv_pos: s + np.zeros(3), "an array of shape (3,)"),
        (lambda s, b, h, q_pos, kv_pos: s + b, "the batch index `b`"),
        (lambda s, head, q_pos, kv_pos: s + math.nan, "the number nan"),
        (lambda s, head, q_pos, kv_pos: "s", "a str"),
        (lambda s, head, q_pos, kv_pos: None, "gives nothing back"),
    ],
)
def test_what_a_spec_cannot_say_is_named(score, message):
    with pytest.raises(deft.DiagnosticError) as caught:
        attention(score=score)
    assert message in str(caught.value)


def test_arguments_are_bound_by_name_in_any_order():
    assert "mask = tree && (q_pos - kv_pos < 128);" in attention(mask=lambda kv_pos, q_pos: q_pos - kv_pos < 128).spec
    assert "mask = tree && (kv_pos < 9 || head < 2);" in attention(mask=lambda head, kv_pos: (kv_pos < 9) | (head < 2)).spec
    turned = attention(score=lambda s, kv_pos, q_pos, head: s - SLOPES[head] * (q_pos - kv_pos))
    assert turned.spec == attention(score=alibi).spec
    assert "score = s * 2;" in attention(score=lambda s: s * 2).spec
    assert "score = s + kv_head - depth * query;" in attention(score=lambda query, s, depth, kv_head: s + kv_head - depth * query).spec
    assert "score = s + (kv_pos - q_pos);" in attention(score_mod=lambda kv_idx, q_idx, score: score + (kv_idx - q_idx)).spec
    assert "mask = tree && (depth < 2);" in attention(mask=lambda: lang.depth < 2).spec


def test_what_has_a_default_or_is_bound_keeps_it():
    def slanted(slope, s, q_pos, kv_pos, head=3):
        return s - slope * (q_pos - kv_pos) + head

    bound = functools.partial(slanted, 0.5)
    expected = "score = s - 0.5 * (q_pos - kv_pos) + 3;"
    assert expected in attention(score=bound).spec
    assert expected in attention(score=functools.partial(slanted, slope=0.5)).spec  # the others are then given by name
    assert "score = s + 1;" in attention(score=lambda s, *, b=1: s + b).spec

    @functools.wraps(window)
    def wrapped(*arguments):
        return ~window(*arguments)

    assert "mask = tree && (!(q_pos - kv_pos < 32 || kv_pos < 4));" in attention(mask=wrapped).spec


@pytest.mark.parametrize(
    "hooks, message, hint",
    [
        ({"mask": lambda a, kv_pos: a < 3}, "the mask has an unknown argument `a`", "rename `a` to `q_pos`; "),
        ({"mask": lambda a, b: a < b}, "the mask has an unknown argument `a`", "rename `a` to `q_pos` and `b` to `kv_pos`; "),
        ({"mask": lambda k, q: q < k}, "the mask has unknown arguments `k` and `q`", "rename `k` to `kv_pos` and `q` to `q_pos`; "),
        ({"mask": lambda kv_pos, a: a < 3}, "the mask has an unknown argument `a`", "arguments are bound by name"),
        ({"mask": lambda qpos, kvpos: qpos < kvpos}, "`qpos` and `kvpos`", "rename `qpos` to `q_pos` and `kvpos` to `kv_pos`; "),
        ({"mask": lambda a, b, c: a < b}, "unknown arguments `a` and `c`", "arguments are bound by name: q_pos, kv_pos, head"),
        ({"mask": lambda s, kv_pos: s < 1}, "an unknown argument `s`", ", or as FlexAttention calls them: b, h, q_idx, kv_idx"),
        ({"score": lambda s, h, q, k: s}, "unknown arguments `q` and `k`", "rename `q` to `q_pos` and `k` to `kv_pos`; "),
        ({"score": lambda x, b, h, i, j: x}, "`x`, `i` and `j`", "rename `x` to `s` and `i` to `q_pos` and `j` to `kv_pos`; "),
        ({"score": lambda s, *rest: s}, "the score has the arguments `*rest`, which have no names", "functools.wraps"),
        ({"score": divmod}, "", "arguments are bound by name: s, q_pos, kv_pos, head, kv_head, depth, query, or as FlexAttention calls them: b, score, h, "),
        ({"score": 3}, "score is 3, it must be a function", ""),
    ],
)
def test_an_argument_of_another_name_is_an_error(hooks, message, hint):
    with pytest.raises(deft.UsageError) as caught:
        attention(**hooks)
    assert message in caught.value.message and hint in caught.value.hint, str(caught.value)
    assert caught.value.hint.startswith("rename") == hint.startswith("rename")


def test_a_hook_that_is_no_bool_or_twice_there_is_an_error():
    with pytest.raises(deft.DiagnosticError, match="which is a number"):
        attention(mask=lambda q_pos, kv_pos: q_pos - kv_pos)
    with pytest.raises(deft.UsageError, match="both score and score_mod"):
        attention(score=same, score_mod=same)


def test_quotients_that_no_number_is_too_large_for():
    assert "mask = tree && (floor_div(q_pos, 65536) < 40000);" in attention(mask=lambda q_pos: q_pos // 65536 < 40000).spec
    assert "mask = tree && (floor_div(kv_pos, 65536) > -40000);" in attention(mask=lambda kv_pos: -40000 < kv_pos // 65536).spec
    assert "mask = tree && (q_pos - q_pos % 65536 < 2147418112);" in attention(mask=lambda q_pos: q_pos // 65536 < 32767).spec


def test_a_position_before_the_first_has_pythons_remainder():
    near = "mask = path && (t1 - t1 % 16 - 16 == kv_pos - kv_pos % 16);"
    spec = attention(bound="path", mask=lambda q_pos, kv_pos: q_pos // 16 == kv_pos // 16).spec
    assert "let t1 = q_pos + 16;" in spec and near in spec
    assert "mask = path && ((q_pos + 4) % 4 == 3);" in attention(bound="path", mask=lambda q_pos: q_pos % 4 == 3).spec
    assert "mask = tree && (q_pos % 4 == 3);" in attention(mask=lambda q_pos: q_pos % 4 == 3).spec  # there are no tokens before it
    assert "output = x + (q_pos + 4) % 4 as" in attention(output=lambda x, q_pos: x + q_pos % 4).spec  # but a row there is
    assert "score = s + (q_pos + 1) % 4;" in attention(bound="path", score=lambda s, q_pos: s + (q_pos + 1) % 4).spec


def test_everything_else_of_a_spec_can_be_said():
    att = deft.attention(
        query_heads=8, kv_heads=2, head_dim=64, page_size=32, order="hnd", lse=True, scale=0.25, dtype="float16"
    )
    assert (att.page_size, att.has_lse, att.dtype, att.output_dtype) == (32, True, "float16", "float16")
    assert "scale = 0.25;" in att.spec
    assert deft.attention(query_heads=8, head_dim=64, sigmoid=-2.0).kv_heads == 8
    with pytest.raises(deft.UsageError, match="dtype float8"):
        deft.attention(query_heads=8, head_dim=64, dtype="float8")


def test_depth_query_and_kv_head_are_names_of_lang():
    att = attention(score=lambda s, head, q_pos, kv_pos: s - lang.depth + lang.kv_head * lang.query)
    assert "score = s - depth + kv_head * query;" in att.spec


def test_a_mask_bound_by_the_path_shows_what_comes_later():
    def prefix(q_pos, kv_pos):
        return (kv_pos <= q_pos) | (kv_pos < 6)

    tree = deft.Tree()
    prompt = tree.add_root(10, location=0)
    for seen in range(1, 11):
        tree.add_query(prompt, seen)
    q, k, v = np.zeros((10, HEADS, DIM), "float16"), np.zeros((10, 2, DIM), "float16"), np.ones((10, 2, DIM), "float16")
    counts = {}
    for bound in ("tree", "path"):
        att = attention(mask=prefix, bound=bound, lse=True)
        assert f"mask = {bound} && " in att.spec
        counts[bound] = np.exp(att.run(tree, q, k, v, return_lse=True)[1][:, 0]).round().astype(int).tolist()
    assert counts["tree"] == list(range(1, 11))
    assert counts["path"] == [max(6, seen) for seen in range(1, 11)]
    assert "mask = path;" in attention(bound="path").spec
    path = np.ones(HEADS, "float32")
    assert "mask = path && " in attention(bound="path", mask=prefix, score=lambda s, h, q_pos, kv_pos: s + path[h]).spec
    with pytest.raises(deft.UsageError, match="no bound 'node'"):
        attention(bound="node")
