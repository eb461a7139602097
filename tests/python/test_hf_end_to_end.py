"""The bench of whole steps, on the CPU with a model of two small layers: its ways to attend agree."""

import argparse
import json

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from gpu_scripts import load_script, needs_repository

pytestmark = needs_repository


@pytest.fixture(scope="module")
def bench():
    return load_script("end_to_end")


@pytest.fixture(scope="module")
def model(bench):
    torch.set_num_threads(1)  # as in hf_models
    return bench.make_model(tiny=True)


OPTIONS = argparse.Namespace(tiny=True, steps=2, warmup=1, pages=2048, partition=None, budget=None, without=[])


@pytest.mark.parametrize("name", ["few_shot_b20", "speculative_t32", "system_prompts", "multi_document", "chats"])
def test_every_way_to_attend_gives_the_same_logits(bench, model, name):
    [row] = [one for one in bench.ROWS if one.name == name]
    found = bench.run_row(model, row, OPTIONS)
    assert found["flat"]["difference"] < 0.1
    assert ("sdpa" in found) == (name != "speculative_t32")
    tree, flat = (found[way]["plan"]["tokens_read"] for way in ("tree", "flat"))
    assert tree < flat if name == "few_shot_b20" else tree <= flat  # small trees may be read flat
    assert bench.table_line(found).startswith(f"| {name} |")


def test_a_tree_of_a_file_decodes_at_each_of_its_queries(bench, model, tmp_path):
    nodes = [{"parent": -1, "tokens": 640}, {"parent": 0, "tokens": 64}, {"parent": 0, "tokens": 96}, {"parent": 2, "tokens": 32}]
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"format": "deftc-tree", "nodes": nodes, "queries": [{"node": 1}, {"node": 1}, {"node": 2}, {"node": 3}]}))
    row = bench.of_file(path)
    assert row.name == "mine"
    tree = bench.measure(model, row, "tree", OPTIONS)[1]
    assert len(tree) == 4
    assert bench.run_row(model, row, OPTIONS)["flat"]["difference"] < 0.1
    path.write_text("{}")
    with pytest.raises(SystemExit, match="the format is None"):
        bench.of_file(path)


def test_sparse_layers_are_a_way_of_their_own(bench, model):
    [row] = [one for one in bench.ROWS if one.name == "alone_8x10k"]
    differences = []
    for budget in (96, 4096):  # of paths of 320 tokens
        options = argparse.Namespace(**{**vars(OPTIONS), "budget": budget, "without": ["sdpa", "flat"]})
        found = bench.run_row(model, row, options)
        assert "sdpa" not in found
        differences.append(found["sparse"]["difference"])
    assert differences[1] < 0.02 < differences[0]


def test_a_way_that_attends_to_other_tokens_is_noticed(bench, model, monkeypatch):
    step = bench.DenseDecoder.step

    def forgets_a_token(self, tokens):
        self.kv[:, :, :, :, 0] = 9.0
        return step(self, tokens)

    monkeypatch.setattr(bench.DenseDecoder, "step", forgets_a_token)
    [row] = [one for one in bench.ROWS if one.name == "few_shot_b20"]
    with pytest.raises(SystemExit, match="logits of `sdpa` differ"):
        bench.run_row(model, row, OPTIONS)


def test_rows_have_different_names(bench):
    names = [row.name for row in bench.ROWS]
    assert len(set(names)) == len(names)
