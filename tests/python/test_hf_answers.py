import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

import deft
from deft.hf import Greedy, Sampler, TreeDecoder, beam_search, best_of_n, greedy, speculate, tree_search
from hf_models import eager_logits, make_model, random_tokens

EOS = 2
PROMPT = random_tokens(40)


@pytest.fixture(scope="module")
def model():
    return make_model("llama")


@pytest.fixture(scope="module")
def ender():
    """A model that comes to an end's token often."""
    model = make_model("qwen3", seed=3)
    with torch.no_grad():
        # Its row is like that of the next token, so that they are the best ones together.
        model.lm_head.weight[EOS] = 1.05 * model.lm_head.weight[EOS + 1]
    return model


def generate(model, **options):
    """What transformers gives, behind the prompt, each answer up to its end's token."""
    ids = torch.tensor([PROMPT], device=model.device)
    found = model.generate(ids, attention_mask=torch.ones_like(ids), pad_token_id=0, eos_token_id=EOS, **options)
    answers = []
    for row in found[:, len(PROMPT) :].tolist():
        answers.append(row[: row.index(EOS) + 1] if EOS in row else row)
    return answers


def test_greedy_is_that_of_generate(model):
    decoder = TreeDecoder(model, pages=16)
    [expected] = generate(model, do_sample=False, max_new_tokens=60)
    answer = greedy(decoder, PROMPT, 60, eos=[EOS])
    assert answer.tokens == expected
    log_probabilities = eager_logits(model, PROMPT + expected).log_softmax(dim=-1)
    score = sum(log_probabilities[len(PROMPT) - 1 + i, token] for i, token in enumerate(expected))
    assert answer.score == pytest.approx(float(score), rel=1e-2)
    assert decoder.sequences.free_pages == 16


@pytest.mark.parametrize("options", [{}, {"temperature": 0.7, "top_k": 20}, {"top_p": 0.9}])
def test_samples_are_those_of_generate_with_the_same_seed(ender, options):
    decoder = TreeDecoder(ender, pages=64)
    torch.manual_seed(5)
    expected = generate(ender, do_sample=True, num_return_sequences=8, max_new_tokens=24, **{"top_k": 0, **options})
    torch.manual_seed(5)
    answers = best_of_n(decoder, PROMPT, 8, 24, eos=[EOS], sampler=Sampler(**options))
    assert [answer.tokens for answer in answers] == expected
    assert [answer.is_finished for answer in answers] == [answer[-1] == EOS for answer in expected]
    assert len({len(one) for one in expected}) > 1  # some ended before the others


@pytest.mark.parametrize("n", [0, -1])
def test_no_answers_are_refused(model, n):
    decoder = TreeDecoder(model, pages=16)
    with pytest.raises(deft.UsageError, match=f"n = {n} answers"):
        best_of_n(decoder, PROMPT, n, 4)
    with pytest.raises(deft.UsageError, match=f"beams = {n}"):
        beam_search(decoder, PROMPT, n, 4)
    assert decoder.sequences.free_pages == 16


def test_processors_of_transformers_are_obeyed(model):
    decoder = TreeDecoder(model, pages=16)
    processors = [transformers.NoRepeatNGramLogitsProcessor(2)]
    [expected] = generate(model, do_sample=False, no_repeat_ngram_size=2, max_new_tokens=40)
    [answer] = best_of_n(decoder, PROMPT, 1, 40, eos=[EOS], sampler=Greedy(processors=processors))
    assert answer.tokens == expected


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"length_penalty": 0.0},
        {"length_penalty": 2.0, "early_stopping": "never"},
        {"early_stopping": True},
    ],
)
def test_beams_are_those_of_generate(ender, options):
    decoder = TreeDecoder(ender, pages=64)
    expected = generate(
        ender, do_sample=False, num_beams=5, num_return_sequences=3, max_new_tokens=20, **options
    )
    answers = beam_search(decoder, PROMPT, 5, 20, eos=[EOS], answers=3, **options)
    assert [answer.tokens for answer in answers] == expected
    assert [answer.score for answer in answers] == sorted((answer.score for answer in answers), reverse=True)
    assert decoder.sequences.free_pages == 64


def test_a_beam_shares_what_its_answers_have_in_common(model):
    decoder = TreeDecoder(model, pages=64)
    root = decoder.prefill(PROMPT)
    beam_search(decoder, root, 8, 30)
    assert root.is_alive and root.children == []
    assert decoder.sequences.nodes == [root.node]
    assert decoder.summary().popitem()[1].tokens_read < 8 * (40 + 29)


def test_wide_beams_go_on_from_any_branch_again_and_again(ender):
    """The prompt is a branch of a branch, which ends in the middle of pages; graphs and plans serve search after search."""
    decoder = TreeDecoder(ender, pages=80)
    [left, right] = decoder.fork(decoder.prefill(PROMPT[:19]), 2)
    decoder.prefill(PROMPT[19:22], left)
    decoder.prefill(random_tokens(5, seed=8), right)
    [branch] = decoder.fork(left, 1)
    decoder.prefill(PROMPT[22:], branch)
    free = decoder.sequences.free_pages
    for beams, tokens in ((40, 9), (6, 14), (40, 9)):
        # Those behind the best ones of 6 beams are closer to each other than a cache of 16 bits can tell.
        expected = generate(ender, do_sample=False, num_beams=beams, num_return_sequences=3, max_new_tokens=tokens)
        answers = beam_search(decoder, branch, beams, tokens, eos=[EOS], answers=3)
        assert [answer.tokens for answer in answers] == expected
        assert decoder.sequences.free_pages == free and branch.children == []
    assert decoder.step([right], [3]).shape == (1, 97)  # the others are there still


def test_more_beams_than_tokens_and_no_tokens_are_searches(model):
    decoder = TreeDecoder(model, pages=400)
    answers = beam_search(decoder, PROMPT, 300, 2, answers=300)
    assert len(answers) == 300 and len({tuple(answer.tokens) for answer in answers}) == 300
    log_probabilities = eager_logits(model, PROMPT).log_softmax(dim=-1)[-1]
    assert answers[0].score <= float(log_probabilities.max()) / 2 + 1e-2
    assert beam_search(decoder, PROMPT, 3, 0) == []
    everything = set(range(97))
    assert all(len(answer.tokens) == 1 for answer in beam_search(decoder, PROMPT, 3, 5, eos=everything, answers=3))
    assert decoder.sequences.free_pages == 400


def test_a_search_that_has_no_pages_left_gives_all_back(model):
    decoder = TreeDecoder(model, pages=8)
    root = decoder.prefill(PROMPT)
    with pytest.raises(deft.DiagnosticError, match="out of space"):
        beam_search(decoder, root, 40, 20)
    assert root.is_alive and decoder.sequences.free_pages == 5
    assert len(beam_search(decoder, root, 4, 4)[0].tokens) == 4


def test_a_step_of_beams_waits_for_the_device_once(model, monkeypatch):
    """What brings a tensor to the host is counted; there is no other way that a search takes."""
    decoder = TreeDecoder(model, pages=64)
    root = decoder.prefill(PROMPT)
    counts = {}
    for name in ("cpu", "item", "tolist", "numpy"):
        plain = getattr(torch.Tensor, name)

        def counted(self, *arguments, name=name, plain=plain, **options):
            counts[name] = counts.get(name, 0) + 1
            return plain(self, *arguments, **options)

        monkeypatch.setattr(torch.Tensor, name, counted)
    seen = []
    for tokens in (10, 20):
        counts.clear()
        beam_search(decoder, root, 6, tokens)
        seen.append(dict(counts))
    assert seen[0].pop("cpu") == 9 and seen[1].pop("cpu") == 19  # behind the last token nobody goes on
    assert seen[0] == seen[1]


def test_a_prompt_that_others_go_on_from_is_not_taken(model):
    decoder = TreeDecoder(model, pages=16)
    root = decoder.prefill(PROMPT)
    decoder.fork(root, 1)
    with pytest.raises(deft.UsageError, match="1 branches go on from the prompt"):
        greedy(decoder, root, 4)


def test_ends_that_are_no_collection_of_tokens_are_named(model):
    decoder = TreeDecoder(model, pages=16)
    for call in (
        lambda eos: greedy(decoder, PROMPT, 1, eos=eos),
        lambda eos: beam_search(decoder, PROMPT, 2, 1, eos=eos),
        lambda eos: tree_search(decoder, PROMPT, lambda search: [], max_steps=1, eos=eos),
        lambda eos: speculate(decoder, PROMPT, None, 1, eos=eos),
    ):
        for wrong in (5, "</s>", [2.5]):
            with pytest.raises(deft.UsageError, match=f"eos is .*{str(wrong)[1:-1]}.*, it must be a collection of tokens"):
                call(wrong)
    assert decoder.sequences.free_pages == 16
    taken = [greedy(decoder, PROMPT, 8, eos=eos) for eos in ({EOS}, [EOS], torch.tensor([EOS]))]
    assert taken[0] == taken[1] == taken[2]
