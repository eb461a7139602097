"""abidiff sees what breaks a program in libraries that are made of the kept text, and nothing in the same one twice."""

import re
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

import check_binary

KEPT = (Path(__file__).resolve().parent / "deft.txt").read_text(encoding="utf-8")
MAP = "DEFT_0.1 {\n" + "".join(f"{name};\n" for name in re.findall(r"\b(deft_\w+)\(", KEPT)) + "}"


@unittest.skipUnless(shutil.which("abidiff"), "there is no abidiff here; tools/test installs it (package abigail-tools)")
class CheckBinaryTest(unittest.TestCase):
    def is_same(self, changed):
        with tempfile.TemporaryDirectory() as before, tempfile.TemporaryDirectory() as now:
            for text, folder in ((KEPT, before), (changed, now)):
                check_binary.build_stub("cc", text, MAP, "libdeft.so.0", Path(folder))
            return check_binary.compare(Path(before), Path(now, "stub.so"))[1]

    def test_the_same_is_the_same(self):
        self.assertTrue(self.is_same(KEPT))

    def test_what_breaks_a_program_is_seen(self):
        for what, changed in {
            "a field that is gone": re.sub(r".*: int32_t partition\n", "", KEPT),
            "a field of another size": KEPT.replace(": int32_t partition", ": int64_t partition"),
            "a field of another type": KEPT.replace(": void *data", ": int64_t data"),
            "an argument of another type": KEPT.replace("int32_t location", "int64_t location"),
            "a function that is gone": re.sub(r".*\bdeft_tree_prune\(.*\n", "", KEPT),
        }.items():
            with self.subTest(what):
                self.assertNotEqual(changed, KEPT)
                self.assertFalse(self.is_same(changed))


if __name__ == "__main__":
    sys.exit(unittest.main())
