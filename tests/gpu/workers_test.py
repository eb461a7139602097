#!/usr/bin/env python3
"""workers.py returns what a process wrote, and says why there is nothing."""

import io
import tempfile
import unittest
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import workers


class Results(unittest.TestCase):
    def result(self, text, timeout=60):
        """(result, what the process printed, what is printed of a failure)"""
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()) as told:
            program = Path(folder) / "program.py"
            program.write_text(text)
            result, said = workers.result_of(program, ["given"], SimpleNamespace(timeout=timeout, tail=100), "a part")
        return result, said, told.getvalue()

    def test_what_it_writes_is_the_result(self):
        text = "import sys; print('said'); open(sys.argv[sys.argv.index('--out') + 1], 'w').write('{\"got\": \"%s\"}' % sys.argv[1])"
        self.assertEqual(self.result(text), ({"got": "given"}, "said\n", ""))

    def test_one_that_fails_says_why(self):
        result, said, told = self.result("raise SystemExit('no GPU')")
        self.assertIsNone(result)
        self.assertEqual((said, told), ("no GPU\n", "a part failed with 1:\nno GPU\n\n"))

    def test_one_that_takes_too_long_is_named(self):
        result, _, told = self.result("import time; print('begun', flush=True); time.sleep(60)", timeout=1)
        self.assertIsNone(result)
        self.assertEqual(told, "a part failed with a time-out:\nbegun\n\n")


if __name__ == "__main__":
    unittest.main()
