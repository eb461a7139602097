"""What the evidence says is what records hold: made pages are noticed when they are stale, losses are listed, gaps are named."""

import json
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

import charts
import make
from records import FOLDER, Records, levels_of, readers_of, tokens_of


class MakeTest(unittest.TestCase):
    def test_pages_in_the_repository_are_made_of_the_records(self):
        told = subprocess.run([sys.executable, make.__file__, "check"], capture_output=True, text=True, check=False)
        self.assertEqual((told.returncode, told.stderr), (0, ""))

    def changed(self, change, name="h200-bench.json"):
        """The page of records of which a bench was changed."""
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
            path = Path(folder) / name
            bench = json.loads(path.read_text())
            change(bench)
            path.write_text(json.dumps(bench))
            return make.evidence(Records(Path(folder))).text()

    def test_another_time_makes_another_page(self):
        def halve(bench):
            bench["suites"][0]["rows"][0]["cold_us"] /= 2
        self.assertNotEqual(self.changed(halve), self.changed(lambda bench: None))

    def test_row_that_is_slower_than_a_peer_is_a_loss(self):
        def slow(bench):
            bench["suites"][0]["rows"][0]["cold_us"] = 99.0
        page = self.changed(slow)
        self.assertIn("- F9_01_g4: 99.0 us beside 18.1 of PAT", page.split("## Where it loses")[1])
        self.assertIn("slower on 1,", page)

    def test_entry_that_is_slower_than_the_untuned_choice_on_the_other_card_is_a_loss(self):
        def slow(bench):
            [row] = [row for suite in bench["suites"] for row in suite["rows"] if row["name"] == "F9_03_g16"]
            row["cold_us"] = 20.0
        page = self.changed(slow, "h100-bench.json")
        self.assertIn("times the untuned choice's time on F9_03_g16, on the H100", page.split("## Where it loses")[1])
        self.assertNotIn("on the H100", self.changed(lambda bench: None).split("## Where it loses")[1])

    def test_peer_that_is_faster_in_the_same_run_is_a_loss_on_its_card(self):
        def slow(peers):
            peers["rows"]["F9_01 32/8"]["deftc"]["us"] = 30.0
            peers["rows"]["F9_01 32/8"]["fasttree"]["us"] = 22.9
        page = self.changed(slow, "h100-peers.json")
        self.assertIn("- F9_01 32/8 on the H100: 30.0 us beside 22.9 of FastTree", page.split("## Where it loses")[1])

    def test_without_a_bench_of_the_other_card_that_is_a_gap(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
            (Path(folder) / "h100-bench-untuned.json").unlink()
            page = make.evidence(Records(Path(folder))).text()
        self.assertIn("| tuned against untuned on an H100 |", page.split("| no record of |")[1])

    def test_row_of_a_processor_that_is_slower_is_a_loss_within_the_spread_as_well(self):
        def spread(record, share):
            record["spread"] = share
        losses = [self.changed(lambda record, share=share: spread(record, share), "processor-rows.json").split("## Where it loses")[1]
                  for share in (0.01, 0.19)]
        loss = "- on a processor path by path takes 0.86 of our time on no_sharing:requests=8,tokens=1000"
        self.assertIn(loss + "\n", losses[0])
        self.assertIn(loss + " (times of one row spread by 19 % there)\n", losses[1])

    def test_rows_that_need_recordings_are_named_with_the_way_to_get_them(self):
        page = self.changed(lambda bench: None)
        [recordings] = [line for line in page.splitlines() if line.startswith("**Recordings.** ")]
        self.assertIn("8 of the 57 rows (`SP_t32`, `SP_t64`, `SP_t128`, `SP_t256`, `TOT_document`,", recordings)
        self.assertIn("tests/gpu/recorded_workloads.py DeFT DIR\n", page)

    def test_figures_say_how_the_best_published_came_to_be(self):
        readme = (make.ROOT / "README.md").read_text(encoding="utf-8")
        self.assertRegex(readme, r"\*Best published\*: .*, run by us on .* scaled by 1\.065, .* not one of the 57 .* 261\.0 unscaled")

    def test_bench_of_another_card_has_its_line(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
            bench = json.loads((FOLDER / "h200-bench.json").read_text())
            bench["device"]["name"] = "NVIDIA H100 80GB HBM3"
            (Path(folder) / "h100-bench.json").write_text(json.dumps(bench))
            page = make.evidence(Records(Path(folder))).text()
        self.assertIn("| [h100-bench.json](../tests/gpu/records/h100-bench.json) | H100 | fasttree | 45 |", page)

    def test_figures_stand_between_their_marks_only(self):
        text = "before\n" + make.BEGIN + "stale figures\n" + make.END + "after\n"
        found = make.with_figures(text, Records())
        self.assertTrue(found.startswith("before\n") and found.endswith("after\n"))
        self.assertNotIn("stale figures", found)
        self.assertEqual(make.with_figures(found, Records()), found)

    def test_readme_without_a_place_for_figures_is_refused(self):
        with self.assertRaises(SystemExit):
            make.with_figures("nothing", Records())

    def test_pictures_are_well_formed(self):
        for name, picture in make.evidence(Records()).pictures.items():
            with self.subTest(name):
                xml.etree.ElementTree.fromstring(picture)
                self.assertNotIn("nan", picture)


class RowsTest(unittest.TestCase):
    ROW = {"workload": "levels:nodes=1,4,tokens=100,20", "cache_bytes": 180 * 4 * 8 * 128, "heads": "32/8", "head_dim": 128}

    def test_tokens_come_from_the_bytes_of_the_cache(self):
        self.assertEqual(tokens_of(self.ROW), 180)

    def test_readers_are_what_paths_have_over_what_the_tree_has(self):
        self.assertEqual(levels_of(self.ROW), [(1, 100), (4, 20)])
        self.assertAlmostEqual(readers_of(self.ROW), 4 * 120 / 180)

    def test_readers_of_an_unknown_tree_are_unknown(self):
        self.assertIsNone(readers_of({"workload": "reasoning_set:tree=3,step=89"}))


class ChartsTest(unittest.TestCase):
    def test_larger_values_stand_higher_and_further_right(self):
        axis = charts.Axis([1, 1000], 0, 300, is_log=True)
        self.assertAlmostEqual(axis.place(10) - axis.place(1), axis.place(1000) - axis.place(100))
        self.assertLess(axis.place(1), axis.place(2))

    def test_linear_axes_begin_at_zero(self):
        self.assertEqual(charts.Axis([40, 80], 10, 100, is_log=False).place(0), 10)

    def test_bars_beyond_the_limit_say_their_value(self):
        self.assertIn(">9.00<", charts.bars("t", "", ["a", "b"], [("x", [1.0, 9.0])], limit=2))


if __name__ == "__main__":
    unittest.main()
