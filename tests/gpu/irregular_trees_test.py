#!/usr/bin/env python3
"""irregular_trees.py draws the trees that it says, the same ones each time, and times peers on them only where they can run."""

import argparse
import contextlib
import io
import sys
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

import irregular_trees


class Trees(unittest.TestCase):
    def test_agents_have_as_many_nodes_tokens_and_queries_as_asked_for(self):
        nodes, readers = irregular_trees.agents(330, 98000, 115, 10000)
        self.assertEqual((len(nodes), len(readers), nodes[0]), (330, 115, [-1, 10000]))
        self.assertAlmostEqual(sum(tokens for _, tokens in nodes), 98000, delta=330)
        self.assertTrue(all(parent < node for node, (parent, _) in enumerate(nodes)))

    def test_files_are_those_that_peers_read(self):
        with tempfile.TemporaryDirectory() as folder:
            irregular_trees.write_trees(Path(folder))
            import trees

            tree = trees.of_file(Path(folder) / "document_40k_19.json")
        self.assertEqual((len(tree.ends), tree.nodes[0].tokens, tree.paths[3]), (19, 40000, [0, 4]))

    def test_names_of_attentions_have_their_heads(self):
        self.assertEqual([irregular_trees.heads_of(name) for name in irregular_trees.ATTENTIONS], [(32, 8), (64, 8), (16, 1)])


class Peers(unittest.TestCase):
    def said(self, names, **modules):
        with mock.patch.dict(sys.modules, modules), contextlib.redirect_stdout(io.StringIO()) as out:
            _, peers = irregular_trees.peers_of(names)
        return list(peers), out.getvalue()

    def torch(self, has_gpu):
        return types.SimpleNamespace(cuda=types.SimpleNamespace(is_available=lambda: has_gpu))

    def test_without_flashinfer_or_a_gpu_there_are_none(self):
        self.assertEqual(self.said("", flashinfer=None), ([], ""))
        self.assertRegex(self.said("flashinfer_decode", flashinfer=None)[1], "^no peers: ")
        self.assertEqual(self.said("flashinfer_decode", flashinfer=mock.Mock(), torch=self.torch(False))[1], "no peers: torch finds no GPU\n")
        self.assertEqual(self.said("flashinfer_decode", flashinfer=mock.Mock(), torch=self.torch(True)), (["flashinfer_decode"], ""))

    def test_points_have_a_time_or_a_reason(self):
        answers = {"good": {"us": 12.0, "error": 0.001}, "bad": {"why": "wrong"}}
        fakes = {"case": mock.Mock(), "timed": mock.Mock(time_of=lambda torch, case, prepare, repeat: answers[prepare]), "trees": mock.Mock()}
        with mock.patch.dict(sys.modules, fakes), contextlib.redirect_stdout(io.StringIO()):
            points = irregular_trees.run_peers(mock.Mock(), {"a": "good", "b": "bad"}, argparse.Namespace(repeat=3), Path("."), "h32_8", "t")
        self.assertEqual(points, [{"tree": "t", "attention": "h32_8", "config": "a", **answers["good"]}, {"tree": "t", "attention": "h32_8", "config": "b", **answers["bad"]}])


if __name__ == "__main__":
    unittest.main()
