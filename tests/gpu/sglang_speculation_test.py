#!/usr/bin/env python3
"""sglang_speculation.py counts accepted tokens, compares texts, and says what failed."""

import argparse
import io
import unittest
from contextlib import redirect_stdout
from unittest import mock

import sglang_speculation
from sglang_speculation import accepted_of, arguments_of, compared


def output(count, steps=None):
    return {"output_ids": [*range(count)], "meta_info": {} if steps is None else {"spec_verify_ct": steps}}


def run_text(texts, backends, second=-2.0):
    """Of workers that write `texts[drafts, breadth]`; None: they fail. `second`: the log probability of token 2, that of 1 is -0.5."""

    def run_worker(options, job):
        tokens = texts[job["drafts"], job["breadth"]]
        likely = [[[(1, -0.5), (2, second)]]]
        return tokens and {"tokens": tokens, "text": [""], "tokens_s": 10.0, "accepted": 1.0, "likely": likely}

    given = dict(part="text", backends=backends, drafts="16", breadths="1,8", repeat=1, model="", show=0)
    with mock.patch.object(sglang_speculation, "run_worker", run_worker), redirect_stdout(io.StringIO()) as said:
        failed, _ = sglang_speculation.run_text(argparse.Namespace(**given))
    return failed, said.getvalue()


class Counts(unittest.TestCase):
    def test_a_step_without_speculation_gives_one_token(self):
        self.assertEqual(accepted_of([output(9), output(5)]), 1)

    def test_the_first_token_is_the_prompt_s(self):
        self.assertEqual(accepted_of([output(9, 4), output(5, 2)]), 2)

    def test_texts_part_where_tokens_differ_or_one_ends(self):
        plain = {"tokens": [[1, 2, 3], [4, 5], [6], [6]], "likely": [[], [], [[[6, -0.5], [8, -0.6]]], [[[6, -0.5], [8, -0.6]]]]}
        parted = compared(plain, {"tokens": [[1, 2, 3], [4, 5, 7], [8], [9]]})
        self.assertEqual((parted["same"], parted["ties"], parted["of"]), (1, 1, 4))
        self.assertEqual([(one["question"], one["at"], one["gap"]) for one in parted["parted"]], [(1, 2, None), (2, 0, 0.1), (3, 0, None)])


class Runs(unittest.TestCase):
    SAME = {(0, 0): [[1]], (16, 1): [[1]], (16, 8): [[1]]}

    def test_another_text_of_deft_is_a_failure_and_of_others_is_not(self):
        other = {**self.SAME, (16, 8): [[2]]}
        self.assertFalse(run_text(self.SAME, "deft:16")[0])
        self.assertTrue(run_text(other, "deft:16")[0])
        self.assertFalse(run_text(other, "fa3")[0])
        self.assertFalse(run_text(other, "deft", second=-0.6)[0])

    def test_an_engine_that_fails_is_a_failure(self):
        failed, said = run_text({**self.SAME, (0, 0): None}, "fa3")
        self.assertTrue(failed)
        self.assertNotIn("texts are those", said)

    def test_a_backend_may_name_its_pages(self):
        job = {"backend": "deft:16", "model": "", "most": 16, "sizes": [16], "more": {}, "drafts": 12, "breadth": 8}
        given = arguments_of(job)
        self.assertEqual((given["attention_backend"], given["page_size"], given["speculative_num_draft_tokens"]), ("deft", 16, 12))
        given = arguments_of({**job, "backend": "fa3", "drafts": 0})
        self.assertEqual(given["page_size"], 1)
        self.assertNotIn("speculative_algorithm", given)


if __name__ == "__main__":
    unittest.main()
