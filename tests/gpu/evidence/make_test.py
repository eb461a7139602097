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
import ranks
from records import FOLDER, Records, levels_of, readers_of, tokens_of


def text_of(pages):
    """The tables' pages in their order, losses last."""
    return "\n".join(page.text() for name, page in pages.items() if name != "EVIDENCE.md")


class MakeTest(unittest.TestCase):
    def test_pages_in_the_repository_are_made_of_the_records(self):
        told = subprocess.run([sys.executable, make.__file__, "check"], capture_output=True, text=True, check=False)
        self.assertEqual((told.returncode, told.stderr), (0, ""))

    def changed(self, change, name="h200-bench-rows.json"):
        """All pages' text, from records with one bench changed."""
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
            path = Path(folder) / name
            bench = json.loads(path.read_text())
            change(bench)
            path.write_text(json.dumps(bench))
            return text_of(make.evidence(Records(Path(folder))))

    def test_first_screen_has_five_sentences_with_their_card_and_day(self):
        first = make.evidence(Records())["EVIDENCE.md"].text()
        sentences = [line for line in first.splitlines() if line.startswith("**")]
        self.assertEqual(len(sentences), 5)
        for sentence in sentences:
            self.assertRegex(sentence, r"\(H[12]00, 2026-\d\d-\d\d\)")

    def test_another_time_makes_another_page(self):
        def halve(bench):
            bench["suites"][0]["rows"][0]["cold_us"] /= 2
        self.assertNotEqual(self.changed(halve), self.changed(lambda bench: None))

    def test_row_that_is_slower_than_a_peer_is_a_loss(self):
        def slow(bench):
            bench["suites"][0]["rows"][0]["cold_us"] = 99.0
        page = self.changed(slow)
        self.assertIn("- F9_01_g4: 99.0 us, PAT takes 20.2", page.split("## Where deftc loses")[1])

    def test_entry_that_is_slower_than_the_untuned_choice_on_the_other_card_is_a_loss(self):
        def slow(bench):
            [row] = [row for suite in bench["suites"] for row in suite["rows"] if row["name"] == "F9_03_g16"]
            row["cold_us"] = 20.0
        page = self.changed(slow, "h100-bench.json")
        self.assertIn("- F9_03_g16 on the H100: the tuned entry takes", page.split("## Where deftc loses")[1])
        self.assertNotIn("on the H100: the tuned entry", self.changed(lambda bench: None).split("## Where deftc loses")[1])

    def test_peer_that_is_faster_in_the_same_run_is_a_loss_on_its_card(self):
        def slow(peers):
            peers["rows"]["F9_01 32/8"]["deftc"]["us"] = 30.0
            peers["rows"]["F9_01 32/8"]["fasttree"]["us"] = 22.9
        page = self.changed(slow, "h100-peers.json")
        self.assertIn("- F9_01 32/8 on the H100: 30.0 us, FastTree takes 22.9", page.split("## Where deftc loses")[1])

    def test_latent_rows_have_targets_by_their_floor_and_two_by_the_peer(self):
        def timed(floor_us, cold_us):
            def change(bench):
                [row] = [row for row in bench["suites"][0]["rows"] if row["name"] == "latent_64_below_8k_16"]
                row["floor_us"], row["cold_us"] = floor_us, cold_us
            return self.changed(change, "h200-latent.json").split("## Where deftc loses")[1]
        for floor_us, goal, words in ((60, 1.3, "of 60 us and more"), (20, 1.7, "of 20 to 60 us"), (19, 2.2, "below 20 us")):
            missed = rf"- latent caches, rows with a floor {words}: .*latent_64_below_8k_16 {goal + 0.1:.3f}"
            self.assertRegex(timed(floor_us, floor_us * (goal + 0.1)), missed)
            self.assertNotRegex(timed(floor_us, floor_us * (goal - 0.01)), rf"rows with a floor {words}: .*latent_64_below_8k_16")
        self.assertIn("- latent_64_below_8k_16: 2.57 times the speed of FlashInfer 0.6.15.post1 fa3; the target was 3\n", timed(40, 60))
        self.assertNotIn("- latent_64_below_8k_16: ", timed(40, 50))

    def test_without_a_bench_of_the_other_card_that_is_a_gap(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
            (Path(folder) / "h100-bench-untuned.json").unlink()
            page = text_of(make.evidence(Records(Path(folder))))
        self.assertIn("| tuned against untuned on an H100 |", page.split("| no record of |")[1])

    def test_row_of_a_processor_that_is_slower_is_a_loss_within_the_spread_as_well(self):
        def spread(record, share):
            record["spread"] = share
        losses = [self.changed(lambda record, share=share: spread(record, share), "processor-rows.json").split("## Where deftc loses")[1]
                  for share in (0.01, 0.19)]
        loss = "- processor, no_sharing:requests=8,tokens=1000: path by path takes 0.86 of deftc's time"
        self.assertIn(loss + "\n", losses[0])
        self.assertIn(loss + " (within the machine's spread of 19 %)\n", losses[1])

    def test_rows_that_need_recordings_are_named_with_the_way_to_get_them(self):
        page = self.changed(lambda bench: None)
        [recordings] = [line for line in page.splitlines() if line.startswith("**Recordings.** ")]
        self.assertIn("8 of the 57 rows (`SP_t32`, `SP_t64`, `SP_t128`, `SP_t256`, `TOT_document`,", recordings)
        self.assertIn("tests/gpu/recorded_workloads.py DeFT DIR\n", page)

    def test_figures_say_how_the_best_published_came_to_be(self):
        readme = (make.ROOT / "README.md").read_text(encoding="utf-8")
        self.assertRegex(readme, r"We ran the published kernels on another H200 on 2026-11-21, not in the same run, and scaled their times by 1\.191, .* \(unscaled: 1\.81x, slower on RS_3lvl\)")

    def test_bench_of_another_card_has_its_line(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
            bench = json.loads((FOLDER / "h200-bench-rows.json").read_text())
            bench["device"]["name"] = "NVIDIA H100 80GB HBM3"
            (Path(folder) / "h100-bench.json").write_text(json.dumps(bench))
            page = text_of(make.evidence(Records(Path(folder))))
        self.assertIn("| [h100-bench.json](../../tests/gpu/records/h100-bench.json) | H100 | fasttree | 45 |", page)

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
        pages = make.evidence(Records()).values()
        for name, picture in [entry for page in pages for entry in page.pictures.items()]:
            with self.subTest(name):
                xml.etree.ElementTree.fromstring(picture)
                self.assertNotIn("nan", picture)


class RanksTest(unittest.TestCase):
    def test_more_gpus_follow_from_the_parts_of_the_last_two(self):
        measured = {2: {"own_part_us": 10 + 400 / 2, "step_us": 10 + 400 / 2 + 8}, 4: {"own_part_us": 10 + 400 / 4, "step_us": 10 + 400 / 4 + 12}}
        own, added, step = ranks.expected(measured, 8)
        self.assertAlmostEqual(own, 10 + 400 / 8)
        self.assertAlmostEqual(added, 16)
        self.assertAlmostEqual(step, own + added)
        self.assertAlmostEqual(ranks.expected(measured, 4)[2], measured[4]["step_us"])


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
