"""What tools/bench_peers times things on: trees by levels and of files, who reads a node, and arguments that say what is wrong."""

import argparse
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS / "peers"))

import trees  # noqa: E402


def program():
    loader = importlib.machinery.SourceFileLoader("bench_peers", str(TOOLS / "bench_peers"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class TreesTest(unittest.TestCase):
    def test_children_are_spread_evenly_below_the_level_above(self):
        tree = trees.of_levels((1, 2, 6), (8, 4, 3))
        self.assertEqual([node.parent for node in tree.nodes], [-1, 0, 0, 1, 1, 1, 2, 2, 2])
        self.assertEqual(tree.ends, [3, 4, 5, 6, 7, 8])
        self.assertEqual(tree.tokens, 8 + 2 * 4 + 6 * 3)
        self.assertTrue(tree.has_queries_at_leaves_alone())

    def test_path_has_the_tokens_of_its_nodes_in_order(self):
        tree = trees.of_levels((1, 2, 2), (3, 2, 1))
        self.assertEqual(tree.paths[1], [0, 2, 4])
        self.assertEqual(tree.places(1), [0, 1, 2, 5, 6, 8])
        self.assertEqual(tree.length(1), 6)

    def test_node_knows_the_queries_that_see_it(self):
        tree = trees.of_levels((1, 2, 4), (3, 2, 1))
        self.assertEqual(tree.nodes[0].queries, [0, 1, 2, 3])
        self.assertEqual(tree.nodes[2].queries, [2, 3])

    def test_rows_are_those_of_the_published_tables(self):
        tokens = {name: trees.of_levels(*levels).tokens for name, levels in trees.LEVELS.items()}
        self.assertEqual((tokens["F9_08"], tokens["F9_10"], tokens["FS_b50"]), (278_816, 20_464, 14_000))

    def read(self, document):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tree.json"
            path.write_text(json.dumps(document), encoding="utf-8")
            return trees.of_file(path)

    def test_file_of_deftc_is_read(self):
        tree = self.read({"format": "deftc-tree", "version": 1, "nodes": [{"parent": -1, "tokens": 5}, {"parent": 0, "tokens": 2}],
                          "queries": [{"node": 0}, {"node": 1}]})
        self.assertEqual((tree.tokens, tree.paths), (7, [[0], [0, 1]]))
        self.assertFalse(tree.has_queries_at_leaves_alone())

    def test_other_files_are_refused(self):
        with self.assertRaisesRegex(ValueError, "the format is None"):
            self.read({"nodes": []})
        with self.assertRaisesRegex(ValueError, "positions of their own"):
            self.read({"format": "deftc-tree", "nodes": [{"parent": -1, "tokens": 5}], "queries": [{"node": 0, "position": 2}]})


class ArgumentsTest(unittest.TestCase):
    def test_heads_are_two_numbers_of_which_one_divides_the_other(self):
        heads_of = program().heads_of
        self.assertEqual(heads_of("32/8"), (32, 8))
        for text in ("32", "32/0", "32/5", "a/8"):
            with self.assertRaisesRegex(ValueError, f"--heads {text}: "):
                heads_of(text)

    def peers_of(self, **given):
        options = argparse.Namespace(**{"fp8": False, "products": False, "artifact": "", "peer": [], "only": None, **given})
        with contextlib.redirect_stdout(io.StringIO()):
            return program().peers_of(options)

    def test_products_of_8_bits_are_rows_of_their_own(self):
        kernels = {"deftc_byte_products", "fa3_byte_products"}
        peers, of_bytes = self.peers_of(fp8=True, products=True)
        self.assertEqual((of_bytes, peers.keys() & kernels), (kernels, kernels))
        self.assertIn("deftc", peers)
        self.assertEqual(self.peers_of(fp8=True)[0].keys() & kernels, set())
        self.assertEqual(set(self.peers_of(fp8=True, products=True, only=["fa3_byte_products"])[0]), {"deftc", "fa3_byte_products"})

    def test_products_of_8_bits_need_caches_of_8_bits(self):
        with self.assertRaisesRegex(ValueError, "--products: .* add --fp8"):
            self.peers_of(products=True)

    def test_summary_leaves_out_rows_that_a_peer_has_no_time_of(self):
        rows = {"a": {"deftc": {"us": 10}, "x": {"us": 20}}, "b": {"deftc": {"us": 10}, "x": {"why": "wrong"}}}
        (line,) = program().summary(rows, ["deftc", "x"])
        self.assertIn("2.00 times deftc's time in the mean of 1 rows", line)


if __name__ == "__main__":
    unittest.main()
