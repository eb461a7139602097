"""The check of passes finds each kind of fault in records made for it, and nothing in good ones."""

import unittest

import check_passes

EXAMPLE = """
    Turns a into b, wherever it stands.

    ```mlir
    a
      indented
    ```

    becomes

    ```mlir
    b
      indented
    ```
"""


def turns_a_into_b(ir, argument):
    return ir.replace("a", "b", 1) if argument else ir


class PassesTest(unittest.TestCase):
    def faults(self, print_ir=turns_a_into_b, **changes):
        good = {"argument": "deft-b", "summary": "a to b", "description": EXAMPLE, "options": [], "statistics": []}
        return list(check_passes.faults_of({**good, **changes}, print_ir))

    def test_good_pass_has_no_faults(self):
        self.assertEqual(self.faults(), [])

    def test_examples_lose_the_indentation_of_the_description(self):
        self.assertEqual(check_passes.examples_of(EXAMPLE), ([("a\n  indented\n", "b\n  indented\n")], False))

    def test_summary_is_asked_for(self):
        self.assertEqual(self.faults(summary=" "), ["deft-b has no summary"])

    def test_description_says_more_than_the_summary(self):
        only_examples = EXAMPLE.replace("Turns a into b, wherever it stands.", "a to b").replace("becomes", "")
        self.assertEqual(
            self.faults(description=only_examples), ["deft-b has no description that says more than its summary"]
        )

    def test_example_is_asked_for(self):
        self.assertEqual(
            self.faults(description="Turns a into b."), ["deft-b has no example: two blocks fenced by ```mlir"]
        )

    def test_input_without_a_result(self):
        self.assertEqual(
            self.faults(description=EXAMPLE + "\n    ```mlir\n    a\n    ```\n"), ["deft-b has an input without a result"]
        )

    def test_example_that_is_not_true(self):
        found = self.faults(description=EXAMPLE.replace("    b\n", "    c\n"))
        self.assertEqual(found, ["deft-b: example 1 should give\nc\n  indented\nbut gives\nb\n  indented\n"])

    def test_example_that_shows_nothing(self):
        found = self.faults(lambda ir, argument: ir, description=EXAMPLE.replace("    b\n", "    a\n"))
        self.assertEqual(found, ["deft-b: example 1 shows nothing, its input is its result"])

    def test_option_and_statistic_say_what_they_are(self):
        silent = [{"cppName": "limit", "description": ""}]
        self.assertEqual(self.faults(options=silent), ["deft-b: `limit` of its options has no description"])
        self.assertEqual(self.faults(statistics=silent), ["deft-b: `limit` of its statistics has no description"])

    def test_command_line_and_records_name_the_same_passes(self):
        passes = [{"argument": "deft-b"}, {"argument": "deft-c"}]
        help_text = "  Passes:\n      --deft-b      -   a to b\n      --deft-d   -   d\n      --deft-optimize  -  all\n"
        self.assertEqual(check_passes.unknown_passes(help_text, passes), ["deft-c", "deft-d"])


if __name__ == "__main__":
    unittest.main()
