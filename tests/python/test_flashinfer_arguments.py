"""The script that compares the arguments of a release of FlashInfer with ours, on a release that is made here."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "gpu" / "flashinfer_tests" / "arguments.py"
if not SCRIPT.exists():  # the wheel's tests have no scripts
    pytest.skip("there are no scripts here", allow_module_level=True)

NEW = """
class BatchAttention:
    def __init__(self, kv_layout='NHD', device='cuda', queue=None): ...
    def run(self, q, kv_cache, out=None, lse=None): ...
    def drain(self): ...
    def _of_its_own(self, anything): ...


def merge_states(s, v): ...


class CUDAGraphBatchDecodeWithPagedKVCacheWrapper:
    def run(self, q, *, v_scale=1.0): ...
    begin_forward = run
"""


def test_what_is_missing_is_named(tmp_path):
    wheel = tmp_path / "flashinfer.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("flashinfer/attention/_core.py", NEW)
        file.writestr("flashinfer/experimental/other.py", "def merge_state(a, b, c, d, e): ...")
    done = subprocess.run([sys.executable, str(SCRIPT), str(wheel)], capture_output=True, text=True, timeout=60)
    lines = done.stdout.splitlines()
    assert done.returncode == 1, done.stderr
    assert "BatchAttention.__init__: queue is missing" in lines
    assert "BatchAttention.drain is missing" in lines
    assert "merge_states: by place it takes s, v" in lines
    assert "CUDAGraphBatchDecodeWithPagedKVCacheWrapper.run: v_scale is None without a value, not 1.0" in lines
    assert "merge_state: the release has none" in lines
    assert not any("BatchAttention.run" in line or "_of_its_own" in line for line in lines)
