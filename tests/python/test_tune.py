import ctypes
import json
import os
import signal

import deft
import numpy as np
import pytest
from deft import _tune_results, lang

ATT = "attention a { query_heads = 2; kv_heads = 1; head_dim = 16; kv_cache = contiguous; }"


@pytest.fixture
def files(tmp_path):
    return {"config_file": tmp_path / "configs.json", "journal": tmp_path / "journal.jsonl"}


def small_tree():
    tree = deft.Tree()
    prompt = tree.add_root(64, location=0)
    for branch in range(2):
        tree.add_query(tree.add_child(prompt, 4, location=64 + 4 * branch))
    return tree


def test_what_is_found_is_kept_and_told(files):
    progress, lines = [], []
    result = deft.tune(
        deft.compile(ATT),
        trees=[small_tree()],
        budget=20,
        device="cpu",
        candidates=2,
        threads=1,
        progress=progress.append,
        log=lines.append,
        **files,
    )
    assert result.end in ("complete", "budget") and result.measured > 0
    assert len(result.classes) == 1 and result.classes[0].trees >= 1
    assert progress and progress[-1].classes == 1 and lines
    assert json.loads(files["config_file"].read_text())["format"]
    assert "<table>" in result._repr_html_() and result.classes[0].tree_class in str(result)


def larger_tree():
    tree = deft.Tree()
    tree.add_query(tree.add_root(600, location=0))
    return tree


def test_shards_are_tuned_apart_and_become_one_result(files, tmp_path):
    att = deft.compile(ATT)
    journals = [tmp_path / f"shard-{index}.jsonl" for index in range(2)]
    options = {"trees": [small_tree(), larger_tree()], "device": "cpu", "candidates": 2, "threads": 1}
    for index, journal in enumerate(journals):
        result = deft.tune(att, shard=(index, 2), journal=journal, **options)
        assert (result.end, len(result.classes), result.config_file) == ("complete", 1, "")
    merged = deft.merge_shards(journals, files["config_file"])
    assert [one.is_done for one in merged.classes] == [True, True] and not merged.warnings
    assert json.loads(files["config_file"].read_text())["format"] == "deftc-configs"
    with pytest.raises(deft.MachineError, match="there is no journal of shard 1/2"):
        deft.merge_shards(journals[:1], files["config_file"])
    assert len(deft.merge_shards(journals[:1], files["config_file"], partial=True).warnings) == 1


def test_a_shard_that_cannot_be_is_named(files, tmp_path):
    att = deft.compile(ATT)
    for wrong, message in [
        (3, r"shard is 3, it must be \(index, count\)"),
        ((2, 2), r"shard is \(2, 2\), indices of 2 shards are 0 to 1"),
        ((-1, 2), r"shard\[0\] = -1"),
        ((0, 0), r"shard\[1\] = 0"),
        (("a", 2), r"shard\[0\] is a str"),
    ]:
        with pytest.raises(deft.UsageError, match=message):
            deft.tune(att, trees=[small_tree()], shard=wrong)
    with pytest.raises(deft.UsageError, match="a shard writes only its journal"):
        deft.tune(att, trees=[small_tree()], shard=(0, 2), device="cpu", **files)
    with pytest.raises(deft.UsageError, match="journals is a str, it must be a list of paths"):
        deft.merge_shards("journal.jsonl")
    with pytest.raises(deft.UsageError, match=r"journals\[0\] is an? int"):
        deft.merge_shards([3])


@pytest.fixture
def ctrl_c():
    """As in a program that somebody started: what a shell runs in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_the_run_and_its_result_comes_back(files):
    def interrupt(progress):
        os.kill(os.getpid(), signal.SIGINT)  # at the first news: later the run may have ended

    result = deft.tune(
        deft.compile(ATT), "few_shot", budget=300, device="cpu", threads=1, progress=interrupt, **files
    )
    assert result.end == "cancelled" and result.seconds < 200
    unfinished = next(one for one in result.classes if not one.is_done)
    assert f"{unfinished.tree_class}: the run ended before" in str(result)
    assert f"<tr><td>{unfinished.tree_class}</td><td></td><td></td><td></td>" in result._repr_html_()


def test_news_come_at_a_pace_that_can_be_read():
    pace = deft._tune._Pace()
    told = {"tree_class": "c1", "stage": "search", "measured": 0, "seconds_left": 8.0}
    said = [told, {**told, "seconds_left": 7.9}, {**told, "measured": 4}, {**told, "measured": 4, "seconds_left": 7.8}]
    assert [pace.is_due(one) for one in said] == [True, False, True, False]


def test_what_is_wrong_is_an_error(files):
    att = deft.compile(ATT)
    with pytest.raises(deft.UsageError, match="nothing to tune for"):
        deft.tune(att)
    with pytest.raises(deft.Error, match="no_such"):
        deft.tune(att, "no_such", device="cpu", **files)
    for wrong, message in [
        ({"budget": -3}, "budget is -3"),
        ({"budget": "3s"}, "budget is '3s'"),
        ({"candidates": -1}, "candidates = -1"),
        ({"threads": -1}, "threads = -1"),
        ({"trees": small_tree()}, "trees is a Tree, it must be a list of trees"),
    ]:
        with pytest.raises(deft.UsageError, match=message):
            deft.tune(att, "few_shot", device="cpu", **wrong)
    with pytest.raises(deft.UsageError, match="first GPU"):
        deft.tune(att, "few_shot", device=1)


def test_arrays_over_tokens_are_drawn_for_the_trees_that_are_tuned(files):
    doc, own = np.zeros(16, "int32"), np.zeros(2, "int32")
    shape = {"query_heads": 2, "kv_heads": 1, "head_dim": 16, "page_size": None}
    att = deft.attention(**shape, mask=lambda q_pos, kv_pos: doc[lang.token] == own[lang.query])
    options = {"trees": [small_tree()], "budget": 20, "device": "cpu", "candidates": 2, "threads": 1, **files}
    assert deft.tune(att, **options).measured > 0
    with pytest.raises(deft.UsageError, match="doc is an array over tokens, whose values tuning draws"):
        deft.tune(att, params={"doc": doc}, **options)


def test_arrays_of_parameters_are_handed_on_as_one_row():
    assert deft._tune._numbers_of(np.arange(4, dtype="int32").reshape(2, 2)) == [0, 1, 2, 3]
    assert deft._tune._numbers_of(np.float32(2)) == 2.0
    assert deft._tune._numbers_of([1, 2]) == [1, 2]


def test_what_became_of_sparse_layers_is_read_and_shown():
    abi = deft._abi
    kinds = [
        deft._library.sized(
            abi.deft_tuned_lists, budget=4096, queries=8, item_tokens=1024, untuned_us=44.0, tuned_us=40.0, gain=1.1
        ),
        deft._library.sized(abi.deft_tuned_lists, budget=1024, queries=1, untuned_us=10.0, tuned_us=10.0, gain=1.0),
    ]
    pointers = (ctypes.c_void_p * len(kinds))(*(ctypes.addressof(one) for one in kinds))
    seen = deft._library.sized(
        abi.deft_tuned_sparse,
        file=b"/cache/sparse/gpu.json",
        list_count=len(kinds),
        lists=ctypes.addressof(pointers),
        tile_gain=1.02,
        seconds=31.5,
        tile_tokens=32,
        stages=3,
        warps=2,
        known=4,
        end=abi.DEFT_TUNE_BUDGET,
    )
    said = _tune_results.sparse_of(ctypes.addressof(seen))
    assert _tune_results.sparse_of(None) is None
    empty = {"measured": 0, "reused": 0, "config_file": "", "journal": "", "classes": [], "warnings": []}
    summary = {"device": "a GPU", "end": "budget", "seconds": 31.5, "sparse": said, **empty}
    result = deft._tune._result_of(json.loads(json.dumps(summary)))
    sparse = result.sparse
    assert (sparse.tile_tokens, sparse.is_packaged, sparse.known, sparse.end) == (32, False, 4, "budget")
    assert sparse.lists[0] == deft.TunedLists(4096, 8, 1024, 44.0, 40.0, 1.1)
    told = "sparse layers: tiles of 32 tokens, 3 stages, 2 warps; 2 kinds of lists tuned, 4 known before, budget after 32 s"
    assert told in str(result) and str(result).startswith("a GPU: budget after 32 s")
    html = result._repr_html_()
    assert html.count("<table>") == 1 and f"<caption>{told}</caption>" in html
    assert "<tr><td>4096</td><td>8</td><td>44.0</td><td>40.0</td><td>1.10</td><td>1024 tokens</td></tr>" in html
    assert "<td>1.00</td><td>as by the rule</td>" in html


def test_without_trees_sparse_layers_alone_are_tuned_which_processors_have_not(files):
    selecting = deft.compile(ATT.removesuffix("}") + "select { budget = 64; } }")
    with pytest.raises(deft.UsageError, match="there is no tree to tune for"):
        deft.tune(selecting, device="cpu", **files)
