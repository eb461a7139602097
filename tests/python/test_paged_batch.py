import deft
import ml_dtypes
import numpy as np
import pytest
from evaluate import assert_close, dense, evaluate

PAGE = 16


@pytest.fixture
def att():
    return deft.compile("attention a { query_heads = 4; kv_heads = 2; head_dim = 64; output = bf16 with lse; }")


def bf16(rng, *shape):
    return rng.standard_normal(shape).astype(ml_dtypes.bfloat16)


def expected(q, k, v, tables, lengths, indptr=None):
    """Each request by itself."""
    tree = deft.Tree()
    per_row = tables.shape[1] * PAGE
    for row, length in enumerate(lengths):
        node = tree.add_root(length, location=row * per_row)
        count = 1 if indptr is None else indptr[row + 1] - indptr[row]
        for i in range(count):
            tree.add_query(node, length - count + 1 + i)
    flat = tables.reshape(-1).clip(0)
    return evaluate(tree, q, dense(k, flat), dense(v, flat), 64**-0.5)


def test_it_is_the_attention_of_each_request_and_shared_pages_are_read_once(att, rng):
    tables = np.array([[0, 1, 2], [0, 1, 3], [4, 5, -1]], "int32")
    q, k, v = bf16(rng, 3, 4, 64), bf16(rng, 6, PAGE, 2, 64), bf16(rng, 6, PAGE, 2, 64)
    batch = deft.PagedBatch(att, max_requests=4)
    batch.update(tables, np.array([40, 37, 20], "int32"))
    out, lse = batch.run(q, k, v, return_lse=True)
    right, right_lse = expected(q, k, v, tables, [40, 37, 20])
    assert_close(out, right, "bfloat16")
    assert np.abs(lse - right_lse).max() < 1e-3
    assert batch.sharing() == deft.Sharing(3, 97, 65)
    # The next step: they grow, and a new one takes the place of one that went.
    tables[1] = [4, 5, 1]
    batch.update(tables, [41, 40, 21])
    assert_close(batch.run(q, k, v), expected(q, k, v, tables, [41, 40, 21])[0], "bfloat16")
    assert batch.tree.query_count == 3 and "3 requests" in repr(batch)


def test_requests_may_have_several_queries_rows_and_identities(att, rng):
    tables = np.array([[9, 9], [0, 1], [0, 2]], "int32")
    q, k, v = bf16(rng, 5, 4, 64), bf16(rng, 10, PAGE, 2, 64), bf16(rng, 10, PAGE, 2, 64)
    batch = deft.PagedBatch(att, max_requests=4)
    out = np.empty_like(q)
    batch.update(tables, [30, 20], [0, 3, 5], rows=[1, 2], ids=[7, 8])
    assert batch.run(q, k, v, out=out) is out
    assert_close(out, expected(q, k, v, tables[1:], [30, 20], [0, 3, 5])[0], "bfloat16")


def test_a_table_may_be_a_part_of_a_wider_one(att, rng):
    wide = np.zeros((2, 8), "int32")
    wide[:, :2] = [[0, 1], [0, 2]]
    q, k = bf16(rng, 2, 4, 64), bf16(rng, 3, PAGE, 2, 64)
    batch = deft.PagedBatch(att, max_requests=2)
    batch.update(wide[:, :2], [30, 31])
    assert_close(batch.run(q, k, k), expected(q, k, k, wide, [30, 31])[0], "bfloat16")


def test_wrong_tables_are_named(att):
    batch = deft.PagedBatch(att, max_requests=2)
    table = np.zeros((2, 2), "int32")
    with pytest.raises(deft.UsageError, match="call update first"):
        batch.run(table, table, table)
    with pytest.raises(deft.UsageError, match="block_tables is int64, it must be int32"):
        batch.update(table.astype("int64"), [1, 1])
    with pytest.raises(deft.UsageError, match="block_tables has 1 dimensions"):
        batch.update(table[0], [1, 1])
    with pytest.raises(deft.UsageError, match="there are 3 requests, the batch was made for 2"):
        batch.update(table, [1, 1, 1])
    with pytest.raises(deft.UsageError, match="seq_lens is float32"):
        batch.update(table, np.ones(2, "float32"))
    with pytest.raises(deft.UsageError, match="query_indptr has 2 entries, there must be 3"):
        batch.update(table, [1, 1], [0, 1])
    with pytest.raises(deft.Error, match="request 1"):
        batch.update(table, [1, 100])
    contiguous = deft.compile("attention c { query_heads = 4; kv_heads = 2; head_dim = 64; kv_cache = contiguous; }")
    with pytest.raises(deft.UsageError, match="contiguous"):
        deft.PagedBatch(contiguous, max_requests=2)


def test_a_table_without_pages_has_requests_without_tokens(att, rng):
    q, k = bf16(rng, 2, 4, 64), bf16(rng, 3, PAGE, 2, 64)
    batch = deft.PagedBatch(att, max_requests=2)
    batch.update(np.zeros((2, 0), "int32"), [0, 0])
    assert batch.sharing() == deft.Sharing(2, 0, 0)
    assert (batch.run(q, k, k) == 0).all()
    batch.update(np.zeros((2, 1), "int32"), [0, 5])
    assert batch.sharing().tokens == 5
    with pytest.raises(deft.UsageError, match="row 1 has room for 0"):
        batch.update(np.zeros((2, 0), "int32"), [0, 1])


@pytest.mark.parametrize(
    "given, message",
    [
        ({"max_requests": "x"}, "max_requests is a str, it must be a whole number"),
        ({"max_requests": 2.0}, "max_requests is a float, it must be a whole number"),
        ({"max_requests": -1}, "max_requests = -1, it must be from 0 to 2147483647"),
        ({"max_requests": 2**31}, "max_requests = 2147483648, it must be from 0 to 2147483647"),
        ({"check_entries": 3}, "check_entries is 3, it must be None, True or False"),
    ],
)
def test_what_a_batch_cannot_be_made_of_is_named(att, given, message):
    with pytest.raises(deft.UsageError, match=message):
        deft.PagedBatch(att, **{"max_requests": 2, **given})


def test_a_table_that_the_caller_knows_on_the_host_is_read_by_runs_alone(att, rng):
    """As of a GPU, where it is written to behind the step before."""
    known = np.array([[0, 1, 2], [0, 1, 3]], "int32")
    table = np.full((2, 3), -1, "int32")
    q, k, v = bf16(rng, 2, 4, 64), bf16(rng, 4, PAGE, 2, 64), bf16(rng, 4, PAGE, 2, 64)
    batch = deft.PagedBatch(att, max_requests=2)
    batch.update(table, [40, 37], host_tables=known)
    assert batch.sharing() == deft.Sharing(2, 77, 45)
    table[:] = known
    assert_close(batch.run(q, k, v), expected(q, k, v, known, [40, 37])[0], "bfloat16")
    with pytest.raises(deft.UsageError, match=r"host_tables has shape \[2, 2\], block_tables has \[2, 3\]"):
        batch.update(table, [30, 30], host_tables=np.ascontiguousarray(known[:, :2]))
    with pytest.raises(deft.UsageError, match="host_tables has strides"):
        batch.update(table, [30, 30], host_tables=np.zeros((2, 6), "int32")[:, :3])


def test_requests_that_only_grow_take_the_quickest_step(att, rng):
    tables = np.array([[0, 1, 2], [0, 1, 3]], "int32")
    q, k, v = bf16(rng, 2, 4, 64), bf16(rng, 4, PAGE, 2, 64), bf16(rng, 4, PAGE, 2, 64)
    batch = deft.PagedBatch(att, max_requests=2)
    with pytest.raises(deft.UsageError, match="2 lengths, but there are 0 requests"):
        batch.grow(tables, [40, 37])
    batch.update(tables, [40, 37])
    for lengths in ([41, 38], [41, 48]):
        batch.grow(tables, lengths)
        assert_close(batch.run(q, k, v), expected(q, k, v, tables, lengths)[0], "bfloat16")
    packed = deft.PagedBatch(att, max_requests=2)
    packed.update(tables.reshape(-1), [40, 37], indptr=[0, 3, 6])
    packed.grow(tables.reshape(-1), [41, 48], indptr=[0, 3, 6])
    assert np.array_equal(packed.run(q, k, v), batch.run(q, k, v))


def test_what_a_quick_step_cannot_do_is_named_and_changes_nothing(att):
    tables = np.array([[0, 1, 2], [0, 1, 3]], "int32")
    batch = deft.PagedBatch(att, max_requests=2)
    batch.update(tables, [40, 37])
    with pytest.raises(deft.UsageError, match="request 1: 36 tokens, and there were 37"):
        batch.grow(tables, [40, 36])
    with pytest.raises(deft.UsageError, match="1 lengths, but there are 2 requests"):
        batch.grow(tables, [41])
    with pytest.raises(deft.UsageError, match="request 0: 49 tokens are in 4 pages"):
        batch.grow(tables, [49, 37])
    with pytest.raises(deft.UsageError, match="seq_lens is float64"):
        batch.grow(tables, np.ones(2))
    assert batch.sharing() == deft.Sharing(2, 77, 45)


def test_pages_that_the_cache_does_not_have_are_named(att):
    tables = np.array([[0, 1, 2], [0, 1, 9]], "int32")
    batch = deft.PagedBatch(att, max_requests=2, cache_pages=9)
    with pytest.raises(deft.UsageError, match="request 1.* 9.*the cache has 9 pages"):
        batch.update(tables, [40, 37])
    batch.update(tables, [40, 32])  # entries behind the last token are not read
    deft.PagedBatch(att, max_requests=2, cache_pages=10).update(tables, [40, 37])
    for wrong in (0, -1):
        with pytest.raises(deft.UsageError, match=f"cache_pages = {wrong}, it must be from 1 to"):
            deft.PagedBatch(att, max_requests=2, cache_pages=wrong)


@pytest.mark.parametrize("chunk", [None, 48])
def test_bits_of_an_invariant_batch_do_not_depend_on_who_shares_pages(att, rng, chunk):
    """None of its pages, one, one and a half chunks, or all of them."""
    mine, length = list(range(70)), 70 * PAGE - 3
    k, v = bf16(rng, 75, PAGE, 2, 64), bf16(rng, 75, PAGE, 2, 64)
    q = bf16(rng, 4, 4, 64)
    bits = []
    for shared in ((), (0,), (1,), (48,), (70,), (70, 4, 32)):
        others = [mine[:pages] + [71 + i] * (70 - pages) for i, pages in enumerate(shared)]
        batch = deft.PagedBatch(att, max_requests=4, invariant=True, chunk_tokens=chunk)
        batch.update(np.array([mine, *others], "int32"), [length] + [length + 1] * len(others))
        out, lse = batch.run(q[: 1 + len(others)], k, v, return_lse=True)
        bits.append((out[0].tobytes(), lse[0].tobytes()))
    assert len(set(bits)) == 1
    # Of 3 others: all pages but the last chunk, none, and 32 pages.
    whole = chunk or 512
    assert batch.sharing().request_tokens - batch.sharing().tokens == sum(n * PAGE // whole * whole for n in (69, 4, 32))


PATH = "attention both_ways { query_heads = 4; kv_heads = 2; head_dim = 64; mask = path && (kv_pos <= q_pos || kv_pos < 300); }"


@pytest.mark.parametrize("runs_before", [False, True])
def test_a_step_that_a_mask_bound_by_path_does_not_serve_changes_nothing(rng, runs_before):
    tables = np.array([[0, 1, 2, 3], [0, 1, 4, 5]], "int32")
    k, v = bf16(rng, 6, PAGE, 2, 64), bf16(rng, 6, PAGE, 2, 64)
    q = bf16(rng, 13, 4, 64)
    batch = deft.PagedBatch(deft.compile(PATH), max_requests=2)
    batch.update(tables, [40, 60], [0, 8, 13])
    before = batch.run(q, k, v) if runs_before else None
    shared = np.array([[0, 1, 4, 3], [0, 1, 4, 5]], "int32")
    for change in (lambda: batch.update(shared, [52, 64], [0, 8, 13]), lambda: batch.update(tables, [40, 60], [0, 8, 40])):
        with pytest.raises(deft.UsageError, match="request [01]: others share pages with its new tokens") as caught:
            change()
        assert caught.value.hint == "give new tokens that see each other their own pages"
        assert batch.sharing() == deft.Sharing(2, 100, 68)
        after = batch.run(q, k, v)
        before = after if before is None else before
        assert (after == before).all()
    batch.grow(tables, [41, 61])
    assert batch.sharing() == deft.Sharing(2, 102, 70)
