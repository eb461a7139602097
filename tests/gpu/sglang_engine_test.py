#!/usr/bin/env python3
"""sglang_engine.py holds engines against the right one, and says where one failed."""

import argparse
import io
import unittest
from contextlib import redirect_stdout
from unittest import mock

import sglang_engine


def run_all(tokens, modes="graphs"):
    """Of engines by name: the token that each gives; None: it fails."""
    def run_worker(options, backend, mode):
        token = tokens[backend]
        if token is None:
            return None
        return {"backend": backend, "dtype": "bfloat16", "tokens": [[token]], "logprobs": [[{str(token): -1.0}]], "few_shot_tokens": [[token]],
                "start_s": 1, "rates": {"n16": {"tokens_s": 10.0, "step_ms": 1.0}}}

    options = argparse.Namespace(backends=",".join(tokens), modes=modes, dtype="bfloat16")
    with mock.patch.object(sglang_engine, "run_worker", run_worker), redirect_stdout(io.StringIO()):
        failed, record = sglang_engine.run_all(options)
    return failed, [(entry["mode"], entry["backend"], entry["beside"]) for entry in record if "beside" in entry]


class Runs(unittest.TestCase):
    def test_all_are_held_against_the_first_that_is_not_deft(self):
        self.assertEqual(run_all({"deft": 1, "fa3": 1, "triton": 1}),
                         (False, [("graphs", "deft", "fa3"), ("graphs", "triton", "fa3")]))

    def test_in_each_mode(self):
        self.assertEqual(run_all({"fa3": 1, "deft": 1}, "eager,graphs"),
                         (False, [("eager", "deft", "fa3"), ("graphs", "deft", "fa3")]))

    def test_another_token_of_deft_s_is_a_failure_and_of_others_is_not(self):
        self.assertTrue(run_all({"fa3": 1, "deft": 2})[0])
        self.assertFalse(run_all({"fa3": 1, "triton": 2})[0])

    def test_prompts_may_be_another_backend_s(self):
        self.assertTrue(run_all({"fa3": 1, "fa3+deft": 2})[0])
        self.assertFalse(run_all({"fa3+deft": 1, "fa3": 1})[0])
        options = argparse.Namespace(model="", dtype="bfloat16", kv_cache_dtype="auto", page_size=16)
        needs = sglang_engine.Needs({"tokens": ([[1, 2]], 1, 3)})
        given = sglang_engine.arguments_of("fa3+deft", "eager", needs, options)
        self.assertEqual((given["prefill_attention_backend"], given["attention_backend"]), ("fa3", "deft"))
        self.assertNotIn("prefill_attention_backend", sglang_engine.arguments_of("deft", "eager", needs, options))

    def test_an_engine_that_fails_is_a_failure(self):
        self.assertEqual(run_all({"fa3": None, "triton": 1, "deft": 1}), (True, [("graphs", "deft", "triton")]))


class Graphs(unittest.TestCase):
    def test_prompts_are_captured_by_default_alone(self):
        self.assertIn("disable_cuda_graph", sglang_engine.graphs_of("eager", [1]))
        self.assertEqual(sglang_engine.graphs_of("graphs", [1])["cuda_graph_config"]["prefill"], {"backend": "disabled"})
        self.assertNotIn("prefill", sglang_engine.graphs_of("default", [1])["cuda_graph_config"])

    def test_rollouts_get_the_room_that_they_take(self):
        needs = sglang_engine.Needs({"tokens": ([[1, 2]], 1, 3), "rollout": ([[1] * 16384, [1] * 16384], 64, 200)})
        self.assertEqual((needs.requests, needs.longest, needs.graph_sizes[-1]), (128, 16584, 128))
        self.assertGreaterEqual(needs.cache_tokens, 2 * 16384 + 128 * 200)

    def test_a_prompt_that_samples_share_gets_room_once(self):
        shared = [1] * 16384
        needs = sglang_engine.Needs({"tokens": ([[1, 2]], 1, 3), "after": ([shared + [2 + i] * 500 for i in range(128)], 1, 201)})
        self.assertEqual((needs.requests, needs.cache_tokens), (128, 16384 + 128 * (500 + 201 + 64)))


if __name__ == "__main__":
    unittest.main()
