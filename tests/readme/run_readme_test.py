"""The README runner notices a command that fails, an output that differs, and a script that is not there."""

import tempfile
import unittest
from pathlib import Path

import run_readme


class RunReadmeTest(unittest.TestCase):
    def faults(self, text, gpu=False):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "README.md"
            file.write_text(text)
            return list(run_readme.faults_of(file, Path(folder), Path(folder), gpu))

    def faults_of_output(self, printed, shown, mode=""):
        return self.faults(f"```sh\necho '{printed}'\n```\n\n```text {mode}\n{shown}\n```\n")

    def test_times_may_differ_by_a_factor(self):
        self.assertEqual(self.faults_of_output("took  12.5 ms, right", "took 99 ms, right"), [])
        self.assertEqual(len(self.faults_of_output("took 12.5 ms", "took 9,900 ms")), 1)
        self.assertEqual(len(self.faults_of_output("took 12.5 ms", "took 0 ms")), 1)

    def test_errors_may_differ_by_a_factor(self):
        self.assertEqual(self.faults_of_output("error 0.0026, allowed 0.03", "error 0.004, allowed 0.03"), [])
        self.assertEqual(len(self.faults_of_output("error 0.0026, allowed 0.03", "error 0.04, allowed 0.03")), 1)

    def test_other_numbers_are_what_the_file_shows(self):
        self.assertEqual(self.faults_of_output("3,524 tokens", "3,524 tokens"), [])
        self.assertIn("it shows  3,524 tokens\n  and prints 3,525 tokens", self.faults_of_output("3,525 tokens", "3,524 tokens")[0])
        self.assertEqual(len(self.faults_of_output("1.0", "1.5")), 1)
        self.assertEqual(len(self.faults_of_output("5 steps", "5 seconds")), 1)
        self.assertEqual(len(self.faults_of_output("one line", "one line\nanother")), 1)

    def test_numbers_of_a_machine_may_be_any(self):
        self.assertEqual(self.faults_of_output("1 thread", "16 threads", "varies"), [])
        self.assertEqual(len(self.faults_of_output("1 thread", "16 blocks", "varies")), 1)

    def test_different_word_is_found(self):
        found = self.faults("```sh\necho wrong\n```\n```text\nright\n```\n")
        self.assertEqual(len(found), 1)
        self.assertIn("line 4: the output has changed", found[0])

    def test_digits_in_a_name_are_compared(self):
        self.assertEqual(len(self.faults("```sh\necho sm_90a\n```\n```text\nsm_80\n```\n")), 1)

    def test_text_after_a_sentence_is_not_an_expected_output(self):
        self.assertEqual(self.faults("```sh\necho a\n```\nFor example:\n```text\nb\n```\n"), [])

    def test_failing_command_is_found(self):
        self.assertEqual(self.faults("```sh\nfalse\ntrue\n```\n"), ["line 1: exit code 1"])

    def test_blocks_share_a_folder_and_files(self):
        self.assertEqual(self.faults("```json file=a.json\n{}\n```\n```sh\ncp a.json b.json\n```\n```sh\ncat b.json\n```\n```text\n{}\n```\n"), [])

    def test_spec_that_is_not_in_its_usual_form_is_found(self):
        with tempfile.TemporaryDirectory() as programs:
            deftc = Path(programs) / "deftc"
            deftc.write_text('#!/bin/sh\n! grep -q crooked "$3"\n')
            deftc.chmod(0o755)
            text = "```text file=a.deft\nspec\n```\n```text file=b.deft\ncrooked\n```\n"
            (Path(programs) / "README.md").write_text(text)
            found = list(run_readme.faults_of(Path(programs) / "README.md", Path(programs), Path(programs)))
        self.assertEqual(found, ["line 4: b.deft is not as `deftc fmt` writes it"])

    def test_missing_script_of_the_set_up_is_found(self):
        self.assertEqual(self.faults("```sh set-up\ntools/nothing\n```\n"), ["line 1: tools/nothing is not there or cannot be run"])

    def test_gpu_blocks_wait_for_a_gpu(self):
        self.assertEqual(self.faults("```sh gpu\nfalse\n```\n"), [])
        self.assertEqual(len(self.faults("```sh gpu\nfalse\n```\n", gpu=True)), 1)

    def test_python_blocks_share_their_names(self):
        self.assertEqual(self.faults("```python json\na = 3\n```\n```python json\nprint('a', a)\n```\n```text\na 3\n```\n"), [])

    def test_python_that_fails_or_prints_another_word_is_found(self):
        self.assertEqual(self.faults("```python json\nraise ValueError\n```\n"), ["line 1: this Python fails"])
        self.assertEqual(len(self.faults("```python json\nprint('no')\n```\n```text\nyes\n```\n")), 1)

    def test_python_that_needs_what_is_not_here_is_skipped(self):
        self.assertEqual(self.faults("```python no_such_module\nraise ValueError\n```\n"), [])

    def test_quotation_must_stand_in_its_file(self):
        here = Path(run_readme.__file__).parent
        quoted = "```python quote=notebook.py\ndef has(self, module):\n    return self.ask(module=module)[0]\n```\n"
        for text, count in ((quoted, 0), (quoted.replace("[0]", "[1]"), 1), (quoted.replace("notebook", "nothing"), 1)):
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "README.md"
                file.write_text(text)
                self.assertEqual(len(list(run_readme.faults_of(file, Path(folder), here))), count, text)

    def test_script_that_makes_a_record_must_be_there(self):
        found = self.faults("```sh reproduce\ntests/gpu/nothing.py --json FILE\n```\n")
        self.assertEqual(found, ["line 1: tests/gpu/nothing.py is not there"])

    def test_unknown_mode_is_found(self):
        self.assertEqual(self.faults("```sh later\ntrue\n```\n"), ["line 1: unknown mode `later`"])


if __name__ == "__main__":
    unittest.main()
