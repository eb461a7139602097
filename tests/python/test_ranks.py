"""Ranks that know different tuned configs plan with those of the first."""

import json
import os

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import deft
from deft._adapters.ranks import agree_on_configs, cache_folder

SPEC = "attention a { query_heads = 4; kv_heads = 2; head_dim = 64; dtype = f16; kv_cache = contiguous; }"
PHASE = {"family": "sm80", "name": "all", "rows_above": -1, "stages": 2, "tile_kv": 64, "tile_q": 16, "warps": 4}


def config(chunk_tokens):
    return json.dumps({"partition": "node_chunk", "chunk_tokens": chunk_tokens, "phases": [PHASE]})


def plan():
    tree = deft.Tree()
    root = tree.add_root(1024, location=0)
    for branch in range(4):
        tree.add_query(tree.add_child(root, 4, location=1024 + 4 * branch))
    made = deft.compile(SPEC).plan(tree)
    return {"rule": made.choice().rule, "items": made.summary().items}


def work(rank, folder, knows):
    os.environ["DEFT_CACHE_DIR"] = f"{folder}/cache{rank}"
    os.environ.pop("DEFT_CONFIG_PATH", None)
    if knows[rank]:
        os.environ["DEFT_CONFIG_PATH"] = f"{folder}/{rank}.json"
        with open(f"{folder}/{rank}.json", "w") as file:
            file.write(config(knows[rank]))
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=len(knows))
    before = plan()
    changed = [agree_on_configs(), agree_on_configs()]
    with open(f"{folder}/found{rank}", "w") as file:
        json.dump({"before": before, "changed": changed, "after": plan(), "cache": str(cache_folder())}, file)
    torch.distributed.destroy_process_group()


def run(folder, *knows):
    torch.multiprocessing.spawn(work, (str(folder), knows), nprocs=len(knows))
    return [json.loads((folder / f"found{rank}").read_text()) for rank in range(len(knows))]


def test_all_take_what_the_first_has_measured(tmp_path):
    first, second = run(tmp_path, 64, 256)
    assert first["before"] != second["before"] and first["before"]["rule"] == second["before"]["rule"] == "override"
    assert first["after"] == second["after"] == first["before"]
    assert first["changed"] == [False, False] and second["changed"] == [True, False]
    assert first["cache"] == f"{tmp_path}/cache0" and second["cache"].startswith(f"{tmp_path}/cache1/ranks/")


def test_what_the_first_has_not_measured_nobody_has(tmp_path):
    first, second = run(tmp_path, None, 64)
    assert second["before"]["rule"] == "override" and first["before"]["rule"] == "heuristic"
    assert first["after"] == second["after"] == first["before"]


def test_ranks_that_know_the_same_keep_their_caches(tmp_path):
    for found in run(tmp_path, None, None):
        assert found["changed"] == [False, False] and "/ranks/" not in found["cache"]


def test_what_others_may_write_is_not_handed_on(tmp_path, monkeypatch):
    from deft._adapters.ranks import _Known

    monkeypatch.setenv("DEFT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("DEFT_CONFIG_PATH", raising=False)
    folder = tmp_path / "configs"
    folder.mkdir(mode=0o700)
    (folder / "own.json").write_text("1")
    (folder / "own.json").chmod(0o600)
    (folder / "of_a_group.json").write_text("2")
    (folder / "of_a_group.json").chmod(0o620)
    (tmp_path / "theirs.json").write_text("3")
    (tmp_path / "theirs.json").chmod(0o600)
    (folder / "link.json").symlink_to(tmp_path / "theirs.json")
    os.mkfifo(folder / "pipe.json", 0o600)
    assert _Known.read().user == {"own.json": b"1"}
    folder.chmod(0o770)
    assert _Known.read().user == {}


def test_files_that_were_taken_before_and_changed_are_not_trusted(tmp_path, monkeypatch):
    from deft._adapters.ranks import _Known

    monkeypatch.setenv("DEFT_CACHE_DIR", str(tmp_path))
    known = _Known({"gpu.json": b"1"}, {})
    known.take()
    first = os.environ["DEFT_CACHE_DIR"]
    monkeypatch.setenv("DEFT_CACHE_DIR", str(tmp_path))
    known.take()
    assert os.environ["DEFT_CACHE_DIR"] == first
    with open(f"{first}/configs/gpu.json", "w") as file:
        file.write("2")
    monkeypatch.setenv("DEFT_CACHE_DIR", str(tmp_path))
    known.take()
    assert os.environ["DEFT_CACHE_DIR"] != first and _Known.read().user == {"gpu.json": b"1"}
