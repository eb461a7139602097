"""The support table's cells are what records show: each record is accounted for, and a name that no row knows is a fault."""

import json
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

import names
import seen
from records import FOLDER, Records

RANDOM = "h200-random-cases-queries.json"
FEW = ("README.md", RANDOM, "h200-latent-bytes.json", "h200-latent-lists.json", "h200-profiles.json", "h200-select-runs.json", "h200-vllm.json", "h200-vllm-drafts.json")


class SeenTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name in FEW:
            shutil.copy(FOLDER / name, self.folder)
        entries = json.loads((FOLDER / "shows.json").read_text(encoding="utf-8"))
        (self.folder / "shows.json").write_text(json.dumps({name: entries[name] for name in FEW if name in entries}))

    def edit(self, name, change):
        record = json.loads((self.folder / name).read_text())
        change(record)
        (self.folder / name).write_text(json.dumps(record))

    def faults(self):
        return seen.Shown(Records(self.folder)).faults

    def rows(self, name):
        return seen.Shown(Records(self.folder)).rows[name]

    def test_every_record_is_accounted_for(self):
        self.assertEqual(seen.Shown(Records()).faults, [])

    def test_a_new_record_without_an_entry_is_a_fault(self):
        (self.folder / "h200-new.json").write_text('{"us": 1.0}')
        self.assertEqual(self.faults(), ["h200-new.json: shows.json must say what it shows, or why nothing"])

    def test_a_record_that_is_gone_leaves_no_entry(self):
        (self.folder / "h200-profiles.json").unlink()
        self.assertEqual(self.faults(), ["h200-profiles.json: shows.json has it, the folder does not"])

    def test_a_hook_that_no_row_knows_is_a_fault(self):
        self.edit(RANDOM, lambda record: record["counts"]["hook"].update(folded_query=3))
        self.assertEqual(self.faults(), [f"{RANDOM}: hook `folded_query` is not in tests/gpu/evidence/names.py"])

    def test_a_feature_that_no_row_knows_is_a_fault(self):
        self.edit("shows.json", lambda entries: entries["h200-select-runs.json"]["shows"].update(folding="^random_cases"))
        self.assertEqual(self.faults(), ["h200-select-runs.json: `folding` is no row of the support table"])

    def test_a_run_of_a_cell_that_says_no_is_a_fault(self):
        self.edit("shows.json", lambda entries: entries["h200-vllm.json"]["shows"].update({"vLLM: alibi": "^device"}))
        self.assertEqual(self.faults(), ["h200-vllm.json: shows `vLLM: alibi`, and its cell says no"])

    def test_what_an_engine_ran_needs_a_word_on_whether_it_was_right(self):
        self.edit("h200-vllm-drafts.json", lambda record: record["runs"][1].update(dcp=2))
        self.assertEqual(self.faults(), ["h200-vllm-drafts.json: names `vLLM: context_parallel`; shows.json must say whether that was right"])
        self.edit("shows.json", lambda entries: entries["h200-vllm-drafts.json"].update({"not": {"vLLM: context_parallel": "tokens differed"}}))
        self.assertEqual(self.faults(), [])
        self.assertNotIn("vLLM: context_parallel", self.rows("h200-vllm-drafts.json"))

    def test_runs_as_an_engines_program_writes_them_are_named(self):
        runs = [{"sglang": "0.5.17", "backend": "triton", "drafts": 16, "breadth": 8}, {"sglang": "0.5.17", "backend": "deft:16", "drafts": 16, "breadth": 8}]
        self.assertEqual(names.of_record(runs), {f"SGLang: {row}" for row in ("decode", "prefix_cache", "draft_trees")})
        runs = [{"vllm": "0.26.0", "backend": "CUSTOM", "kind": "deepseek", "kv_cache_dtype": "fp8_ds_mla", "mode": "graphs"}]
        self.assertEqual(names.of_record(runs), {"vLLM: mla", "vLLM: mla_rows", "vLLM: graphs"})
        self.assertEqual(names.of_record([{"device": "NVIDIA H200", "steps": 3}]), set())

    def test_a_pattern_that_the_newer_record_does_not_have_is_a_fault(self):
        self.edit("h200-latent-lists.json", lambda record: record["rows"].pop("lists_64_h16"))
        self.assertRegex("\n".join(self.faults()), "^h200-latent-lists.json: no line has .* which would show `latent_given_lists`")

    def test_a_record_that_shows_something_cannot_say_nothing(self):
        self.edit("shows.json", lambda entries: entries[RANDOM].update(nothing="times"))
        self.assertRegex("\n".join(self.faults()), f"^{RANDOM}: it shows bf16, ")

    def test_wrong_results_show_nothing(self):
        self.edit(RANDOM, lambda record: record.update(wrong=1))
        self.assertEqual(self.rows(RANDOM), set())
        self.edit("h200-latent-bytes.json", lambda record: [row.update(right=False) for row in record["suites"][0]["rows"]])
        self.assertEqual(self.rows("h200-latent-bytes.json"), set())

    def test_counts_of_attentions_say_which_hook_ran_over_which_cache(self):
        self.edit(RANDOM, lambda record: record["counts"].update(attention={"fp8_e5m2: softcap": 2, "latent fp8_e4m3, scales: plain": 1}))
        self.assertEqual(self.rows(RANDOM), {"fp8_e5m2", "latent_scales"})

    def test_an_attention_of_a_row_is_that_row(self):
        record = {"format": "deftc-gpu-record", "results": [{"attention": "feature_ratio_128", "exit_code": 0}]}
        (self.folder / "h200-rows.json").write_text(json.dumps(record))
        self.assertEqual(self.faults(), ["h200-rows.json: README.md has no row for it"])
        self.assertEqual(self.rows("h200-rows.json"), {"ratio_128"})
        self.edit("h200-rows.json", lambda record: record["results"].append({"attention": "feature_ratio_128", "exit_code": 1}))
        self.assertEqual(self.rows("h200-rows.json"), set())

    def test_the_spec_of_rows_has_one_attention_for_each(self):
        sys.path.insert(0, str(seen.ROOT / "tests/gpu"))
        import support_spec
        found = support_spec.attentions(support_spec.FEATURES.read_text(encoding="utf-8"))
        rows = [row for row in seen.rows_of_the_table() if ": " not in row]
        self.assertEqual(list(found), [row for row in rows if row not in support_spec.NOT_RUN])
        self.assertLess(support_spec.NOT_RUN, set(rows))
        for name, text in found.items():
            self.assertRegex(text, rf"^attention feature_{name} {{ .* }}$")

    def test_every_random_hook_has_a_name(self):
        source = (seen.ROOT / "tests/gpu/random/Specs.cpp").read_text(encoding="utf-8")
        hooks = source.split("std::vector<Hook> hooks(", 1)[1].split("\n}\n", 1)[0]
        for hook in seen.re.findall(r'^      \{"(\w+)",', hooks, seen.re.M):
            self.assertIn(hook, names.HOOKS)

    def test_every_shipped_spec_has_a_name(self):
        for path in (seen.ROOT / "specs").glob("*.deft"):
            for attention in seen.re.findall(r"^attention (\w+)", path.read_text(encoding="utf-8"), seen.re.M):
                self.assertIn(attention, names.SPECS)

    def test_an_engine_was_seen_in_the_release_that_its_table_names(self):
        declared = json.loads((seen.ROOT / "runtime/doctor/declared/engines.json").read_text(encoding="utf-8"))
        found = {"vLLM": set(), "SGLang": set()}
        for path in FOLDER.glob("*.json"):
            record = json.loads(path.read_text(encoding="utf-8"))
            if names.engine_of(record):
                found[names.engine_of(record)].add(record.get("vllm") or record["sglang"])
        for engine, releases in found.items():
            self.assertTrue(any((release + ".").startswith(declared[engine]["tested_with"] + ".") for release in releases), (engine, releases))


if __name__ == "__main__":
    unittest.main()
