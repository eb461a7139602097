import deft
import numpy as np
import pytest

PAGE = 16


def test_rows_may_lie_back_to_back():
    att = deft.compile("attention a { query_heads = 4; kv_heads = 2; head_dim = 64; dtype = f16; output = f16 with lse; }")
    rng = np.random.default_rng(1)
    rows, lengths = [[0, 1, 2], [3], [0, 1, 4, 5]], [40, 7, 64]
    even = np.zeros((3, 4), "int32")
    for row, pages in enumerate(rows):
        even[row, : len(pages)] = pages
    packed = np.array(sum(rows, []), "int32")
    q = rng.standard_normal((3, 4, 64)).astype("float16")
    k, v = (rng.standard_normal((6, PAGE, 2, 64)).astype("float16") for _ in range(2))
    outs = []
    for table, indptr in (even, None), (packed, [0, 3, 4, 8]):
        batch = deft.PagedBatch(att, max_requests=3)
        batch.update(table, lengths, indptr=indptr)
        assert batch.sharing() == deft.Sharing(3, 111, 79)
        outs.append(batch.run(q, k, v))
    assert np.array_equal(*outs)


def test_a_row_that_is_too_short_is_named():
    att = deft.compile("attention a { query_heads = 4; kv_heads = 2; head_dim = 64; }")
    batch = deft.PagedBatch(att, max_requests=2)
    with pytest.raises(deft.UsageError, match="request 1: 33 tokens are in 3 pages, row 1 has room for 1"):
        batch.update(np.arange(3, dtype="int32"), [20, 33], indptr=[0, 2, 3])
    with pytest.raises(deft.UsageError, match="block_tables is float32"):
        batch.update(np.zeros(3, "float32"), [20], indptr=[0, 3])


def test_a_table_that_is_no_array_changes_nothing():
    att = deft.compile("attention a { query_heads = 4; kv_heads = 2; head_dim = 64; }")
    batch = deft.PagedBatch(att, max_requests=2)
    batch.update(np.arange(3, dtype="int32"), [20, 7], indptr=[0, 2, 3])
    before = batch.sharing()
    with pytest.raises(deft.Error, match="block_tables is a list"):
        batch.update([0, 1, 2], [21, 8], indptr=[0, 2, 3])
    with pytest.raises(deft.UsageError, match="it must be one packed row"):
        batch.update(np.arange(6, dtype="int32")[::2], [21, 8], indptr=[0, 2, 3])
    assert batch.sharing() == before


def test_lengths_may_be_those_of_last_pages():
    att = deft.compile("attention a { query_heads = 4; kv_heads = 2; head_dim = 64; }")
    pages, indptr = np.array([0, 1, 2, 3, 0, 1, 4, 5], "int32"), [0, 3, 4, 8]
    batches = [deft.PagedBatch(att, max_requests=3) for _ in range(2)]
    batches[0].update(pages, [40, 7, 64], indptr=indptr)
    batches[1].update(pages, indptr=indptr, last_page_lengths=np.array([8, 7, 16], "int32"))
    assert batches[0].sharing() == batches[1].sharing() == deft.Sharing(3, 111, 79)
    trees = [[batch.tree.path_tokens(query) for query in range(3)] for batch in batches]
    assert trees[0] == trees[1] == [40, 7, 64]


@pytest.mark.parametrize(
    "given, message",
    [
        ({}, "update takes seq_lens or last_page_lengths, not neither"),
        ({"seq_lens": [40], "last_page_lengths": [8]}, "last_page_lengths, not both"),
        ({"last_page_lengths": [8]}, "last_page_lengths are given without indptr"),
        ({"last_page_lengths": [17], "indptr": [0, 3]}, "request 0: 17 tokens in its last page, must be 1 to 16"),
        ({"last_page_lengths": [8.0], "indptr": [0, 3]}, r"last_page_lengths\[0\] is a float"),
    ],
)
def test_lengths_that_are_missing_or_wrong_are_named(given, message):
    att = deft.compile("attention a { query_heads = 4; kv_heads = 2; head_dim = 64; }")
    with pytest.raises(deft.UsageError, match=message):
        deft.PagedBatch(att, max_requests=3).update(np.arange(3, dtype="int32"), **given)
