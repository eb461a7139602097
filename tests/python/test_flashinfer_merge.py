"""FlashInfer's functions that merge attention over parts of the tokens."""

import pytest

torch = pytest.importorskip("torch")

from deft.flashinfer import merge_state, merge_state_in_place, merge_states


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(7)


def states(generator, count, dtype=torch.float16, rows=5):
    v = torch.randn(rows, count, 4, 64, generator=generator).to(dtype)
    return v, 4 * torch.randn(rows, count, 4, generator=generator)


def right(v, s):
    """In double precision; s is to the base 2."""
    weights = torch.exp2(s.double() - s.double().amax(1, keepdim=True))
    out = (weights[..., None] * v.double()).sum(1) / weights.sum(1)[..., None]
    return out, torch.log2(weights.sum(1)) + s.double().amax(1)


def assert_right(merged, v, s):
    out, lse = right(v, s)
    loose = 1e-5 if v.dtype == torch.float32 else 2e-3 if v.dtype == torch.float16 else 2e-2
    assert merged[0].dtype == v.dtype and merged[1].dtype == torch.float32
    torch.testing.assert_close(merged[0].double(), out, rtol=loose, atol=loose)
    torch.testing.assert_close(merged[1].double(), lse, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("count", [1, 2, 16, 17, 50])
def test_any_number_of_states_becomes_one(generator, dtype, count):
    v, s = states(generator, count, dtype)
    before = v.clone(), s.clone()
    assert_right(merge_states(v, s), v, s)
    assert torch.equal(v, before[0]) and torch.equal(s, before[1])


def test_two_states_become_one(generator):
    v, s = states(generator, 2)
    assert_right(merge_state(v[:, 0], s[:, 0], v[:, 1], s[:, 1]), v, s)


@pytest.mark.parametrize("mask", [None, [True, False, False, True, True], [False] * 5])
def test_in_place_a_mask_says_which_rows_change(generator, mask):
    v, s = states(generator, 2)
    out, lse = v[:, 0].contiguous(), s[:, 0].contiguous()
    merge_state_in_place(out, lse, v[:, 1], s[:, 1], None if mask is None else torch.tensor(mask))
    rows = torch.tensor([True] * 5 if mask is None else mask)
    assert torch.equal(out[~rows], v[~rows, 0]) and torch.equal(lse[~rows], s[~rows, 0])
    assert_right((out[rows], lse[rows]), v[rows], s[rows])


def test_a_state_without_tokens_changes_nothing(generator):
    v, s = states(generator, 2)
    s[:, 1] = -torch.inf
    out, lse = merge_state(v[:, 0], s[:, 0], v[:, 1], s[:, 1])
    assert torch.equal(out, v[:, 0])
    torch.testing.assert_close(lse, s[:, 0])
    s[:, 0] = -torch.inf
    out, lse = merge_state(v[:, 0], s[:, 0], v[:, 1], s[:, 1])
    assert not out.any() and bool(lse.isneginf().all())


def test_what_cannot_be_merged_is_named(generator):
    with pytest.raises(ValueError, match="v has no states"):
        merge_states(torch.empty(5, 0, 4, 64), torch.empty(5, 0, 4))
    with pytest.raises(NotImplementedError, match="^v=torch.float64 is not supported here: states are float32, float16 or bfloat16"):
        merge_states(torch.empty(5, 2, 4, 64, dtype=torch.float64), torch.empty(5, 2, 4))
