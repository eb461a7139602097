"""Checks renew_on_card.py, without a GPU."""

import collections
import json
import pathlib
import tempfile
import unittest

import renew_on_card

ROOT = pathlib.Path(__file__).resolve().parents[2]


class RenewOnCardTest(unittest.TestCase):
    def test_every_entry_that_ships_is_of_an_attention_in_the_order(self):
        shipped = renew_on_card.entries_by_signature(ROOT / "tuner" / "configs")
        self.assertEqual(set(shipped) - {signature for _, _, signature in renew_on_card.ORDER}, set())

    def test_attentions_of_the_order_are_in_their_specs(self):
        specs = {"heads": ROOT / "tests" / "gpu" / "heads.deft", **{name: ROOT / "tests" / "bench" / f"{name}.deft" for name in ("kernel_rows", "latent_rows")}}
        for package, name, _ in renew_on_card.ORDER:
            self.assertRegex(specs[package].read_text(encoding="utf-8"), rf"(?m)^attention {name}\b")

    def test_entries_are_counted_by_signature(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "a.json").write_text(json.dumps({"entries": [{"signature": "x"}, {"signature": "y"}, {"signature": "x"}]}))
            self.assertEqual(renew_on_card.entries_by_signature(folder), {"x": 2, "y": 1})
            (folder / "b.json").write_text(json.dumps({"entries": [{"signature": "x"}, {"signature": "y"}, {"signature": "y"}]}))
            self.assertEqual(renew_on_card.entries_by_signature(folder), {"x": 2, "y": 2}, "of the card that has most")
            self.assertEqual(renew_on_card.entries_by_signature(folder / "none"), {})

    def test_an_attention_gets_what_its_entries_take_and_no_more_than_is_left(self):
        self.assertEqual(renew_on_card.seconds_for(70, 1000), 140)
        self.assertEqual(renew_on_card.seconds_for(5, 1000), 30)
        self.assertEqual(renew_on_card.seconds_for(70, 50), 50)
        self.assertEqual(renew_on_card.seconds_for(70, 10), 0)

    def test_the_summary_counts_no_more_than_ship(self):
        signature = renew_on_card.ORDER[0][2]
        lines = renew_on_card.summary(collections.Counter({signature: 3}), collections.Counter({signature: 5}))
        self.assertEqual(lines[-1], "3 of 3 entries that ship are of this card and these kernels now")


if __name__ == "__main__":
    unittest.main()
