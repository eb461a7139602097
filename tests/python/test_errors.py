"""What is wrong is named, and nothing is copied to make it right."""

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
        ({"k": np.zeros((114, 2, 64), "uint16")}, "k is of dtype 272"),
        ({"q": np.zeros((3, 4, 64), "float16")}, "q is [3, 4, 64], it must be [queries, query_heads, head_dim] = [2, 4, 64]"),
        ({"q": np.zeros((2, 4, 128), "float16")[:, :, ::2]}, "has strides [512, 128, 2]"),
        ({"k": np.zeros((114, 2, 128), "float16")[:, :, ::2]}, "k has strides"),
        ({"v": np.zeros((113, 2, 64), "float16")}, "v is [113, 2, 64], and k has 114 tokens"),
        ({"k": None}, "k is a NoneType, not an array"),
        ({"q": [1, 2]}, "q is a list, not an array"),
        ({"q": np.zeros((2, 4, 64), ">f2")}, "another order than this machine's"),
        ({"out": np.zeros((2, 4, 64), "float32")}, "out is float32, `a` takes float16"),
        ({"out": np.zeros((2, 5, 64), "float16")}, "out is [2, 5, 64]"),
        ({"lse": np.zeros((2, 4), "float32")}, "gives no lse"),
        ({"page_table": np.zeros(8, "int64")}, "page_table"),
    ],
)
def test_a_wrong_tensor_is_named(family, good, change, message):
    with pytest.raises(deft.UsageError) as caught:
        deft.compile(ATT).run(family, **{**good, **change})
    assert message in str(caught.value)


def test_an_array_that_may_not_be_written_is_no_out(family, good):
    out = np.zeros((2, 4, 64), "float16")
    out.flags.writeable = False
    with pytest.raises(deft.UsageError, match="out may not be written to"):
        deft.compile(ATT).run(family, **good, out=out)


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
