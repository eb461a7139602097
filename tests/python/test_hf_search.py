import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

import deft
from deft.hf import Finish, Fork, Greedy, Prune, Sampler, TreeDecoder, keep_best, tree_search
from hf_models import eager_logits, make_model, random_tokens

PROMPT = random_tokens(30)


@pytest.fixture(scope="module")
def decoder():
    return TreeDecoder(make_model("gemma3"), pages=128)


def test_a_policy_forks_prunes_and_finishes(decoder):
    def policy(search):
        thoughts = search.thoughts
        return {
            4: lambda: [Fork(thoughts[0], 3)],
            6: lambda: [Prune(thoughts[1]), Finish(thoughts[2])],
            8: lambda: [Fork(thoughts[3], 2), Prune(thoughts[3])],  # and with it those just forked
        }.get(search.step, list)()

    search = tree_search(decoder, PROMPT, policy, sampler=Greedy())
    assert [one.state for one in search.thoughts] == ["forked", "pruned", "finished", "pruned", "pruned", "pruned"]
    assert [len(one.tokens) for one in search.thoughts] == [3, 5, 5, 7, 7, 7]
    assert [step for step, _ in search.events] == [4, 6, 6, 8, 8]
    assert search.step == 8 and search.active == []
    assert decoder.sequences.free_pages == 128
    # Each is greedy along its own path, and its score is what the model gave it.
    done = search.thoughts[2]
    logits = eager_logits(decoder.model, PROMPT + done.tokens)[len(PROMPT) - 1 : -1]
    assert logits.argmax(dim=-1).tolist() == done.tokens
    log_probabilities = logits.log_softmax(dim=-1).gather(1, torch.tensor(done.tokens)[:, None])
    assert done.score == pytest.approx(float(log_probabilities.sum()), rel=2e-2)


def test_the_best_thoughts_go_on(decoder):
    seen = []

    def evaluate(thoughts):
        seen.append([one.number for one in thoughts])
        return [sum(one.tokens) for one in thoughts]

    torch.manual_seed(1)
    search = tree_search(
        decoder, PROMPT, keep_best(evaluate, every=5, width=3, keep=2), thoughts=4, max_steps=12, sampler=Sampler()
    )
    assert [len(one) for one in seen] == [4, 6]
    first = {number: sum(search.thoughts[number].own) for number in seen[0]}
    kept = sorted(first, key=lambda number: -first[number])[:2]
    assert {one.parent.number for one in search.thoughts[4:10]} == set(kept)
    assert len(search.active) == 6
    assert all(len(one.tokens) == 12 for one in search.active)


def test_an_end_finishes_a_thought(decoder):
    logits = eager_logits(decoder.model, PROMPT)[-1]
    first = int(logits.argmax())
    search = tree_search(decoder, PROMPT, lambda search: [], thoughts=2, eos=[first], sampler=Greedy())
    assert [one.tokens for one in search.finished] == [[first], [first]]


def test_what_cannot_be_done_is_an_error_and_frees_the_cache(decoder):
    with pytest.raises(deft.UsageError, match="thought 0 is forked, only active ones"):
        tree_search(decoder, PROMPT, lambda search: [Fork(search.thoughts[0], 2), Finish(search.thoughts[0])])
    with pytest.raises(deft.UsageError, match="pruned already"):
        tree_search(decoder, PROMPT, lambda search: [Prune(search.thoughts[0]), Prune(search.thoughts[0])])
    for given in (None, ["go on"], 3):
        with pytest.raises(deft.UsageError, match="it must be a list of Fork, Prune and Finish"):
            tree_search(decoder, PROMPT, lambda search: given)
    with pytest.raises(deft.UsageError, match="it must be a list of Fork"):
        tree_search(decoder, PROMPT, lambda search: Prune(search.thoughts[0]))
    assert decoder.sequences.free_pages == 128
