import deft
import ml_dtypes
import numpy as np
import pytest
from evaluate import assert_close, evaluate

TOKENS = 90


@pytest.fixture
def att():
    return deft.compile(
        "attention a { query_heads = 4; kv_heads = 2; head_dim = 64; output = bf16 with lse; kv_cache = contiguous; }"
    )


def state_of(att, q, k, v, first, last):
    tree = deft.Tree()
    tree.set_queries([tree.add_root(last - first, location=first)] * len(q))
    return att.run(tree, q, k, v, return_lse=True)


def test_parts_of_a_context_become_all_of_it(att, rng):
    q, k, v = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((3, 4, 64), (TOKENS, 2, 64), (TOKENS, 2, 64)))
    states = [state_of(att, q, k, v, first, first + 30) for first in range(0, TOKENS, 30)]
    out, lse = deft.merge_states(*zip(*states))
    assert out.dtype == ml_dtypes.bfloat16 and lse.dtype == np.float32
    tree = deft.Tree()
    tree.set_queries([tree.add_root(TOKENS, location=0)] * 3)
    right, right_lse = evaluate(tree, q, k, v, 64**-0.5)
    assert_close(out, right, "bfloat16")
    assert np.abs(lse - right_lse).max() < 1e-3
    # Into the first state, and as bits.
    bits = [one.view("uint16").copy() for one, _ in states]
    lses = [its.copy() for _, its in states]
    merged = deft.merge_states(bits, lses, out=bits[0], lse=lses[0])
    assert merged[0] is bits[0] and merged[1] is lses[0]
    assert np.array_equal(bits[0], out.view("uint16")) and np.array_equal(lses[0], lse)


def test_states_of_torch_become_one_of_torch(att, rng):
    torch = pytest.importorskip("torch")
    outs = torch.tensor([[[[1.0, 2.0]]], [[[5.0, 6.0]]]], dtype=torch.float16)
    lses = torch.tensor([[[0.0]], [[-torch.inf]]])
    out, lse = deft.merge_states(list(outs), list(lses))
    assert out.dtype == torch.float16 and torch.equal(out, outs[0]) and torch.equal(lse, lses[0])


def zeros(*shape, dtype="float32"):
    return np.zeros(shape, dtype)


@pytest.mark.parametrize(
    "outs, lses, message",
    [
        ([], [], "outs are 0, a call merges 1 to 16"),
        ([zeros(1, 1, 2)] * 17, [zeros(1, 1)] * 17, "outs are 17, a call merges 1 to 16"),
        ([zeros(1, 1, 2)], [], "there are 1 outs and 0 lses"),
        ([zeros(1, 1, 2), 5], [zeros(1, 1)] * 2, r"outs\[1\] is a int, not an array"),
        ([zeros(1, 1, 2), zeros(1, 1, 2, dtype="float16")], [zeros(1, 1)] * 2, r"outs\[1\] is float16, the merge takes float32"),
        ([zeros(1, 1, 2), zeros(1, 1, 3)], [zeros(1, 1)] * 2, r"outs\[1\] is \[1, 1, 3\]"),
        ([zeros(1, 1, 2)], [zeros(1, 2)], r"lses\[0\] is \[1, 2\]"),
        ([zeros(1, 1, 2)], [zeros(1, 1, dtype="float64")], r"lses\[0\] is float64, the merge takes float32"),
        ([zeros(1, 1, 2, dtype="float64")], [zeros(1, 1)], r"outs\[0\] is float64, it must be float32, float16 or bfloat16"),
        ([zeros(2, 1, 4)[..., ::2]], [zeros(2, 1)], r"outs\[0\] .* it must be packed"),
    ],
)
def test_wrong_states_are_named(outs, lses, message):
    with pytest.raises(deft.UsageError, match=message):
        deft.merge_states(outs, lses)


def test_what_is_written_is_a_state_or_none():
    memory = zeros(40)
    outs, lses = [memory[:8].reshape(2, 1, 4), zeros(2, 1, 4)], [memory[8:10].reshape(2, 1), zeros(2, 1)]
    for out, lse, message in (
        (memory[4:12], None, "^out overlaps with lse of state 0"),
        (memory[10:18], memory[7:9], "^lse overlaps with out of state 0"),
        (memory[10:18], memory[17:19], "^lse overlaps with its out"),
    ):
        given = {"out": out.reshape(2, 1, 4), "lse": None if lse is None else lse.reshape(2, 1)}
        with pytest.raises(deft.UsageError, match=message):
            deft.merge_states(outs, lses, **given)
    lses[0] = zeros(2, 1)
    with pytest.raises(deft.UsageError, match="^out overlaps with out of state 0") as caught:
        deft.merge_states(outs, lses, out=memory[1:9].reshape(2, 1, 4))
    assert caught.value.hint == "it may be all of a state's own out, or has memory of its own"
    merged, _ = deft.merge_states(outs, lses, out=outs[1], lse=lses[0])
    assert merged is outs[1]


def test_what_may_not_be_written_to_is_named():
    fixed = zeros(1, 1, 2)
    fixed.flags.writeable = False
    with pytest.raises(deft.UsageError, match="out may not be written to"):
        deft.merge_states([zeros(1, 1, 2)], [zeros(1, 1)], out=fixed)
