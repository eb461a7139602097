"""The program that times wide beams on a GPU judges what it times; here its small rows on the CPU."""

import json
import sys

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from gpu_scripts import load_script, needs_repository

pytestmark = needs_repository


def run(monkeypatch, path, largest_error=None):
    script = load_script("wide_beams")
    if largest_error is not None:
        monkeypatch.setattr(script, "LARGEST_ERROR", largest_error)
    monkeypatch.setattr(sys, "argv", ["wide_beams", "--tiny", "--steps", "2", "--search", "--json", str(path)])
    return script.main()


def test_rows_and_searches_are_right(monkeypatch, tmp_path):
    assert run(monkeypatch, tmp_path / "beams.json") == 0
    found = json.loads((tmp_path / "beams.json").read_text())
    rows = found["rows"]
    assert list(rows) == ["beams_40_below_50_own_3", "beams_40_below_50_own_20", "beams_40_below_50_own_3_levels_4", "beams_40_below_50_own_3_levels_4_heads_32"]
    assert all(0 < row["error"] < 0.02 for row in rows.values())
    assert 50 + 40 < rows["beams_40_below_50_own_3_levels_4"]["different_tokens"] <= 50 + 2 + 4 + 8 + 20 + 3 * 40
    [search] = found["searches"].values()
    assert search["score_gap"] <= 0.1


def test_a_wrong_row_ends_in_an_exit_code(monkeypatch, tmp_path):
    assert run(monkeypatch, tmp_path / "beams.json", largest_error=0.0) == 1


def test_beams_share_the_levels_above_them():
    row = load_script("wide_beams").Row(40, 50, 2, (2, 4, 8, 20))
    assert row.widths == (2, 4, 8, 20, 40, 40)
    assert row.name == "beams_40_below_50_own_2_levels_4"
