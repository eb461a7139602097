import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

import deft
from deft.hf import DraftModel, LayerPlan, Sampler, TreeDecoder, beam_search, best_of_n, greedy, recall, speculate
from hf_models import Judge, make_model, random_tokens
from hf_plain_lists import Heard, PlainPath

SMALL = LayerPlan(budget=16, full=1, keep_first=2, keep_last=4)  # of six layers, 1 and 3 select
WHOLE = LayerPlan(budget=500, full=1)
LAYERS = 6


def make(architecture="llama", layers=SMALL, **options):
    model = make_model(architecture, num_hidden_layers=LAYERS)
    return model, TreeDecoder(model, layers=layers, pages=64, **options)


def close(logits, right):
    """To what rounding to 16 bits in every layer may do to logits."""
    return float((logits - right).abs().max()) <= 0.01 * float(right.abs().max())


@pytest.mark.parametrize(
    "architecture, by",
    [("llama", "kv_head"), ("llama", "query"), ("qwen3", "query_head"), ("gemma2", "kv_head"), ("mistral", "query_head")],
)
def test_sparse_layers_attend_to_their_lists_and_nothing_else(architecture, by, monkeypatch):
    plan = LayerPlan(budget=10, full=1, keep_first=2, keep_last=4, by=by)
    model, decoder = make(architecture, plan)
    full = TreeDecoder(model, pages=64)
    heard = Heard(monkeypatch)
    prompt = random_tokens(70)
    plain = PlainPath(model)
    right = plain.read(prompt)
    root, full_root = decoder.prefill(prompt), full.prefill(prompt)
    assert torch.equal(root.logits, full_root.logits)  # prompts are read in full
    assert close(root.logits, right)
    branches, paths = decoder.fork(root, 2), [plain.fork(), plain.fork()]
    full_branches = full.fork(full_root, 2)
    for number in range(6):
        if number == 3:  # the second goes on in two ways
            branches = [branches[0], *decoder.fork(branches[1], 2)]
            full_branches = [full_branches[0], *full.fork(full_branches[1], 2)]
            paths.append(paths[1].fork())
        tokens = random_tokens(len(branches), seed=number)
        logits = decoder.step(branches, tokens)
        full_logits = full.step(full_branches, tokens)
        for query, (path, token) in enumerate(zip(paths, tokens)):
            right = path.read([token], heard.of_last_step(decoder, query))
            assert close(logits[query], right), (number, query)
            assert not close(full_logits[query], right)


@pytest.mark.parametrize("by", ["kv_head", "query_head", "query"])
def test_lists_hold_what_the_selecting_layer_scores_highest(by, monkeypatch):
    model, decoder = make(layers=LayerPlan(budget=12, full=1, keep_first=2, keep_last=4, by=by))
    heard = Heard(monkeypatch)
    prompt = random_tokens(60)
    path = PlainPath(model)
    path.read(prompt)
    branch = decoder.fork(decoder.prefill(prompt), 1)[0]
    for token in random_tokens(3, seed=1):
        decoder.step([branch], [token])
        path.read([token], heard.of_last_step(decoder, 0))
        for layer, [lists] in zip((1, 3), heard.runs[-2:]):
            scores = path.scores[layer]  # of four query heads
            for index, chosen in enumerate(lists):
                worth = scores.unflatten(0, (len(lists), -1)).amax(1)[index]
                others = [at for at in range(2, len(worth) - 4)]
                rest = sorted(set(others) - set(chosen))
                assert len(chosen) == 12 and chosen == sorted(set(chosen))
                assert set(range(len(worth))) - set(others) <= set(chosen)
                least = min(float(worth[at]) for at in chosen if at in others)
                assert least >= float(worth[rest].max()) - 0.01


@pytest.mark.parametrize("architecture", ["llama", "gemma2", "mistral"])
def test_a_budget_that_holds_the_path_gives_what_full_layers_give(architecture):
    model, decoder = make(architecture, WHOLE)
    judge = Judge(model, torch.float16)
    branches = decoder.fork(decoder.prefill(random_tokens(60)), 2)
    for step in range(3):
        decoder.step(branches, random_tokens(2, seed=step))
    deep = decoder.fork(branches[0], 2)
    decoder.step([*deep, branches[1]], [3, 4, 5])
    for guess in decoder.verify(branches[1], [6, 7, 8], [-1, 0, 0]):
        judge.check(guess)
    for branch in deep:
        judge.check(branch)
    assert decoder.sequences.polluted() == []


def test_answers_with_such_a_budget_are_those_of_full_layers():
    model, decoder = make(layers=WHOLE)
    full = TreeDecoder(model, pages=64)
    prompt = random_tokens(40)

    def drawn(one):
        torch.manual_seed(3)
        return [answer.tokens for answer in best_of_n(one, prompt, 3, 8, sampler=Sampler(temperature=0.7))]

    assert greedy(decoder, prompt, 12).tokens == greedy(full, prompt, 12).tokens
    assert drawn(decoder) == drawn(full)
    beams = [[answer.tokens for answer in beam_search(one, prompt, 3, 8, answers=3)] for one in (decoder, full)]
    assert beams[0] == beams[1]


def test_guesses_are_verified_over_lists_of_their_own():
    """A token tree has a query for each guess: what is accepted is what decoding one by one gives."""
    model, decoder = make()
    alone = TreeDecoder(model, layers=SMALL, pages=64)
    prompt = random_tokens(50)
    sequence = decoder.fork(decoder.prefill(prompt), 1)[0]
    guesses = decoder.verify(sequence, [5, 6, 7, 8], [-1, 0, 0, 2])
    for guess in guesses:
        branch = alone.fork(alone.prefill(prompt), 1)[0]
        for token in guess.tokens[50:]:
            alone.step([branch], [token])
        assert close(guess.logits, branch.logits)
        alone.prune(branch.parent)
    drafts = DraftModel(TreeDecoder(model, layers=SMALL, pages=64), (2, 1))
    assert speculate(decoder, prompt, drafts, 12).tokens == greedy(alone, prompt, 12).tokens


def test_recall_is_what_plain_scores_say(monkeypatch):
    model, decoder = make()
    prompt, tokens = random_tokens(90), random_tokens(3, seed=4)
    seen = recall(decoder, prompt, tokens)
    assert decoder.sequences.nodes == []
    heard = Heard(monkeypatch)
    branch, path = decoder.fork(decoder.prefill(prompt), 1)[0], PlainPath(model)
    path.read(prompt)
    expected = {layer: [] for layer in range(1, LAYERS)}
    for token in tokens:
        decoder.step([branch], [token])
        read = heard.of_last_step(decoder, 0)
        path.read([token], read)
        read |= {layer: run[0] for layer, run in zip((1, 3), heard.runs[-2:])}
        for layer, found in expected.items():
            scores = path.scores[layer]
            worth = scores.unflatten(0, (2, -1)).amax(1)
            worth[:, [0, 1, -4, -3, -2, -1]] = torch.inf
            own = worth.topk(16).indices.tolist()
            weights = scores.softmax(-1)
            parts = [len(set(a) & set(b)) - 6 for a, b in zip(own, read[layer])]
            lists = [[weights[head, some[head // 2]].sum() for head in range(4)] for some in (read[layer], own)]
            found.append([sum(parts) / 20, *(float(torch.stack(one).mean()) for one in lists)])
    assert [(one.layer, one.role) for one in seen.layers] == list(enumerate(decoder.roles))[1:]
    for one in seen.layers:
        right = torch.tensor(expected[one.layer]).mean(0).tolist()
        assert [one.recall, one.weight, one.own_weight] == pytest.approx(right, abs=0.01)
    sparse = [one for one in seen.layers if one.role == "sparse"]
    assert all(one.recall < 0.9 and one.weight < one.own_weight for one in sparse)
    assert str(seen).splitlines()[0] == "lists of 16 tokens, 3 steps"
    assert seen._repr_html_().count("<tr>") == LAYERS


def test_recall_of_layers_that_read_everything_is_refused():
    model, decoder = make(layers=None)
    with pytest.raises(deft.UsageError, match="no plan of layers"):
        recall(decoder, [3, 4], 2)
    with pytest.raises(deft.UsageError, match="0 steps"):
        recall(TreeDecoder(model, layers=SMALL, pages=8), [3, 4], 0)
