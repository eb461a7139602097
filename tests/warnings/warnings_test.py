"""What compiles in a build where warnings are errors fails where the compiler has warned, and nowhere else.

usage: warnings_test.py COMPILER
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

COMPILER = "c++"
WARNINGS_ARE_ERRORS = Path(__file__).resolve().parents[2] / "tools" / "cmake" / "warnings_are_errors"


class WarningsTest(unittest.TestCase):
    def compiled(self, text):
        """The exit code of compiling a source, and what is said."""
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "source.cpp")
            source.write_text(text)
            command = [WARNINGS_ARE_ERRORS, COMPILER, "-Wall", "-c", source, "-o", Path(folder, "source.o")]
            ran = subprocess.run(command, capture_output=True, text=True)
            return ran.returncode, ran.stderr

    def test_a_good_source(self):
        self.assertEqual(self.compiled("int one() { return 1; }\n"), (0, ""))

    def test_a_warning_is_shown_and_fails(self):
        code, said = self.compiled("int one() { int unused; return 1; }\n")
        self.assertEqual(code, 1)
        self.assertIn("-Wunused-variable", said)
        self.assertIn("DEFT_WARNINGS_ARE_ERRORS", said)

    def test_a_note_is_no_warning(self):
        said = self.compiled("#pragma message \"said\"\nint one() { return 1; }\n")
        self.assertEqual(said[0], 0)
        self.assertIn("said", said[1])

    def test_a_warning_in_another_language(self):
        said = "quelle.cpp:1:2: Warnung: unbenutzte Variable [-Wunused-variable]"
        self.assertEqual(subprocess.run([WARNINGS_ARE_ERRORS, "echo", said], capture_output=True).returncode, 1)

    def test_an_error_keeps_its_code(self):
        self.assertEqual(subprocess.run([WARNINGS_ARE_ERRORS, "sh", "-c", "echo said; exit 3"], capture_output=True).returncode, 3)
        code, said = self.compiled("int one() { return two; }\n")
        self.assertNotEqual(code, 0)
        self.assertNotIn("DEFT_WARNINGS_ARE_ERRORS", said)


if __name__ == "__main__":
    COMPILER = sys.argv.pop(1)
    unittest.main()
