"""The check of mirrored tests finds each kind of fault in a small tree made for it, and nothing in a good one."""

import tempfile
import unittest
from pathlib import Path

import check_mirrored
from check_mirrored import Elsewhere


class MirroredTest(unittest.TestCase):
    def faults(self, names, *elsewhere):
        """Of a tree of these files: empty ones, or, in a dict, with their text."""
        with tempfile.TemporaryDirectory() as folder:
            for name in names:
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(names[name] if isinstance(names, dict) else "")
            return list(check_mirrored.faults(Path(folder), elsewhere))

    def test_good_tree_has_no_faults(self):
        names = ["tuner/a/A.cpp", "tests/unit/tuner/a/ATest.cpp", "tuner/b/Part.cpp", "tests/unit/tuner/b/in/WholeTest.cpp"]
        names += ["tools/c/C.cpp", "tests/lit/c.mlir"]
        elsewhere = [Elsewhere("tuner/b", "Part", "WholeTest", "a part"), Elsewhere("tools/c", "C", "lit/c.mlir", "text")]
        self.assertEqual(self.faults(names, *elsewhere), [])

    def test_source_without_a_test(self):
        self.assertEqual(
            self.faults(["tuner/a/A.cpp", "tests/unit/tuner/ATest.cpp"]),
            ["tuner/a/A.cpp: has no test tests/unit/tuner/a/ATest.cpp and is not in ELSEWHERE"],
        )

    # A/Part.cpp beside A/Whole.h, which has a test.
    WHOLE = {"tuner/a/Part.cpp": '#include "tuner/a/Whole.h"\n', "tuner/a/Whole.h": "", "tests/unit/tuner/a/WholeTest.cpp": ""}
    PART_IS_ALONE = ["tuner/a/Part.cpp: has no test tests/unit/tuner/a/PartTest.cpp and is not in ELSEWHERE"]

    def test_part_of_what_a_tested_header_declares(self):
        self.assertEqual(self.faults(self.WHOLE), [])

    def test_part_leaves_the_list(self):
        self.assertEqual(
            self.faults(self.WHOLE, Elsewhere("tuner/a", "Part", "WholeTest", "a part")),
            ["ELSEWHERE: 0 sources Part.cpp in tuner/a are without a test, not one"],
        )

    def test_source_with_a_header_is_no_part(self):
        self.assertEqual(self.faults({**self.WHOLE, "tuner/a/Part.h": ""}), self.PART_IS_ALONE)

    def test_part_of_what_nobody_tests(self):
        names = {**self.WHOLE, "tests/unit/tuner/b/WholeTest.cpp": ""}
        del names["tests/unit/tuner/a/WholeTest.cpp"]
        self.assertEqual(self.faults(names), self.PART_IS_ALONE)

    def test_header_of_another_folder_has_no_parts_here(self):
        names = {**self.WHOLE, "tuner/b/Other.h": "", "tests/unit/tuner/b/OtherTest.cpp": ""}
        names["tuner/a/Part.cpp"] = '#include "tuner/b/Other.h"\n// #include "tuner/a/Whole.h"\n'
        self.assertEqual(self.faults(names), self.PART_IS_ALONE)

    def test_source_that_has_got_its_test_leaves_the_list(self):
        names = ["tuner/A.cpp", "tests/unit/tuner/ATest.cpp", "tests/unit/tuner/BTest.cpp"]
        self.assertEqual(
            self.faults(names, Elsewhere("tuner", "A", "BTest", "a part")),
            ["ELSEWHERE: 0 sources A.cpp in tuner are without a test, not one"],
        )

    def test_source_that_is_gone_leaves_the_list(self):
        names = ["tuner/A.cpp", "tests/unit/tuner/ATest.cpp"]
        self.assertEqual(
            self.faults(names, Elsewhere("tuner", "Gone", "ATest", "a part")),
            ["ELSEWHERE: 0 sources Gone.cpp in tuner are without a test, not one"],
        )

    def test_name_means_one_source(self):
        names = ["tuner/a/Part.cpp", "tuner/b/Part.cpp", "tests/unit/tuner/WholeTest.cpp"]
        self.assertEqual(
            self.faults(names, Elsewhere("tuner", "Part", "WholeTest", "a part")),
            ["ELSEWHERE: 2 sources Part.cpp in tuner are without a test, not one"],
        )
        # Moved, it is still known by its name.
        self.assertEqual(self.faults(names[1:], Elsewhere("tuner", "Part", "WholeTest", "a part")), [])

    def test_source_stands_in_the_list_once(self):
        names = ["tuner/Part.cpp", "tests/unit/tuner/WholeTest.cpp"]
        twice = [Elsewhere("tuner", "Part", "WholeTest", "a part")] * 2
        self.assertEqual(self.faults(names, *twice), ["tuner/Part.cpp: is in ELSEWHERE 2 times"])

    def test_list_names_tests_that_are_there_and_reasons(self):
        names = ["tuner/Part.cpp", "tests/unit/tools/OtherTest.cpp"]
        self.assertEqual(
            self.faults(names, Elsewhere("tuner", "Part", "WholeTest", "")),
            [
                "ELSEWHERE: there is no test WholeTest for Part of tuner",
                "ELSEWHERE: Part of tuner stand there without a reason",
            ],
        )

    def test_tree_without_sources_is_no_good_tree(self):
        self.assertEqual(self.faults(["tests/unit/ATest.cpp"]), ["there is no source"])


if __name__ == "__main__":
    unittest.main()
