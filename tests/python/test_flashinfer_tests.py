"""The script that runs FlashInfer's tests, on tests that are written as FlashInfer's are."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

SCRIPT = Path(__file__).resolve().parents[1] / "gpu" / "flashinfer_tests" / "run.py"
TESTS = """
import pytest
import torch
import flashinfer
from flashinfer.utils import has_flashinfer_jit_cache
from flashinfer.quantization.other import Unknown


@pytest.fixture(autouse=not has_flashinfer_jit_cache(), scope="module")
def warmup_jit():
    flashinfer.jit.build_jit_specs([], verbose=False)


def decode(q_scale=1.0, **more):
    q = torch.randn(3, 4, 64, device="cuda:0").half()
    kv = torch.randn(6, 2, 8, 2, 64).to(0).half()
    indptr = torch.arange(0, 4).to(0).int() * 2
    wrapper = flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper(torch.empty(8, device="cuda:0"), "NHD")
    last = torch.full((3,), 5, dtype=torch.int32, device="cuda:0")
    wrapper.plan(indptr, torch.arange(6, device="cuda").int(), last, 4, 2, 64, 8, **more)
    out, lse = wrapper.run(q, kv, return_lse=True)
    for i in range(3):
        k, v = (kv[2 * i : 2 * i + 2, which].reshape(16, 2, 64)[:13] for which in (0, 1))
        right, right_lse = flashinfer.single_decode_with_kv_cache(q[i] * q_scale, k, v, return_lse=True)
        torch.testing.assert_close(out[i], right, rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(lse[i], right_lse, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_decode(size):
    decode()


def test_wrong():
    decode(q_scale=2.0)


@pytest.mark.parametrize("head_dim", [128, 512])
def test_rope(head_dim):
    decode(pos_encoding_mode="ROPE_LLAMA")


def test_batch_attention_is_the_older_wrapper():
    q = torch.randn(5, 4, 64, device="cuda").bfloat16()
    kv = torch.randn(3, 2, 4, 2, 64, device="cuda").bfloat16()
    ints = lambda *values: torch.tensor(values, dtype=torch.int32, device="cuda")
    old = flashinfer.BatchPrefillWithPagedKVCacheWrapper(torch.empty(1), kv_layout="NHD", backend="fa2")
    old.plan(ints(0, 2, 5), ints(0, 1, 3), ints(0, 1, 2), ints(4, 3), 4, 2, 64, 4, causal=True)
    new = flashinfer.BatchAttention(kv_layout="NHD")
    new.plan(ints(0, 2, 5), ints(0, 1, 3), ints(0, 1, 2), ints(4, 7), 4, 2, 64, 64, 4, causal=True)
    torch.cuda.synchronize()
    for right, ours in zip(old.run(q, kv, return_lse=True), new.run(q, kv)):
        torch.testing.assert_close(right, ours, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("wrong", [False, True])
def test_batch_prefill(wrong):
    q, k, v = (torch.randn(count, 2, 64, device="cuda").half() for count in (3, 9, 9))
    ints = lambda *values: torch.tensor(values, dtype=torch.int32, device="cuda")
    wrapper = flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper(torch.empty(1), kv_layout="NHD")
    mask = torch.ones(3, 9, dtype=torch.bool).tril(6)
    wrapper.plan(ints(0, 3), ints(0, 9), 2, 2, 64, custom_mask=mask.flatten(), sm_scale=0.2 if wrong else None)
    out = wrapper.run(q, k, v)
    for right in {"custom_mask": mask}, {"causal": True}:
        torch.testing.assert_close(out, flashinfer.single_prefill_with_kv_cache(q, k, v, **right), rtol=1e-3, atol=1e-3)


def test_skips():
    pytest.skip("not on this card")


def test_that_is_known_to_fail():
    pytest.xfail("not yet")


def test_that_fails_without_ours():
    raise ValueError("elsewhere")


def test_of_another_part():
    flashinfer.get_seq_lens(torch.tensor([0, 2]), torch.tensor([3]), 8)


def test_of_an_unknown_part():
    flashinfer.topk.top_k(1)
"""


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "checkout" / "tests" / "attention"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "test_decode.py").write_text(TESTS)
    return tmp_path / "checkout"


def run(checkout, *arguments):
    file = checkout / "record.json"
    command = [sys.executable, str(SCRIPT), str(checkout), "attention/test_decode.py", "--device", "cpu", "--record", str(file)]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(file.read_text())


def test_the_record_says_what_became_of_each_test_and_why(checkout):
    code, record = run(checkout)
    assert code == 1 and record["device"] == "cpu" and record["reference"] == "torch"
    assert record["counts"] == {
        "passed": 6,
        "failed": 2,
        "outside": 2,
        "skipped by the test": 2,
        "of other parts of FlashInfer": 2,
        "without a reference": 1,
    }
    kinds = {(kind["outcome"], kind["reason"]): kind["count"] for kind in record["kinds"]}
    assert kinds["outside", "pos_encoding_mode: rotate q and K before they come here"] == 2
    assert kinds["skipped by the test", "not on this card"] == 1
    assert kinds["without a reference", "flashinfer.topk.top_k"] == 1
    assert any(outcome == "failed" and "not close" in reason for outcome, reason in kinds)
    assert record["functions"]["tests/attention/test_decode.py::test_decode"] == {"passed": 4}


def test_some_cases_of_each_function_are_drawn_and_what_is_late_is_counted(checkout):
    code, record = run(checkout, "--most", "1", "--seconds", "0", "-k", "test_decode or rope")
    assert code == 0 and set(record["counts"]) == {"not run", "not drawn"}
    assert record["functions"]["tests/attention/test_decode.py::test_decode"] == {"not drawn": 3, "not run": 1}


def test_processes_that_share_the_cases_find_what_one_finds(checkout):
    _, alone = run(checkout, "--most", "3")
    code, shared = run(checkout, "--most", "3", "--jobs", "2")
    assert code == 1 and alone.pop("kinds") and alone == {key: value for key, value in shared.items() if key != "kinds"}
