"""What tools/bench_peers holds kernels against, here with deftc's on the CPU."""

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from gpu_scripts import needs_repository

pytestmark = needs_repository
FOLDER = Path(__file__).resolve().parents[2] / "tools/peers"


@pytest.fixture
def peers(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import case
    import ours
    import trees

    yield case, ours, trees
    for name in ("case", "ours", "trees"):
        del sys.modules[name]


def drawn(case, trees, of_bytes):
    return case.draw(torch, trees.of_levels((1, 4, 8), (64, 32, 16)), 8, 2, 128, 0, of_bytes, device="cpu")


@pytest.mark.parametrize("of_bytes", [False, True])
def test_results_with_products_of_16_bits_have_the_small_error(peers, of_bytes):
    case, ours, trees = peers
    one = drawn(case, trees, of_bytes)
    assert 0 < case.largest_error(one, ours.prepare(one)()) < case.allowed_error(one, False) / 10


def test_products_of_8_bits_err_as_rounded_rows_do(peers):
    case, ours, trees = peers
    one = drawn(case, trees, True)
    out, allowed = ours.with_byte_products(one)(), case.allowed_error(one, True)
    assert case.LARGEST_ERROR < allowed / 2 < 0.06
    assert 0.8 * allowed / 2 < case.largest_error(one, out) < 1.2 * allowed / 2
    out[3, 1, :64] = 0
    assert case.largest_error(one, out) > allowed
