"""A cache over several ranks, each of which has the whole model: tokens are those of one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from hf_context_ranks import answers_of, model_of
from hf_models import random_tokens

SCRIPT = Path(__file__).with_name("hf_context_ranks.py")


@pytest.mark.parametrize("architecture, ranks", [("llama", 2), ("gemma2", 3), ("deepseek_v2", 3), ("deepseek_v3_yarn", 2)])
def test_processes_find_the_tokens_of_one(tmp_path, architecture, ranks):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    ran = subprocess.run([*command, SCRIPT, architecture, tmp_path], capture_output=True, text=True, timeout=500)
    assert ran.returncode == 0, ran.stderr
    found = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(ranks)]
    alone = answers_of(model_of(architecture), random_tokens(40))
    for one in found:
        assert one["tokens"] == alone["tokens"]
        assert one["logits"] == found[0]["logits"], "all ranks have the same bits"
        assert torch.tensor(one["logits"]).sub(torch.tensor(alone["logits"])).abs().max() < 0.05
    # Each reads its part.
    for parts in zip(*(one["tokens_read"] for one in found)):
        assert all(part > 0 for part in parts)
