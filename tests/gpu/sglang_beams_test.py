#!/usr/bin/env python3
"""sglang_beams.py makes an engine large enough for its sizes, reads answers, and compares scores."""

import unittest

from sglang_beams import answer_of, arguments_of, compared, name_of, sizes_of, timed


def result(backend, size, score, tokens=(1, 2)):
    return {"backend": backend, "engine": backend, name_of(size): {"ms": 1.0, "tokens": list(tokens), "score": score}}


class Beams(unittest.TestCase):
    def test_an_engine_has_room_for_every_size(self):
        sizes = sizes_of("512x2000x3,5000x8000x3,512x2000x16")
        self.assertEqual(sizes[1], (5000, 8000, 3))
        arguments = arguments_of("fa3", sizes, "folder", False)
        self.assertGreaterEqual(arguments["max_running_requests"], 5000)
        self.assertGreaterEqual(arguments["max_total_tokens"], 8000 + 5000 * 4)
        self.assertGreater(arguments["context_length"], 8003)
        self.assertEqual(arguments["page_size"], 1)  # SGLang's beam search takes no other
        self.assertEqual(arguments["cuda_graph_config"]["decode"]["bs"], [1, 512, 5000])
        self.assertTrue(arguments_of("fa3", sizes, "folder", True)["disable_cuda_graph"])

    def test_the_best_answer_is_the_first(self):
        beams = [{"output_ids": [4, 5], "meta_info": {"sequence_score": -1.5}}, {"output_ids": [6], "meta_info": {"sequence_score": -2}}]
        self.assertEqual(answer_of({"meta_info": {"beam_results": beams}}), ([4, 5], -1.5))
        with self.assertRaises(ValueError):
            answer_of({"meta_info": {"beam_results": [{"output_ids": [], "meta_info": {"sequence_score": 0.0}}]}})

    def test_the_first_call_is_left_out(self):
        calls = []
        _, last = timed(3, lambda: calls.append(0) or len(calls))
        self.assertEqual((len(calls), last), (4, 4))

    def test_scores_far_apart_are_a_fault_and_other_tokens_are_none(self):
        size = (512, 2000, 3)
        rows, is_near = compared([size], [result("fa3", size, -2.0), result("deft", size, -2.05, (1, 3))])
        self.assertTrue(is_near)
        self.assertFalse(rows[name_of(size)]["tokens_are_the_same"])
        self.assertNotIn("tokens", rows[name_of(size)]["fa3"])
        self.assertFalse(compared([size], [result("fa3", size, -2.0), result("deft", size, -2.2)])[1])


if __name__ == "__main__":
    unittest.main()
