#!/usr/bin/env python3
"""rank_faults.py judges what processes report as it says, and sees one that does not end."""

import signal
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import rank_faults

KILLED = (-signal.SIGKILL, None)


def report(**changed):
    return {"said": "rank 2 did not give its results of run 101 in time", "ended": 12.0, "replays": 101, **changed}


class Rows(unittest.TestCase):
    def row(self, first, second=(0, report()), last=KILLED):
        return rank_faults.row_of([first, second, last], 10.0, 2.0)

    def test_errors_in_time_that_name_the_rank_are_right(self):
        self.assertEqual(self.row((0, report(ended=12.5))), {"ranks": 3, "said": report()["said"], "seconds": 2.5, "is_right": True})

    def test_a_late_error_is_wrong(self):
        self.assertFalse(self.row((0, report(ended=15.1)))["is_right"])

    def test_another_rank_or_no_error_is_wrong(self):
        self.assertFalse(self.row((0, report(said="rank 1 did not give its results")))["is_right"])
        self.assertFalse(self.row((0, report(said="", replays=10000)))["is_right"])

    def test_an_error_from_before_the_kill_is_wrong(self):
        self.assertFalse(self.row((0, report(replays=3)))["is_right"])
        self.assertFalse(self.row((0, report(ended=9.0)))["is_right"])

    def test_a_process_that_hangs_or_fails_is_wrong(self):
        self.assertEqual(self.row((None, None)), {"ranks": 3, "said": "a process did not end", "seconds": None, "is_right": False})
        self.assertFalse(self.row((1, report()))["is_right"])
        self.assertFalse(self.row((0, report()), last=(0, report()))["is_right"])


class Processes(unittest.TestCase):
    def run_program(self, text, own=0):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict("os.environ", TORCHELASTIC_USE_AGENT_STORE="True"):
            program = Path(folder) / "program.py"
            program.write_text(text)
            return rank_faults.run_process(["a", 1], own, str(program))

    def test_the_last_line_is_the_report(self):
        self.assertEqual(self.run_program("import sys; print('said'); print('{\"ended\": %s}' % sys.argv[2])"), (0, {"ended": 1}))

    def test_torchrun_s_store_is_not_theirs(self):
        self.assertEqual(self.run_program("import os; print('{\"said\": \"%s\"}' % os.environ.get('TORCHELASTIC_USE_AGENT_STORE'))"), (0, {"said": "None"}))

    def test_one_that_dies_says_why(self):
        code, found = self.run_program("raise SystemExit('no GPU')")
        self.assertEqual((code, found["said"]), (1, "no GPU\n"))

    def test_one_that_hangs_is_ended(self):
        with mock.patch.object(rank_faults, "START", 0):
            self.assertEqual(self.run_program("import time; time.sleep(60)", own=1), (None, None))


if __name__ == "__main__":
    unittest.main()
