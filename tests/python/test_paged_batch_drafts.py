"""Drafts whose trees are masks of bits."""

import deft
import ml_dtypes
import numpy as np
import pytest
from evaluate import assert_close, dense, evaluate

PAGE = 16
TABLES = np.array([[0, 1, 2, 3], [0, 1, 4, 5], [6, 7, 8, 9]], "int32")
LENGTHS = [37, 40, 20]
#: Of each request, of each draft: the draft above it, or -1.
PARENTS = [[-1, 0, 0, 1, 2], [-1], [-1, 0, 1]]


@pytest.fixture
def att():
    return deft.compile("attention a { query_heads = 4; kv_heads = 2; head_dim = 64; output = bf16 with lse; }")


@pytest.fixture
def arrays(rng):
    def bf16(*shape):
        return rng.standard_normal(shape).astype(ml_dtypes.bfloat16)

    return bf16(9, 4, 64), bf16(10, PAGE, 2, 64), bf16(10, PAGE, 2, 64)


def mask_of(all_parents, drafts):
    """Who sees whom, bool [requests, drafts, drafts]."""
    mask = np.zeros((len(all_parents), drafts, drafts), bool)
    for request, parents in enumerate(all_parents):
        for draft, parent in enumerate(parents):
            if parent >= 0:
                mask[request, draft] = mask[request, parent]
            mask[request, draft, draft] = True
    return mask


def words_of(mask, dtype="int32"):
    """By the definition: bit j % 32 of word j // 32."""
    requests, drafts, _ = mask.shape
    words = np.zeros((requests, drafts, -(-drafts // 32)), "uint32")
    for request, draft, seen in zip(*mask.nonzero()):
        words[request, draft, seen // 32] |= np.uint32(1) << np.uint32(seen % 32)
    return words.view(dtype)


def expected(q, k, v, all_parents=PARENTS, lengths=LENGTHS, mask=None):
    """Each request as a tree that the host knows."""
    tree = deft.Tree()
    for row, (length, parents) in enumerate(zip(lengths, all_parents)):
        first = row * TABLES.shape[1] * PAGE
        nodes = [tree.add_root(length, location=first)]
        for draft, parent in enumerate(parents):
            nodes.append(tree.add_child(nodes[parent + 1], 1, location=first + length + draft))
        tree.set_queries([*(query.node for query in tree.queries), *nodes[1:]])
    flat = TABLES.reshape(-1)
    return evaluate(tree, q, dense(k, flat), dense(v, flat), 64**-0.5, mask=mask)


def batch_of(att, all_parents=PARENTS, **options):
    batch = deft.PagedBatch(att, max_requests=4, **options)
    batch.update(TABLES, LENGTHS, drafts=[len(parents) for parents in all_parents])
    return batch


@pytest.mark.parametrize("drafts", [5, 8, 40])
@pytest.mark.parametrize(
    "form", [lambda mask: mask, words_of, lambda mask: words_of(mask, "uint32")], ids=["bool", "int32", "uint32"]
)
def test_each_draft_sees_its_request_and_what_is_above_it(att, arrays, drafts, form):
    batch = batch_of(att)
    batch.draft(form(mask_of(PARENTS, drafts)))
    out, lse = batch.run(*arrays, return_lse=True)
    right, right_lse = expected(*arrays)
    assert_close(out, right, "bfloat16")
    assert np.abs(lse - right_lse).max() < 1e-3


def test_torch_packs_as_numpy_does(att, arrays):
    torch = pytest.importorskip("torch")
    q, *cache = arrays
    parents = [[draft - 1 if draft % 7 else -1 for draft in range(70)]]
    mask = mask_of(parents, 70)
    q = np.concatenate([q] * 8)[:70]
    outs = []
    for bits in mask, torch.from_numpy(mask), torch.from_numpy(words_of(mask)), torch.from_numpy(mask).repeat(1, 1, 2)[..., :70]:
        batch = deft.PagedBatch(att, max_requests=1)
        batch.update(np.arange(10, dtype="int32")[None], [60], drafts=torch.tensor([70], dtype=torch.int32))
        batch.draft(bits)
        outs.append(batch.run(q, *cache))
    assert all(np.array_equal(one, outs[0]) for one in outs)


def test_a_later_step_has_other_drafts(att, arrays):
    batch = batch_of(att)
    batch.draft(mask_of(PARENTS, 5))
    batch.run(*arrays)
    others = [[-1, -1, 0], [], [-1, 0, 1, 2, 3, 0]]
    batch.update(TABLES, LENGTHS, drafts=[len(parents) for parents in others])
    with pytest.raises(deft.UsageError, match="does not know yet which drafts see which"):
        batch.run(*arrays)
    batch.draft(mask_of(others, 6))
    assert_close(batch.run(*arrays), expected(*arrays, others)[0], "bfloat16")
    grown = [length + 1 for length in LENGTHS]
    batch.grow(TABLES, grown)
    batch.draft(mask_of(others, 6))
    assert_close(batch.run(*arrays), expected(*arrays, others, grown)[0], "bfloat16")


def test_depths_are_positions_behind_the_requests_tokens(arrays):
    """Of siblings all stand at the first place, of a list of candidates each may say another one."""
    att = deft.compile('import "library.deft"; attention a { query_heads = 4; kv_heads = 2; head_dim = 64; mask = tree && sliding_window(8); }')
    batch = batch_of(att)
    mask = mask_of(PARENTS, 5)
    depths = np.zeros((3, 5), "int32")
    depths[:, :5] = mask.sum(-1) - 1
    batch.draft(mask)
    out = batch.run(*arrays)
    batch.draft(mask, depths.clip(0))
    assert np.array_equal(batch.run(*arrays), out)
    batch.draft(mask, np.zeros_like(depths))
    assert not np.array_equal(batch.run(*arrays), out)


def test_a_step_without_drafts_has_nothing_to_say(att, arrays):
    q, *cache = arrays
    batch = deft.PagedBatch(att, max_requests=4)
    batch.update(TABLES, LENGTHS, drafts=[0, 0, 0])
    batch.draft(np.zeros((3, 0, 0), bool))
    assert batch.run(q[:0], *cache).shape == (0, 4, 64)
    batch.update(TABLES, LENGTHS, drafts=[0, 1, 0])
    batch.draft(np.ones((3, 1, 1), bool))
    assert batch.run(q[:1], *cache).shape == (1, 4, 64)
    for drafts, queries in ([0, 0, 0], 0), (None, 3), ([0, 0, 0], 0), (None, 3):  # of the same requests, which have not grown
        batch.update(TABLES, LENGTHS, drafts=drafts)
        assert batch.run(q[:queries], *cache).shape == (queries, 4, 64)


@pytest.mark.parametrize(
    "given, message",
    [
        ({"bits": np.ones((3, 4, 4), bool)}, "bits has 4 drafts of a request, and request 0 has 5"),
        ({"bits": mask_of(PARENTS[:2], 5)}, "the mask is for 2 requests, and request 2 has drafts"),
        ({"bits": np.zeros((3, 5, 6), bool)}, r"bits is \[3, 5, 6\] of bool, it must be \[requests, drafts, drafts\]"),
        ({"bits": np.zeros((3, 5, 2), "int32")}, r"bits is \[3, 5, 2\], it must be"),
        ({"bits": np.zeros((3, 5, 2), "int32")[..., :1]}, "bits of shape .* it must be packed"),
        ({"bits": np.zeros((3, 5, 1), "int64")}, "bits is int64, it must be words of int32 or uint32, or bool"),
        ({"bits": [[1]]}, "bits is a list, not an array"),
        ({"bits": np.zeros((3, 5, 1), "int32")}, r"bits\[2\]\[2\] is not a row of a tree of drafts"),
        ({"depths": np.zeros((3, 5), "int64")}, "depths is int64, it must be int32"),
        ({"depths": np.zeros((3, 4), "int32")}, r"depths is \[3, 4\], it must be"),
        ({"lengths": np.zeros(2, "int32")}, r"lengths is \[2\], it must be"),
        ({"lengths": [1, 2, 3]}, "lengths is a list, not an array"),
    ],
)
def test_a_wrong_mask_is_named(att, given, message):
    batch = batch_of(att)
    with pytest.raises(deft.UsageError, match=message):
        batch.draft(**{"bits": mask_of(PARENTS, 5), **given})


def test_what_has_no_drafts_takes_no_mask(att):
    batch = deft.PagedBatch(att, max_requests=4)
    mask = mask_of(PARENTS, 5)
    with pytest.raises(deft.UsageError, match="call update first"):
        batch.draft(mask)
    batch.update(TABLES, LENGTHS)
    with pytest.raises(deft.UsageError, match="has no requests with drafts"):
        batch.draft(mask)
    with pytest.raises(deft.UsageError, match="drafts and a query_indptr"):
        batch.update(TABLES, LENGTHS, [0, 1, 2, 3], drafts=[1, 1, 1])
    with pytest.raises(deft.UsageError, match="drafts has 2 entries, there must be 3 for 3 requests"):
        batch.update(TABLES, LENGTHS, drafts=[1, 1])
    with pytest.raises(deft.UsageError, match="request 1: 257 drafts, must be 0 to 256"):
        batch.update(TABLES, LENGTHS, drafts=[1, 257, 1])
    batch.update(TABLES, LENGTHS, drafts=[1, 1, 1])
    with pytest.raises(deft.UsageError, match="request 2: 60 tokens and 5 drafts are in 5 pages, row 2 has room for 4"):
        batch.update(TABLES, [37, 40, 60], drafts=[1, 1, 5])
    batch.draft(np.ones((3, 1, 1), bool))  # of the step before: a call that fails changes nothing


def test_an_invariant_batch_refuses_drafts_and_goes_on_without(att, arrays):
    q, *cache = arrays
    batch = deft.PagedBatch(att, max_requests=4, invariant=True)
    for _ in range(2):  # before it has a plan, and with one
        with pytest.raises(deft.UsageError, match="an invariant plan is not for requests with drafts"):
            batch.update(TABLES, LENGTHS, drafts=[0, 1, 0])
        batch.update(TABLES, LENGTHS)
        assert batch.run(q[:3], *cache).shape == (3, 4, 64)
    with pytest.raises(deft.UsageError, match="an invariant plan"):
        batch.update(TABLES[:1], LENGTHS[:1], drafts=[1])
    assert batch.run(q[:3], *cache).shape == (3, 4, 64)  # of the step before: a call that fails changes nothing
    batch.update(TABLES, LENGTHS, drafts=[0, 0, 0])
    assert batch.run(q[:0], *cache).shape == (0, 4, 64)


def test_a_batch_bound_by_path_refuses_drafts_and_goes_on_without(arrays):
    q, *cache = arrays
    att = deft.compile("attention both_ways { query_heads = 4; kv_heads = 2; head_dim = 64; mask = path; }")
    assert att.sees_path
    batch = deft.PagedBatch(att, max_requests=4)
    for _ in range(2):  # before it has a plan, and with one
        with pytest.raises(deft.UsageError, match="request 0: it has drafts, .* the batch is for masks bound by `path`"):
            batch.update(TABLES[:1], LENGTHS[:1], drafts=[1])
        batch.update(TABLES, LENGTHS)
        assert batch.run(q[:3], *cache).shape == (3, 4, 64)
    with pytest.raises(deft.UsageError, match="bound by `path`"):
        batch.update(TABLES[:1], LENGTHS[:1], drafts=[1])
    assert batch.run(q[:3], *cache).shape == (3, 4, 64)  # of the step before: a call that fails changes nothing
