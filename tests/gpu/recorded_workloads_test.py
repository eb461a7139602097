"""Templates as DeFT's authors publish them become the files that `--workloads` reads."""

import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import recorded_workloads

FINISHED = {"incompleted": False, "prompt": "a text", "data": {
    "0": {"id": 0, "value": 100, "start": -99, "end": 0, "children": [1, 2]},
    "1": {"id": 1, "value": 3, "start": 1, "end": 3, "children": []},
    "2": {"id": 2, "value": 5, "start": 1, "end": 5, "children": [3]},
    "3": {"id": 3, "value": 4, "start": 6, "end": 9, "children": []}}}
TOKENS = {"Tree_Structure": [[0], [1], [0, 0], [1, 0], [1, 1]], "Records": [{"prompt": "eight ch", "Accept_length": [1, 3, 2]}] * 6}


class RecordedWorkloadsTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def checkout(self):
        templates = self.folder / "DeFT" / recorded_workloads.TEMPLATES
        for kind in ("Reasoning", "Speculative_Decoding"):
            (templates / kind).mkdir(parents=True)
        for name in recorded_workloads.SEARCHES.values():
            (templates / f"Reasoning/{name}ToT.json").write_text(json.dumps([{**FINISHED, "incompleted": True}, *[FINISHED] * 9]))
        for size in recorded_workloads.TOKEN_TREES:
            (templates / f"Speculative_Decoding/APPS_tree_size{size}.json").write_text(json.dumps(TOKENS))
        return self.folder / "DeFT"

    def made(self, checkout):
        with mock.patch.object(sys, "argv", ["recorded_workloads.py", str(checkout), str(self.folder / "out")]), contextlib.redirect_stdout(io.StringIO()):
            code = recorded_workloads.main()
        return code, {path.stem: json.loads(path.read_text()) for path in (self.folder / "out").glob("*.json")}

    def test_searches_that_ended_are_kept_with_the_parent_of_each_node(self):
        code, files = self.made(self.checkout())
        self.assertEqual((code, len(files)), (0, 8))
        search = files["reasoning_document"]
        self.assertEqual((search["format"], search["name"], len(search["trees"])), ("recorded-tree/1", "reasoning_document", 8))
        self.assertEqual(search["trees"][0], {"nodes": [[-1, 100, -99, 0], [0, 3, 1, 3], [0, 5, 1, 5], [2, 4, 6, 9]]})

    def test_token_trees_name_their_parents_by_number(self):
        tree = self.made(self.checkout())[1]["speculative_t32"]
        self.assertEqual((tree["format"], tree["parents"]), ("token-tree/1", [-1, 0, 0, 1, 2, 2]))
        self.assertEqual(tree["records"], [{"prompt_characters": 8, "accepted": [1, 3, 2]}] * 4)

    def test_texts_stay_behind(self):
        self.assertNotIn("a text", json.dumps(self.made(self.checkout())[1]))

    def test_a_folder_that_is_no_checkout_is_named(self):
        code, files = self.made(self.folder)
        self.assertIn(f"{self.folder} has no folder dataset/generation", code)
        self.assertEqual(files, {})


if __name__ == "__main__":
    unittest.main()
