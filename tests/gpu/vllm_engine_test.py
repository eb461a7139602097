#!/usr/bin/env python3
"""vllm_engine.py compares tokens as it says, and its prompts share what it says."""

import unittest

import vllm_engine


def seen(tokens, logprobs):
    return {"tokens": tokens, "logprobs": logprobs}


class Compare(unittest.TestCase):
    def test_a_request_counts_until_its_first_token_that_differs(self):
        own = seen([[1, 2, 3], [4, 5, 6]], [[{"1": -1.0}, {"2": -1.0}, {"3": -1.0}], [{"4": -1.0}, {"5": -1.0, "9": -1.25}, {"6": -1}]])
        other = seen([[1, 2, 3], [4, 9, 6]], [[{"1": -1.5}, {"2": -1.0}, {"3": -1.0}], [{"4": -1.0}, {"9": -1.0}, {"6": -1}]])
        self.assertEqual(vllm_engine.compare(own, other), {
            "requests": 2, "requests_that_differ": 1, "tokens_that_agree": 4, "gap_where_they_differ": 0.25,
            "logprob_difference": 0.5})

    def test_a_token_that_the_own_backend_does_not_name_is_no_tie(self):
        compared = vllm_engine.compare(seen([[1]], [[{"1": -1.0}]]), seen([[7]], [[{"7": -1.0}]]))
        self.assertGreater(compared["gap_where_they_differ"], max(vllm_engine.TIES.values()))


class Workloads(unittest.TestCase):
    def test_every_process_makes_the_same_prompts(self):
        self.assertEqual(vllm_engine.workloads(), vllm_engine.workloads())

    def test_prompts_share_what_they_should(self):
        for name, shared in {"tokens": 500, "few_shot": 4096, "alone": 0}.items():
            first, second = vllm_engine.workloads()[name][0][:2]
            self.assertEqual(first[:shared], second[:shared])
            self.assertNotEqual(first[shared], second[shared])


if __name__ == "__main__":
    unittest.main()
