"""Models that transformers' tensor-parallel plan cuts for several ranks: tokens are those of one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

import deft
from deft.hf._kinds import LayerKind
from deft.hf._ranks import heads_of_rank
from hf_models import make_model, random_tokens
from hf_ranks import answers_of

SCRIPT = Path(__file__).with_name("hf_ranks.py")


class Cut:
    def __init__(self, ranks):
        self.tp_size = ranks


def kinds(query_heads, kv_heads):
    return [LayerKind(query_heads, kv_heads, 128, 1.0, None, None)]


def test_each_rank_plans_for_its_own_heads():
    assert heads_of_rank(kinds(64, 8), Cut(2)) == kinds(32, 4)
    assert heads_of_rank(kinds(64, 8), Cut(8)) == kinds(8, 1)
    assert heads_of_rank(kinds(64, 8), Cut(None)) == kinds(64, 8)


def test_heads_that_cannot_be_dealt_are_named():
    with pytest.raises(deft.UsageError, match="64 query heads and 8 KV heads cannot be dealt to 3 ranks"):
        heads_of_rank(kinds(64, 8), Cut(3))


def test_two_processes_find_the_tokens_of_one(tmp_path):
    model = make_model("llama", vocab_size=98)  # transformers 5.17 deals the rows of lm_head evenly or not at all
    prompt = random_tokens(40)
    model.save_pretrained(tmp_path / "model")
    (tmp_path / "model" / "prompt.json").write_text(json.dumps(prompt))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    ran = subprocess.run([*command, SCRIPT, tmp_path / "model", tmp_path], capture_output=True, text=True, timeout=500)
    assert ran.returncode == 0, ran.stderr
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert first == second and set(first["kv_heads"]) == {1}
    alone = answers_of(model, prompt)
    assert set(alone["kv_heads"]) == {2}
    assert first["tokens"] == alone["tokens"]
    assert torch.tensor(first["logits"]).sub(torch.tensor(alone["logits"])).abs().max() < 0.02
