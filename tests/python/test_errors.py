"""What is wrong is named, and nothing is copied to make it right."""

import inspect
import pickle
import pydoc

import deft
import numpy as np
import pytest

ATT = "attention a { query_heads = 4; kv_heads = 2; head_dim = 64; dtype = f16; kv_cache = contiguous; }"


@pytest.fixture
def good(family):
    return {
        "q": np.zeros((2, 4, 64), "float16"),
        "k": np.zeros((114, 2, 64), "float16"),
        "v": np.zeros((114, 2, 64), "float16"),
    }


@pytest.mark.parametrize(
    "change, message",
    [
        ({"q": np.zeros((2, 4, 64), "float32")}, "q is float32, `a` takes float16"),
        ({"k": np.zeros((114, 2, 64), "uint16")}, "k is uint16, `a` takes float16"),
        ({"q": np.zeros((3, 4, 64), "float16")}, "q is [3, 4, 64], it must be [queries, query_heads, head_dim] = [2, 4, 64]"),
        ({"q": np.zeros((2, 4, 128), "float16")[:, :, ::2]}, "has strides [512, 128, 2]"),
        ({"k": np.zeros((114, 2, 128), "float16")[:, :, ::2]}, "k has strides"),
        ({"k": np.lib.stride_tricks.as_strided(np.zeros(114 * 128, "float16"), (114, 2, 64), (192, 128, 2))}, "entries of tokens overlap"),
        ({"v": np.zeros((113, 2, 64), "float16")}, "v is [113, 2, 64], and k has 114 tokens"),
        ({"k": None}, "k is a NoneType, not an array"),
        ({"q": [1, 2]}, "q is a list, not an array"),
        ({"q": np.zeros((2, 4, 64), ">f2")}, "not in this machine's order"),
        ({"out": np.zeros((2, 4, 64), "float32")}, "out is float32, `a` takes float16"),
        ({"out": np.zeros((2, 5, 64), "float16")}, "out is [2, 5, 64]"),
        ({"lse": np.zeros((2, 4), "float32")}, "lse is asked for, and `a` gives none"),
        ({"lse": np.zeros((2, 4), "float64"), "return_lse": True}, "lse is asked for, and `a` gives none"),
        ({"q": np.zeros((2, 4, 64))}, "q is float64, `a` takes float16"),
        ({"page_table": np.zeros(8, "int64")}, "page_table is int64, it must be int32"),
        ({"params": [1]}, "params is [1], it must be a mapping of names to values"),
        ({"params": {1: 2}}, "params is {1: 2}, it must be a mapping of names to values"),
        ({"params": {"cap": "30"}}, "the parameter cap is '30', it must be a number or an array"),
    ],
)
def test_a_wrong_tensor_is_named(family, good, change, message):
    with pytest.raises(deft.UsageError) as caught:
        deft.compile(ATT).run(family, **{**good, **change})
    assert message in str(caught.value)


@pytest.fixture
def objects(family, good):
    att = deft.compile(ATT.replace("}", "select { budget = 3; keep_last = 1; } }"))
    paged = deft.compile("attention p { query_heads = 4; kv_heads = 2; head_dim = 64; dtype = f16; }")
    batch = deft.PagedBatch(paged, 8)
    batch.update(np.zeros((1, 1), "int32"), [3])
    return {"tree": family, "att": att, "batch": batch, "selection": deft.Selection(att), "plan": att.plan(family)}


@pytest.mark.parametrize(
    "call, message",
    [
        ("att.plan(batch)", "tree is a PagedBatch, it must be a Tree"),
        ("att.plan(att)", "tree is an Attention, it must be a Tree"),
        ("att.plan(selection)", "tree is a Selection, it must be a Tree"),
        ("att.plan(None)", "tree is None, it must be a Tree"),
        ("att.run(batch, **good)", "tree is a PagedBatch, it must be a Tree"),
        ("plan.advance(batch)", "tree is a PagedBatch, it must be a Tree"),
        ("plan.advance(att)", "tree is an Attention, it must be a Tree"),
        ("plan.advance('x')", "tree is a str, it must be a Tree"),
        ("plan.run_sparse('x', **good)", "selection is a str, it must be a Selection"),
        ("plan.run_sparse(5, **good)", "selection is an int, it must be a Selection"),
        ("plan.run_sparse(b'abc', **good)", "selection is a bytes, it must be a Selection"),
        ("plan.run_sparse(att, **good)", "selection is an Attention, it must be a Selection"),
        ("plan.run_selecting(tree, **good)", "selection is a Tree, it must be a Selection"),
        ("deft.Selection('x')", "attention is a str, it must be an Attention"),
        ("tree.set_queries(['abc'])", "a query is 'abc', it must be a node, or (node, position)"),
        ("tree.set_queries([(0, 1, 2)])", "a query is (0, 1, 2), it must be a node, or (node, position)"),
        ("tree.set_queries(None)", "queries is None, it must be a sequence of nodes, or of (node, position)"),
        ("tree.path_tokens(2)", "there is no query 2, only 2"),
        ("tree.path_tokens(-1)", "there is no query -1, only 2"),
        ("deft.Tree.from_json(b'{}')", "json is a bytes, it must be a str"),
        ("deft.compile(3)", "text is an int, it must be a str"),
        ("deft.compile(path=3)", "path is an int, it must be a str or a path"),
        ("deft.compile('a', attention=3)", "attention is an int, it must be a str"),
        ("deft.load(None)", "path is None, it must be a str or a path"),
        ("deft.set_log(3)", "the log is an int, it must be a function of a LogMessage, or None"),
        ("deft.set_threads(-1)", "threads = -1, it must be from 0 to 2147483647"),
        ("deft.merge_states([good['q'].astype('float64')], [])", "there are 1 outs and 0 lses"),
        ("deft.PagedBatch(tree, 1)", "attention is a Tree, it must be an Attention"),
        ("deft.tune(tree, 'few_shot')", "attention is a Tree, it must be an Attention"),
        ("deft.tune('llama3_8b', 'few_shot')", "attention is a str, it must be an Attention"),
        ("deft.tune(att, trees=[tree, att])", "trees[1] is an Attention, it must be a Tree"),
    ],
)
def test_an_object_of_another_class_is_named(objects, good, call, message):
    with pytest.raises(deft.UsageError) as caught:
        eval(call, {"deft": deft, "good": good, **objects})
    assert caught.value.message == message
    assert ("batch.run" in caught.value.hint) == ("PagedBatch" in message)
    assert objects["plan"].advance() == "nothing"  # and has its tree still


def test_no_function_of_the_library_takes_a_handle_of_another_kind(objects):
    for name, (_, parameters) in deft._abi.FUNCTIONS.items():
        kinds = [kind for kind in parameters.values() if hasattr(kind, "contents")]
        if kinds and "tuner" not in name and kinds[0]._type_ is not deft._abi.deft_selection:
            with pytest.raises(deft.UsageError, match="is a Selection, it must be a"):
                getattr(deft._library.lib, name)(objects["selection"], *[0] * (len(parameters) - 1))


@pytest.mark.parametrize(
    "call, message",
    [
        ("tree.add_root(2**32 + 3)", "tokens = 4294967299, it must be from -2147483648 to 2147483647"),
        ("tree.add_root(3, 2**64 + 16)", "location = 18446744073709551632, it must be from -2147483648 to 2147483647"),
        ("tree.add_child(0, 3.0)", "tokens is a float, it must be a whole number"),
        ("tree.add_query(0, 2**32 + 1)", "position = 4294967297, "),
        ("tree.add_query(0, -1)", "position = -1, it must be 0 or more"),
        ("tree.set_queries([1, (0, -1)])", "position = -1, it must be 0 or more"),
        ("tree.fork(0, -1)", "position = -1, it must be 0 or more"),
        ("sequences.fork(0, -1)", "position = -1, it must be 0 or more"),
        ("att.plan(tree, chunk_tokens=-1)", "chunk_tokens = -1, it must be from 0 to"),
        ("2**32 in tree", "node = 4294967296, "),
        ("tree.set_queries([1, 2**32 + 1])", "queries[1].node = 4294967297, "),
        ("tree.set_queries([1, (0, 2**32)])", "queries[1].position = 4294967296, "),
        ("tree.set_queries([1.5])", "queries[0].node is a float, it must be a whole number"),
        ("deft.Selection(att, 2**32 + 3)", "budget = 4294967299, "),
        ("deft.set_threads(2**32 + 1)", "threads = 4294967297, "),
        ("deft.set_threads(1.5)", "threads is a float, it must be a whole number"),
        ("att.plan(tree, workers=2**32 + 1)", "workers = 4294967297, "),
        ("att.plan(tree, workers=-1)", "workers = -1, it must be from 0 to"),
        ("att.plan(tree, runs_ahead=-1)", "runs_ahead = -1, it must be from 0 to"),
        ("att.plan(tree, slack=-5)", "slack = -5, it must be from 0 to"),
        ("att.plan(tree, budget=2.5)", "budget is a float, it must be a whole number"),
        ("deft.PagedBatch(batch.attention, 8, runs_ahead=-1)", "runs_ahead = -1, it must be from 0 to"),
        ("deft.PagedBatch(batch.attention, 8, slack=-5)", "slack = -5, it must be from 0 to"),
        ("att.plan(tree, chunk_tokens=2**32 + 16)", "chunk_tokens = 4294967312, "),
        ("batch.update(np.zeros((1, 1), 'int32'), [2**32 + 5])", "seq_lens[0] = 4294967301, "),
        ("batch.update(np.zeros((1, 1), 'int32'), [5.0])", "seq_lens[0] is a float, it must be a whole number"),
        ("batch.update(np.zeros((1, 1), 'int32'), [5], rows=[-2**31 - 1])", "rows[0] = -2147483649, "),
        ("batch.update(np.zeros((1, 1), 'int32'), [5], ids=[2**64])", "ids[0] = 18446744073709551616, it must be from 0 to"),
        ("batch.update(np.zeros((1, 1), 'int32'), [5], ids=[-1])", "ids[0] = -1, it must be from 0 to 18446744073709551615"),
        ("att.run(tree, **good, page_table=[2**32])", "page_table[0] = 4294967296, "),
        ("deft.SequenceTree(2**70)", "pages = 1180591620717411303424, "),
        ("deft.SequenceTree(8, 2**32 + 16)", "page_size = 4294967312, "),
        ("sequences.add_token_tree(0, [2**32 - 1])", "parents[0] = 4294967295, "),
        ("sequences.pollute([(0, 0, 2**32 + 1)])", "tokens[0].tokens = 4294967297, "),
    ],
)
def test_a_number_that_does_not_fit_is_named(objects, good, call, message):
    sequences = deft.SequenceTree(8)
    sequences.add_root(4)
    with pytest.raises(deft.UsageError) as caught:
        eval(call, {"deft": deft, "np": np, "good": good, "sequences": sequences, **objects})
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize(
    "call, name",
    [
        ("deft.compile(text + '\\0 junk')", "text"),
        ("deft.compile(text, name='mine\\0')", "name"),
        ("deft.compile(path='llama3_8b\\0')", "path"),
        ("deft.load('a\\0.deftpkg')", "path"),
        ("att.source('cuda', phase='merge\\0')", "phase"),
        ("deft.Tree.from_json(tree.to_json() + '\\0')", "json"),
        ("att.run(tree, **good, params={'w\\0': 1})", "name"),
    ],
)
def test_a_text_does_not_end_at_a_character_0(objects, good, call, name):
    with pytest.raises(deft.UsageError, match=f"^{name} has the character 0 at byte [0-9]+, where it would end"):
        eval(call, {"deft": deft, "text": ATT, "good": good, **objects})


@pytest.mark.parametrize(
    "call, name",
    [
        ("deft.compile('\\ud800')", "text"),
        ("deft.compile(text, name='\\ud800')", "name"),
        ("deft.compile(path='\\ud800')", "path"),
        ("deft.load('\\ud800')", "path"),
        ("deft.Tree.from_json('\\ud800')", "json"),
        ("att.run(tree, **good, params={'\\ud800': 1})", "the name of a parameter"),
    ],
)
def test_half_a_character_is_named(objects, good, call, name):
    with pytest.raises(deft.UsageError, match=rf"^{name} has '\\ud800' at character 0, which is half of a character"):
        eval(call, {"deft": deft, "text": ATT, "good": good, **objects})


@pytest.mark.parametrize(
    "name, hint",
    [("att", "`spec` is its text"), ("tree", "to_json"), ("plan", "plan again"), ("batch", "update it"), ("selection", "another")],
)
def test_what_is_of_this_process_says_what_to_send_instead(objects, name, hint):
    with pytest.raises(TypeError, match=f"cannot be pickled, it is of this process: .*{hint}"):
        pickle.dumps(objects[name])


def test_the_greatest_numbers_fit(objects):
    objects["batch"].update(np.zeros((1, 1), "int32"), [5], ids=[2**64 - 1])
    assert 2**31 - 1 not in objects["tree"] and -(2**31) not in objects["tree"]


def test_an_array_that_may_not_be_written_is_no_out(family, good):
    out = np.zeros((2, 4, 64), "float16")
    out.flags.writeable = False
    with pytest.raises(deft.UsageError, match="out may not be written to"):
        deft.compile(ATT).run(family, **good, out=out)


@pytest.mark.parametrize("makes", ["numpy", "torch"])
def test_what_is_written_overlaps_with_nothing_that_is_read(family, good, makes):
    if makes == "torch":
        own = pytest.importorskip("torch").from_numpy
    else:
        own = lambda array: array  # noqa: E731
    att = deft.compile(ATT.replace("dtype = f16;", "dtype = f16; output = f16 with lse;"))
    q, k, v = (good[name] for name in "qkv")
    memory = np.zeros(k.size, "float16")
    read = {"q": q, "k": memory.reshape(k.shape), "v": v}
    run = lambda **given: att.run(family, **{name: own(array) for name, array in {**read, **given}.items()})  # noqa: E731
    for out, message in (
        (memory[3 * 128 : 3 * 128 + q.size].reshape(q.shape), "out overlaps with k"),
        (v.reshape(-1)[-q.size :].reshape(q.shape), "out overlaps with v"),
        (q, "out overlaps with q"),
    ):
        with pytest.raises(deft.UsageError, match=message) as caught:
            run(out=out)
        assert caught.value.hint == "it is written while that is read: give it its own memory"
    with pytest.raises(deft.UsageError, match="lse overlaps with k"):
        run(lse=memory[:16].view("float32").reshape(2, 4))
    both = np.zeros(q.size + 16, "float16")
    out, lse = both[: q.size].reshape(q.shape), both[-16:].view("float32").reshape(2, 4)
    run(out=out, lse=lse)
    with pytest.raises(deft.UsageError, match="lse overlaps with out"):
        run(out=out, lse=both[-18:-2].view("float32").reshape(2, 4))
    # Heads of the same rows.
    rows = np.zeros((2, 10, 64), "float16")
    read["q"] = rows[:, :4]
    run(out=rows[:, 4:8])
    with pytest.raises(deft.UsageError, match="out overlaps with q"):
        run(out=rows[:, 3:7])


def test_a_wrong_spec_has_its_place_and_a_caret():
    with pytest.raises(deft.DiagnosticError) as caught:
        deft.compile("attention a {\n  query_heads = 4;\n  kv_heads = 3;\n  head_dim = 64;\n}", name="mine.deft")
    assert str(caught.value).splitlines()[:3] == [
        "mine.deft:3:14: error: query_heads = 4 is not a multiple of kv_heads = 3",
        " 3 |   kv_heads = 3;",
        "   |              ^",
    ]
    assert isinstance(caught.value, ValueError)


def test_a_hint_stands_behind_the_message():
    with pytest.raises(deft.DiagnosticError) as caught:
        deft.compile("attention a { query_head = 4; kv_heads = 4; head_dim = 64; }")
    assert "hint" in str(caught.value)


@pytest.mark.parametrize("arguments", [{}, {"text": ATT, "path": "a.deft"}])
def test_compile_takes_a_text_or_a_path(arguments):
    with pytest.raises(deft.UsageError, match="path="):
        deft.compile(**arguments)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(deft.Error, match="nowhere.deft"):
        deft.compile(path=tmp_path / "nowhere.deft")
    with pytest.raises(deft.Error, match="nowhere.deftpkg"):
        deft.load(tmp_path / "nowhere.deftpkg")


def test_a_gpu_that_is_not_there_is_an_error_of_the_machine(family):
    try:
        import torch

        if torch.cuda.is_available():
            pytest.skip("there is a GPU")
    except ImportError:
        pass
    with pytest.raises(deft.MachineError):
        deft.compile(ATT).plan(family, device="cuda")
    with pytest.raises(deft.UsageError, match="no device `tpu`"):
        deft.compile(ATT).plan(family, device="tpu")


def test_a_stale_plan_is_not_run(family, good):
    plan = deft.compile(ATT).plan(family)
    family.append(1)
    with pytest.raises(deft.UsageError):
        plan.run(**good)
    assert not plan.is_current


def test_a_mask_is_not_left_out(good):
    hidden = np.ma.masked_array(good["k"], mask=np.arange(good["k"].size).reshape(good["k"].shape) == 7)
    with pytest.raises(deft.UsageError, match="k: an array is masked, and its mask would be left out"):
        deft._tensors.view("k", hidden)
    nothing = deft._tensors.view("k", np.ma.masked_array(good["k"]))
    assert nothing.data == good["k"].ctypes.data


def test_what_a_run_lacks_is_named_as_python_gives_it(family, good):
    paged = deft.compile("attention p { query_heads = 4; kv_heads = 2; head_dim = 64; dtype = f16; param w : f32[query_heads]; score = s * w[head]; }")
    cache = np.zeros((8, 16, 2, 64), "float16")
    with pytest.raises(deft.UsageError, match=r'params\["w"\] needs a value \(f32\[query_heads\]\)') as caught:
        paged.run(family, good["q"], cache, cache, np.arange(8, dtype="int32"))
    assert caught.value.field == 'params["w"]' and caught.value.hint == 'params={"w": ...}'
    with pytest.raises(deft.UsageError, match="page_table is null") as caught:
        paged.run(family, good["q"], cache, cache, params={"w": np.ones(4, "float32")})
    assert caught.value.hint == "give page_table: the page of each page of the tree's locations"


def test_errors_name_arguments_as_python_has_them(objects, good):
    plan, tree = objects["plan"], objects["tree"]
    with pytest.raises(deft.UsageError, match="^threads is 1000000, not between") as caught:
        deft.set_threads(1000000)
    assert caught.value.field == "threads"
    with pytest.raises(deft.UsageError) as caught:
        plan.run_sparse(objects["selection"], **good)
    assert caught.value.hint and "::" not in caught.value.hint and "()" not in caught.value.hint
    tree.append(max(tree.nodes))
    with pytest.raises(deft.UsageError) as caught:
        plan.run(**good)
    assert caught.value.hint and "::" not in caught.value.hint and "()" not in caught.value.hint


def test_what_python_finds_wrong_has_a_field_too(objects, good):
    for call, field in (
        (lambda: objects["att"].plan(None), "tree"),
        (lambda: objects["att"].plan(objects["tree"], slack=-5), "slack"),
        (lambda: objects["att"].plan(objects["tree"], partition="halves"), "partition"),
        (lambda: objects["plan"].run(**{**good, "q": 3}), "q"),
        (lambda: objects["batch"].update(np.zeros((1, 1), "int32"), [1, 2.5]), "seq_lens[1]"),
        (lambda: deft.compile("attention a {"), ""),
    ):
        with pytest.raises(deft.Error) as caught:
            call()
        assert caught.value.field == field


@pytest.mark.parametrize(
    "field, name",
    [
        ("deft_plan_options::chunk_tokens", "chunk_tokens"),
        ("deft_plan_options::is_invariant", "invariant"),
        ("deft_gpu_plan_options::checks_pages", "check_pages"),
        ("deft_run_settings::check_finite", "check_finite"),
        ("deft_paged_requests::lengths", "seq_lens"),
        ("deft_draft_mask::lengths", "lengths"),
        ("page_table", "page_table"),
    ],
)
def test_the_librarys_field_is_the_argument_of_that_name(monkeypatch, field, name):
    lib = deft._library.lib
    for what, said in (("field", field), ("detail", "is 2000, not between 0 and 1024"), ("hint", ""), ("message", "unsaid")):
        monkeypatch.setattr(lib, f"deft_error_{what}", lambda said=said: said.encode())
    with pytest.raises(deft.UsageError, match=f"^{name} is 2000, not between 0 and 1024$") as caught:
        deft._library.check(deft._abi.DEFT_USAGE)
    assert caught.value.field == name
    monkeypatch.setattr(lib, "deft_error_field", lambda: b"")
    with pytest.raises(deft.MachineError, match="^unsaid$") as caught:
        deft._library.check(deft._abi.DEFT_ENVIRONMENT)
    assert caught.value.field == ""


def test_fields_with_another_name_in_python_are_the_c_abis():
    for field in deft._library.PYTHON_NAMES:
        struct, is_member, name = field.partition("::")
        if is_member:  # others are arguments of functions, which ctypes has no names of
            assert name in dict(getattr(deft._abi, struct)._fields_)


def test_options_are_those_of_release_0_2_and_one_of_0_3():
    of_runs = {"out": None, "lse": None, "stream": None, "check_finite": False, "params": None, "return_lse": False}
    of_plans = {"partition": None, "chunk_tokens": None, "invariant": False, "runs_ahead": 0, "follows_lengths": False, "slack": 0}
    of_plans |= {"check_pages": False, "params": None}
    of_trees = {**of_plans, "device": "cpu", "workers": 0, "check_places": False, "budget": None} | {"list_overlap": 0}
    for function, options in (
        (deft.Attention.run, of_runs),
        (deft.Plan.run, of_runs),
        (deft.Plan.run_selecting, of_runs),
        (deft.Plan.run_sparse, of_runs),
        (deft.PagedBatch.run, of_runs),
        (deft.Attention.plan, of_trees),
        (deft.PagedBatch, {**of_plans, "check_entries": None, "cache_pages": None, "ranks": None}),
    ):
        known = {one.name: one.default for one in inspect.signature(function).parameters.values() if one.default is not one.empty}
        for tensor in ("v", "v_cache", "page_table"):
            known.pop(tensor, None)
        assert known == options, function
    assert "check_finite: bool = False" in pydoc.render_doc(deft.Plan.run) and "takes as long as several" in deft.Plan.run.__doc__


def test_an_unknown_option_is_pythons_error(objects, good):
    for call in (
        lambda: objects["att"].plan(objects["tree"], chunks=3),
        lambda: objects["plan"].run(**good, streams=3),
        lambda: objects["att"].run(objects["tree"], **good, streams=3),
        lambda: deft.PagedBatch(objects["batch"].attention, 8, budget=3),
    ):
        with pytest.raises(TypeError, match="got an unexpected keyword argument '(chunks|streams|budget)'"):
            call()


def test_the_name_of_a_file_is_no_spec():
    for name in ("five.deft", "llama3_8b"):
        with pytest.raises(deft.DiagnosticError) as caught:
            deft.compile(name)
        assert f"compile(path={name!r})" in caught.value.hint
    with pytest.raises(deft.DiagnosticError) as caught:
        deft.compile("attention a { query_head = 4; }")
    assert "path=" not in str(caught.value)
