import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

import deft
from deft.hf import DraftHeads, DraftModel, Guesses, Sampler, TreeDecoder, best_of_n, greedy, speculate
from hf_models import ARCHITECTURES, VOCABULARY, make_model, random_tokens

PROMPT = random_tokens(40)


class Oracle:
    """Knows the answer, and guesses it among wrong ones: `right` tokens of each step are."""

    def __init__(self, answer, right):
        self.answer, self.right, self.done = answer, right, 0

    def begin(self, prompt):
        assert prompt == PROMPT

    def guess(self, token, hidden):
        assert token == self.answer[self.done]
        tokens, parents, last = [token], [-1], 0
        for depth in range(1, 5):
            known = self.answer[self.done + depth] if self.done + depth < len(self.answer) else 0
            wrong = (known + 1) % VOCABULARY
            tokens += [wrong, known if depth <= self.right else (known + 2) % VOCABULARY]
            parents += [last, last]
            last = len(tokens) - 1
        return Guesses(tokens, parents)

    def accepted(self, path):
        self.done += len(path)

    def end(self):
        pass


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_right_guesses_save_steps_and_change_no_token(architecture):
    decoder = TreeDecoder(make_model(architecture), pages=32)
    expected = greedy(decoder, PROMPT, 40).tokens
    for right in (0, 2, 4):
        found = speculate(decoder, PROMPT, Oracle(expected, right), 40)
        assert found.tokens == expected
        assert found.accepted[:-1] == [right + 1] * (found.steps - 1)
        assert found.steps == -(-40 // (right + 1))
    assert decoder.sequences.free_pages == 32


def test_a_draft_model_that_is_the_model_is_always_right():
    model = make_model("llama")
    decoder, draft = TreeDecoder(model, pages=32), TreeDecoder(model, pages=32)
    expected = greedy(decoder, PROMPT, 30).tokens
    found = speculate(decoder, PROMPT, DraftModel(draft, (2, 2, 1)), 30)
    assert found.tokens == expected
    assert found.accepted[:-1] == [4] * (found.steps - 1)
    assert draft.sequences.free_pages == 32


def test_another_draft_model_changes_no_token():
    decoder = TreeDecoder(make_model("gemma2"), pages=32)
    draft = TreeDecoder(make_model("qwen3", seed=7, num_hidden_layers=1), pages=64)
    expected = greedy(decoder, PROMPT, 30).tokens
    found = speculate(decoder, PROMPT, DraftModel(draft, (4, 2)), 30)
    assert found.tokens == expected
    assert found.steps > 8  # it knows nothing of the other's


def test_what_is_drawn_is_what_one_by_one_would_be():
    model = make_model("llama")
    decoder, draft = TreeDecoder(model, pages=32), TreeDecoder(model, pages=32)
    torch.manual_seed(2)
    [expected] = best_of_n(decoder, PROMPT, 1, 25, sampler=Sampler(temperature=0.5))
    torch.manual_seed(2)
    found = speculate(decoder, PROMPT, DraftModel(draft, (3, 2)), 25, sampler=Sampler(temperature=0.5))
    assert found.tokens == expected.tokens
    assert found.steps < 25


def test_heads_guess_from_the_hidden_state():
    model = make_model("qwen2")
    decoder = TreeDecoder(model, pages=32, keeps_hidden=True)
    expected = greedy(decoder, PROMPT, 30).tokens
    # Head 0 is the model's own: it gives the token that the state was of, and so is right where that comes again.
    heads = DraftHeads([model.lm_head, model.lm_head], [(0,), (1,), (0, 0), (0, 1)])
    found = speculate(decoder, PROMPT, heads, 30)
    assert found.tokens == expected
    hidden = torch.ones(64, device=model.device)
    guesses = heads.guess(5, hidden)
    best = model.lm_head(hidden).topk(2).indices.tolist()
    assert guesses == Guesses([5, *best, *best], [-1, 0, 0, 1, 1])


def test_an_end_among_the_guesses_ends_the_answer():
    decoder = TreeDecoder(make_model("llama"), pages=32)
    expected = greedy(decoder, PROMPT, 40).tokens
    end = next(token for token in expected if expected.index(token) >= 7)
    found = speculate(decoder, PROMPT, Oracle(expected, 4), 40, eos=[end])
    assert found.tokens == expected[: expected.index(end) + 1]


class Stubborn:
    """Guesses something in place of what is certain."""

    def begin(self, prompt):
        pass

    def guess(self, token, hidden):
        return Guesses([token + 1 if token < 30 else token - 1, 4], [-1, 0])

    def accepted(self, path):
        pass

    def end(self):
        pass


def test_wrong_drafters_are_refused():
    with pytest.raises(deft.UsageError, match="widths"):
        DraftModel(TreeDecoder(make_model("llama"), pages=8), ())
    with pytest.raises(deft.UsageError, match=r"\(1, 0\) has no parent \(1,\)"):
        DraftHeads([len, len], [(0,), (1, 0)])
    with pytest.raises(deft.UsageError, match="2 deep, there are 1 heads"):
        DraftHeads([len], [(0,), (0, 0)])
    decoder = TreeDecoder(make_model("llama"), pages=8)
    with pytest.raises(deft.UsageError, match="keeps_hidden"):
        speculate(decoder, [3, 4], DraftHeads([len], [(0,)]), 4)
    with pytest.raises(deft.UsageError, match="the drafter's first token and parent are"):
        speculate(decoder, [3, 4], Stubborn(), 4)
    assert decoder.sequences.free_pages == 8
