"""The history of benches: what is added, what is refused, and that table and plot are made of it."""

import contextlib
import io
import json
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

import history


def bench(commit="0123abc", seconds=1795588051, us=20.0, untuned=False, **options):
    row = {"name": "F9_01_g4", "right": True, "cold_us": us, "warm_us": us - 1, "floor_us": 10.0,
           "scattered": {"chosen": {"median_us": us + 1}}}
    return {"format": "deftc-bench", "commit": commit, "seconds_since_epoch": seconds, "device": {"name": "NVIDIA H200"},
            "options": {"untuned": untuned, "chunk": -1, "partition": "", "tile": 0, **options},
            "suites": [{"name": "fasttree", "rows": [row]},
                       {"name": "deft", "rows": [{**row, "name": "FS_b20", "scattered": None}]}],
            "variants": [{"tree": "FS_b20", "variant": "alibi", "cold_us": us, "plain_us": us / 2}]}


class MeasurementsTest(unittest.TestCase):
    def test_a_line_has_row_card_commit_date_and_times(self):
        first, second, third = history.measurements(bench())
        self.assertEqual(first, {"date": "2026-11-25T06:27:31Z", "card": "NVIDIA H200", "commit": "0123abc",
                                 "config": "shipped", "suite": "fasttree", "row": "F9_01_g4", "us": 20.0, "warm_us": 19.0,
                                 "scattered_us": 21.0, "floor_us": 10.0})
        self.assertEqual((second["row"], second.get("scattered_us")), ("FS_b20", None))
        self.assertEqual((third["row"], third["us"], third["plain_us"]), ("FS_b20 alibi", 20.0, 10.0))

    def test_untuned_is_told_apart(self):
        self.assertEqual(history.measurements(bench(untuned=True))[0]["config"], "untuned")

    def test_what_says_nothing_of_a_commit_is_refused(self):
        wrong = bench()
        wrong["suites"][0]["rows"][0]["right"] = False
        for refused in ({"format": "deftc-plan-bench"}, [], bench(commit="a draft"), bench(commit=None), wrong,
                        bench(chunk=512), bench(partition="node"), bench(tile=64)):
            with self.assertRaises(history.Refused):
                history.measurements(refused)
        self.assertEqual(history.measurements(bench(commit=None), "89abcdef0")[0]["commit"], "89abcde")


class BenchesTest(unittest.TestCase):
    def test_a_measurement_is_there_once_and_in_the_order_of_time(self):
        later, earlier = history.measurements(bench()), history.measurements(bench(seconds=1795500000))
        both = history.added(later, earlier)
        self.assertEqual([line["date"][:10] for line in both], ["2026-11-24"] * 3 + ["2026-11-25"] * 3)
        with self.assertRaises(history.Refused):
            history.added(both, later)

    def test_suites_measured_one_after_the_other_are_one_bench(self):
        suites = history.measurements(bench())
        suites[1]["date"] = "2026-11-25T06:28:00Z"
        self.assertEqual([len(rows) for rows in history.benches_of(suites).values()], [3])
        suites[1]["date"] = "2026-11-25T07:28:00Z"
        self.assertEqual([len(rows) for rows in history.benches_of(history.added([], suites)).values()], [2, 1])

    def test_the_mean_over_the_floor_is_that_of_whole_suites(self):
        lines = history.measurements(bench())
        lines[1]["us"] = 45.0
        (rows,) = history.benches_of(lines).values()
        self.assertAlmostEqual(history.mean_over_floor(rows, ("fasttree", "deft")), 3.0)
        self.assertIsNone(history.mean_over_floor(rows, ("fasttree", "other")))


class DrawnTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_history(self, *arguments):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            code = history.main(["--folder", str(self.folder), *map(str, arguments)])
        return code, errors.getvalue()

    def file(self, name, content):
        path = self.folder / name
        path.write_text(json.dumps(content))
        return path

    def test_add_appends_and_draws(self):
        self.assertEqual(self.run_history("add", self.file("a.json", bench(seconds=1795500000, us=30.0)))[0], 0)
        self.assertEqual(self.run_history("add", self.file("b.json", bench(commit="89abcde")))[0], 0)
        self.assertEqual(self.run_history("add", self.file("u.json", bench(seconds=1795588100, us=21.0, untuned=True)))[0], 0)
        self.assertEqual(len((self.folder / "history.jsonl").read_text().splitlines()), 9)
        table = (self.folder / "history.md").read_text()
        self.assertIn("| 2026-11-25 06:27 | 89abcde | H200 | shipped | 3 | 2.000 |  |", table)
        self.assertIn("| F9_01_g4 | 2.00 | 21.0 | 30.0 | 20.0 (89abcde) | 30.0 | 20.0 |", table)
        plot = xml.etree.ElementTree.parse(self.folder / "history.svg").getroot()
        texts = [node.text for node in plot.iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn("F9_01_g4", texts)
        self.assertIn("20.0 us", texts)
        self.assertEqual(self.run_history("check"), (0, ""))

    def test_what_is_refused_changes_nothing(self):
        self.run_history("add", self.file("a.json", bench()))
        before = (self.folder / "history.jsonl").read_text()
        code, errors = self.run_history("add", self.file("again.json", bench()))
        self.assertEqual(code, 1)
        self.assertIn("again.json: has F9_01_g4 of 2026-11-25T06:27:31Z, which is there already", errors)
        self.assertEqual((self.folder / "history.jsonl").read_text(), before)

    def test_check_notices_an_edit(self):
        self.run_history("add", self.file("a.json", bench()))
        (self.folder / "history.md").write_text("edited")
        code, errors = self.run_history("check")
        self.assertEqual(code, 1)
        self.assertIn("history.md: not what", errors)


class RecordsTest(unittest.TestCase):
    def test_table_and_plot_are_made_of_the_history(self):
        self.assertGreater(len(history.read_lines(history.FOLDER)), 4000)
        self.assertEqual(history.stale(history.FOLDER), [])

    def test_the_benches_that_are_kept_are_in_the_history(self):
        known = {history.key_of(line): line for line in history.read_lines(history.FOLDER)}
        for name in ("h200-bench-quick.json", "h200-bench-quick-untuned.json"):
            for line in history.measurements(json.loads((history.FOLDER / name).read_text())):
                self.assertEqual(known.get(history.key_of(line)), line, name)

    def test_the_index_names_every_record(self):
        index = (history.FOLDER / "README.md").read_text()
        files = [path.name for path in history.FOLDER.iterdir() if path.name != "README.md"]
        self.assertEqual([name for name in files if f"]({name})" not in index], [])


if __name__ == "__main__":
    unittest.main()
