import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from deft.hf import LayerPlan, TreeDecoder
from hf_models import make_model, random_tokens

BUDGET = 16


def make(layers=True, correct_every=None, **options):
    model = make_model("llama", num_hidden_layers=5)
    plan = LayerPlan(budget=BUDGET, full=1, keep_first=2, keep_last=4, correct_every=correct_every) if layers else None
    return TreeDecoder(model, layers=plan, pages=64, **options)


def kept(decoder):
    """K and V of all tokens of the tree, in the tree's order."""
    nodes, sequences = decoder.sequences.nodes, decoder.sequences
    slots = [sequences.slot(node, index) for node in nodes for index in range(sequences.node(node).tokens)]
    return decoder.cache.pages.flatten(2, 3)[:, :, slots].float()


def grow(decoder, one_by_one=True):
    """A tree with all that may happen to one: forks, a prune, accepted guesses, known tokens behind decoded ones. Where tokens
    are not decoded one by one, they are read in full: the same tree otherwise."""

    def go_on(branches, tokens):
        if one_by_one:
            decoder.step(branches, tokens)
        else:
            for branch, token in zip(branches, tokens):
                decoder.prefill([token], branch)

    left, right = decoder.fork(decoder.prefill(random_tokens(40)), 2)
    for number in range(5):
        go_on([left, right], random_tokens(2, seed=number))
    upper, lower, gone = decoder.fork(left, 3)
    for number in range(3):
        go_on([upper, lower, gone, right], random_tokens(4, seed=10 + number))
    decoder.prune(gone)
    guesses = decoder.verify(right, [5, 6, 7, 8], [-1, 0, 0, 2])
    decoder.accept(right, guesses[3])
    decoder.prefill(random_tokens(20, seed=20), lower)
    go_on([upper, right, lower], [9, 10, 11])
    return [upper, right, lower]


def test_after_a_correction_the_cache_is_that_of_full_layers():
    full, sparse = make(layers=False), make(prefill_chunk=16)  # so that a correction is several chunks
    ends, right_ends = grow(sparse), grow(full)
    right = kept(full)
    # What another order of the same sums makes of it: rounding, in every layer.
    other = make(layers=False)
    grow(other, one_by_one=False)
    noise = float((kept(other) - right).abs().max())
    decoded = 5 * 2 + 3 * 3 + 3 + 20 + 3  # of those that are there, the prompt's left out
    assert sum(one.tokens for one in sparse.sequences.polluted()) == decoded
    assert float((kept(sparse) - right).abs().max()) > 20 * noise
    assert sparse.correct() == decoded
    assert sparse.sequences.polluted() == []
    assert 0 < float((kept(sparse) - right).abs().max()) <= 2 * noise
    assert [one.tokens for one in ends] == [one.tokens for one in right_ends]
    # And what is read in full behind it is as if nothing had been sparse.
    for branch, right_branch in zip(ends, right_ends):
        logits, right_logits = (one.prefill([3, 4], end).logits for one, end in ((sparse, branch), (full, right_branch)))
        assert torch.allclose(logits, right_logits, atol=0.01 * float(right_logits.abs().max()))
    assert sparse.sequences.polluted() == []


def test_every_so_many_steps_what_was_decoded_is_corrected():
    decoder = make(correct_every=3)
    branches = decoder.fork(decoder.prefill(random_tokens(40)), 2)
    polluted = []
    for number in range(8):
        decoder.step(branches, random_tokens(2, seed=number))
        polluted.append(sum(one.tokens for one in decoder.sequences.polluted()))
    assert polluted == [2, 4, 6, 2, 4, 6, 2, 4]
    decoder.correct()
    for _ in range(3):
        decoder.prune(decoder.verify(branches[0], [5, 6], [-1, 0])[0])
    assert decoder.sequences.polluted() == []
    [first, _] = decoder.verify(branches[0], [5, 6], [-1, 0])  # the fourth pass since then; it corrects what is left: nothing
    assert [one.node for one in decoder.sequences.polluted()][0] == first.node


def test_tokens_whose_path_the_budget_holds_are_not_polluted():
    decoder = make()
    branch = decoder.fork(decoder.prefill(random_tokens(BUDGET - 3)), 1)[0]
    for number in range(6):
        decoder.step([branch], random_tokens(1, seed=number))
    assert decoder.sequences.polluted() == [(branch.node, 3, 3)]


def test_full_layers_have_nothing_to_correct():
    decoder = make(layers=False)
    branch = decoder.fork(decoder.prefill(random_tokens(40)), 1)[0]
    decoder.step([branch], [3])
    before = kept(decoder)
    assert decoder.correct() == 0
    assert torch.equal(kept(decoder), before)
