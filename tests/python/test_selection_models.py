"""The bench's tables and plot in the documents are those of its record."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "tests/bench/python/selection_models.json"

if not RECORD.exists():
    pytest.skip("the tests lie without the repository", allow_module_level=True)

sys.path.insert(0, str(RECORD.parent))
import selection_models  # noqa: E402


@pytest.fixture
def record():
    return json.loads(RECORD.read_text(encoding="utf-8"))


def test_the_evidence_has_the_tables_of_the_record(record):
    text = (ROOT / "docs/evidence/sparse.md").read_text(encoding="utf-8")
    for make in (selection_models.table, selection_models.selecting_table, selection_models.recall_table):
        assert make(record) in text


def test_the_plot_is_that_of_the_record(record):
    assert (ROOT / "docs/pictures/selection-models.svg").read_text(encoding="utf-8") == selection_models.draw(record)


def test_prompts_that_were_read_once_decode_as_if_each_decoder_had_read_them():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("transformers", reason="transformers is not installed")
    from deft.hf import LayerPlan, TreeDecoder
    from hf_models import make_model, random_tokens

    model, plan = make_model("llama"), LayerPlan(budget=12, full=1, keep_first=2, keep_last=4)
    text, tails = random_tokens(40), [random_tokens(9, seed=1), random_tokens(5, seed=2)]
    prompts = selection_models.Prompts(model, [(text, tails), (tails[0], [])])
    tokens = [random_tokens(4, seed=seed) for seed in range(3, 6)]
    logs = selection_models.decoded(prompts, plan, tokens)

    decoder = TreeDecoder(model, layers=plan, pages=64)
    root, alone = decoder.prefill(text), decoder.prefill(tails[0])
    branches = [decoder.prefill(tail, branch) for tail, branch in zip(tails, decoder.fork(root, 2))]
    branches += decoder.fork(alone, 1)
    right = [decoder.step(branches, step).log_softmax(-1) for step in zip(*tokens)]
    assert torch.allclose(logs, torch.stack(right, dim=1), atol=1e-4)
    assert [branch.logits is not None for branch in prompts.decoder(plan)[1]] == [True] * 3


def test_full_layers_are_no_distance_from_themselves():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    full = torch.randn(2, 5, 7).log_softmax(-1)
    targets = full.argmax(-1).roll(1, dims=1)  # each the best behind the token before it
    same = selection_models.judge(full, full, targets)
    assert (same["lost_nats"], same["same_best"]) == (0, 1) and same["divergence"] == pytest.approx(0, abs=1e-6)
    best = full[:, :-1].amax(-1)
    assert same["perplexity"] == pytest.approx(float((-best.mean()).exp()), rel=1e-5)
    worse = selection_models.judge(torch.full_like(full, 1 / 7).log(), full, targets)
    assert worse["perplexity"] == pytest.approx(7, rel=1e-5) and worse["lost_nats"] > 0 and worse["divergence"] > 0
