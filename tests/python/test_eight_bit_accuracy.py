"""The measure of how exact products of 8 bits are: its record's table is in the evidence, and small contexts give its order of errors."""

import json
import sys
from pathlib import Path

import pytest

numpy = pytest.importorskip("numpy", reason="NumPy is not installed")
pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")

import deft

ROOT = Path(__file__).resolve().parents[2]
BENCHES = ROOT / "tests/bench/python"
pytestmark = pytest.mark.skipif(not BENCHES.is_dir(), reason="the tests lie without the repository")
sys.path.append(str(BENCHES))


@pytest.fixture(scope="module")
def accuracy():
    import eight_bit_accuracy

    return eight_bit_accuracy


def test_the_page_shows_the_record(accuracy):
    record = json.loads((BENCHES / "eight_bit_accuracy.json").read_text(encoding="utf-8"))
    assert accuracy.table(record) in (ROOT / "docs/evidence/features.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["normal", "outliers", "needle"])
def test_more_rounding_is_more_error(accuracy, kind):
    attentions = {way: deft.compile(accuracy.spec(way)) for way in accuracy.WAYS}
    found = accuracy.measure(kind, 512, 8, attentions, deft, numpy)
    exact, cache, products = (found["ways"][way]["error"] for way in accuracy.WAYS)
    assert 0 < exact < 0.005 < cache < 0.4
    if kind == "outliers":
        assert products < 0.4  # rounding of the keys outweighs that of the products
    else:
        assert cache < products < 0.1
    if kind == "needle":
        assert found["needle_weight"] == pytest.approx(0.5, abs=0.1)
        for way in found["ways"].values():
            assert way["needle_weight"] == pytest.approx(found["needle_weight"], abs=0.05)
            assert way["found"] == 1
