#!/usr/bin/env python3
"""vllm_engine.py compares tokens as it says, and its prompts share what it says."""

import argparse
import io
import unittest
from contextlib import redirect_stdout
from unittest import mock

import engine_models
import vllm_engine


def seen(tokens, logprobs):
    return {"tokens": tokens, "logprobs": logprobs}


class Compare(unittest.TestCase):
    def test_a_request_counts_until_its_first_token_that_differs(self):
        own = seen([[1, 2, 3], [4, 5, 6]], [[{"1": -1.0}, {"2": -1.0}, {"3": -1.0}], [{"4": -1.0}, {"5": -1.0, "9": -1.25}, {"6": -1}]])
        other = seen([[1, 2, 3], [4, 9, 6]], [[{"1": -1.5}, {"2": -1.0}, {"3": -1.0}], [{"4": -1.0}, {"9": -1.0}, {"6": -1}]])
        self.assertEqual(vllm_engine.compare(own, other), {
            "requests": 2, "requests_that_differ": 1, "tokens_that_agree": 4, "gap_where_they_differ": 0.25,
            "logprob_difference": 0.5, "first_logprob_difference": 0.25})

    def test_a_first_token_that_the_other_does_not_name_is_not_in_the_mean(self):
        own = seen([[1], [2]], [[{"1": -1.0}], [{"2": -1.0}]])
        other = seen([[1], [3]], [[{"1": -1.5}], [{"3": -1.0}]])
        self.assertEqual(vllm_engine.compare(own, other)["first_logprob_difference"], 0.5)

    def test_a_token_that_the_own_backend_does_not_name_is_no_tie(self):
        compared = vllm_engine.compare(seen([[1]], [[{"1": -1.0}]]), seen([[7]], [[{"7": -1.0}]]))
        self.assertGreater(compared["gap_where_they_differ"], max(vllm_engine.TIES.values()))


class Runs(unittest.TestCase):
    def run_all(self, backends, caches, tokens, pairs=False):
        """Of engines that give these tokens, in their order."""
        results = iter([{"backend": backend, "kv_cache_dtype": cache, "dtype": "bfloat16", "tokens": [[token]], "logprobs": [[{str(token): -1.0}]],
                         "few_shot_tokens": [[token]], "start_s": 1, "rates": {"n16": {"tokens_s": 10.0, "step_ms": 1.0}}}
                        for backend, cache, token in zip(backends, caches, tokens)])
        options = argparse.Namespace(backends=",".join(f"{b}:{c}" for b, c in zip(backends, caches)), modes="graphs", pairs=pairs, dtype="bfloat16")
        with mock.patch.object(vllm_engine, "run_worker", lambda *_: next(results)), redirect_stdout(io.StringIO()):
            failed, record = vllm_engine.run_all(options)
        return failed, [(entry["backend"], entry["beside"]) for entry in record if "beside" in entry]

    def test_another_token_over_the_same_cache_is_a_failure_and_over_another_is_not(self):
        own, deft = "FLASH_ATTN", "CUSTOM"
        self.assertEqual(self.run_all([own, deft], ["auto", "auto"], [1, 1]), (False, [("CUSTOM:auto", "FLASH_ATTN:auto")]))
        self.assertTrue(self.run_all([own, deft], ["auto", "auto"], [1, 2])[0])
        self.assertFalse(self.run_all([own, deft], ["auto", "fp8"], [1, 2])[0])

    def test_pairs_are_all_of_two(self):
        _, pairs = self.run_all(["A", "B", "C"], ["x", "x", "x"], [1, 1, 1], pairs=True)
        self.assertEqual(pairs, [("B:x", "A:x"), ("C:x", "A:x"), ("C:x", "B:x")])


class Workloads(unittest.TestCase):
    def test_every_process_makes_the_same_prompts(self):
        self.assertEqual(vllm_engine.workloads(), vllm_engine.workloads())

    def test_prompts_share_what_they_should(self):
        for name, shared in {"tokens": 500, "few_shot": 4096, "alone": 0}.items():
            first, second = vllm_engine.workloads()[name][0][:2]
            self.assertEqual(first[:shared], second[:shared])
            self.assertNotEqual(first[shared], second[shared])

    def test_samples_of_a_rollout_begin_with_tokens_of_their_own(self):
        names = ["rollout_64x8k", "rollout_64x8k_after500", "grpo_16x16x8k_after1000"]
        made = vllm_engine.workloads(names)
        (plain, samples, length), (own, one, later) = (made[name] for name in names[:2])
        self.assertEqual((len(plain), samples, length), (1, 64, 200))
        self.assertEqual((len(own), one, later, len(own[0])), (64, 1, 201, 8692))
        self.assertTrue(all(prompt[:8192] == plain[0] for prompt in own))
        self.assertEqual(len({tuple(prompt[8192:]) for prompt in own}), 64)
        self.assertEqual((len(made[names[2]][0]), len({tuple(prompt[8192:]) for prompt in made[names[2]][0]})), (256, 256))

    def test_there_are_both_numbers_of_samples_for_each_prompt(self):
        self.assertEqual(sum(name.startswith("rollout_") for name in vllm_engine.ROLLOUTS), 6)
        self.assertEqual(vllm_engine.ROLLOUTS["rollout_128x32k"], (1, 32768, 128))

    def test_what_prompts_share_lies_in_the_cache_once(self):
        self.assertEqual(vllm_engine.different_tokens([[1, 2, 3, 4], [1, 2, 5], [7, 2]]), 4 + 1 + 2)


class Rates(unittest.TestCase):
    def rate_of(self, name, seconds):
        """Of an engine whose calls for so many tokens take these seconds, two requests each; and what it was called for."""
        calls = []

        def generate(name, length=None):
            length = length or vllm_engine.workloads([name])[name][2]
            calls.append(length)
            return ["a", "b"], seconds[length], 2 * length

        return vllm_engine.rate_of(name, generate, 2)[0], calls

    def test_the_start_of_a_call_is_not_measured_behind_own_tokens(self):
        rate, calls = self.rate_of("rollout_64x8k_after500", {1: 0.5, 201: 2.5})
        self.assertEqual(rate, {"tokens_s": 200.0, "step_ms": 10.0, "times_s": [2.0, 2.0]})
        self.assertEqual(calls, [201, 1, 201, 1, 201])

    def test_else_a_whole_call_is(self):
        rate, calls = self.rate_of("rollout_64x8k", {200: 4.0})
        self.assertEqual(rate, {"tokens_s": 100.0, "step_ms": 20.0, "times_s": [4.0, 4.0]})
        self.assertEqual(calls, [200, 200, 200])


class Models(unittest.TestCase):
    def test_every_weight_but_norms_has_a_spread(self):
        for model in engine_models.MODELS.values():
            shapes = model.shapes(2)
            norms = {name for name in shapes if engine_models.spread_of(model, name + ".weight") is None}
            self.assertEqual(norms, {name for name in shapes if name.endswith("norm")})
            self.assertTrue(all(len(shapes[name]) == 1 + (name not in norms) for name in shapes))

    def test_shapes_are_those_of_the_config(self):
        for model in engine_models.MODELS.values():
            config, shapes = model.config(3, "bfloat16"), model.shapes(3)
            self.assertEqual(config["num_hidden_layers"], len({name.split(".")[2] for name in shapes if ".layers." in name}))
            self.assertEqual(shapes["lm_head"], (config["vocab_size"], config["hidden_size"]))
            self.assertEqual(shapes["model.layers.2.mlp.up_proj"], (config["intermediate_size"], config["hidden_size"]))

    def test_latent_attention_has_the_dimensions_that_the_config_says(self):
        model = engine_models.MODELS["deepseek"]
        config, at = model.config(1, "bfloat16"), "model.layers.0.self_attn."
        latent, rope, heads = config["kv_lora_rank"], config["qk_rope_head_dim"], config["num_attention_heads"]
        self.assertEqual(model.shapes(1)[at + "kv_a_proj_with_mqa"], (latent + rope, config["hidden_size"]))
        wide = config["qk_nope_head_dim"] + config["v_head_dim"]
        self.assertEqual(model.shapes(1)[at + "kv_b_proj"], (heads * wide, latent))


if __name__ == "__main__":
    unittest.main()
