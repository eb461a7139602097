"""The bench of decoders on several ranks: each rank's random K and V are its part of one GPU's, and what differs is told."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from gpu_scripts import load_script, needs_repository

pytestmark = needs_repository


@pytest.fixture(scope="module")
def bench():
    return load_script("decoder_ranks")


def filled(bench, rank, ranks, kv_heads=4):
    pages = torch.zeros(3, 2, 5, 16, kv_heads // ranks, 8, dtype=torch.bfloat16)
    bench.fill_of_rank(rank, ranks)(pages)
    return pages


def test_ranks_have_the_heads_of_one_gpu(bench):
    whole = filled(bench, 0, 1)
    assert whole.float().std() > 0.9
    for ranks in (2, 4):
        parts = [filled(bench, rank, ranks) for rank in range(ranks)]
        assert torch.equal(torch.cat(parts, dim=-2), whole)


def test_ranks_have_the_tokens_of_one_gpu(bench):
    def filled_by_tokens(rank, ranks):
        pages = torch.zeros(3, 2, 5, 16 // ranks, 4, 8, dtype=torch.bfloat16)
        bench.fill_of_tokens(rank, ranks, 5)(pages)
        return pages

    whole = filled_by_tokens(0, 1)
    for ranks in (2, 4):
        parts = [filled_by_tokens(rank, ranks) for rank in range(ranks)]
        assert torch.equal(torch.cat(parts, dim=3), whole)


def test_a_tie_that_falls_the_other_way_is_counted(bench):
    one = torch.tensor([[4.0, 1.0, 0.0], [0.0, 2.0, 1.9375]])
    other = one + torch.tensor([[0.0, 0.0, 0.0], [0.0, -0.0625, 0.0625]])
    found = bench.compare(one, other)
    assert (found["tokens"], found["tokens_that_differ"], found["largest_gap_of_these"]) == (2, 1, 0.0625)


def test_logits_of_another_path_are_an_error(bench):
    one = torch.tensor([[4.0, 1.0, 0.0]])
    with pytest.raises(SystemExit, match="differ by 0.750"):
        bench.compare(one, one - torch.tensor([[3.0, 0.0, 0.0]]))
    with pytest.raises(SystemExit, match="differ"):
        bench.compare(one, one * float("nan"))


def test_rows_are_found_by_how_they_begin(bench):
    assert [row.name for row in bench.rows_named(["few_shot_b5", "chats"])] == ["few_shot_b50", "chats"]
