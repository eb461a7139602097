"""The check of mirrored tests finds each kind of fault in a small tree made for it, and nothing in a good one."""

import tempfile
import unittest
from pathlib import Path

import check_mirrored
from check_mirrored import Elsewhere


class MirroredTest(unittest.TestCase):
    def faults(self, names, *elsewhere):
        with tempfile.TemporaryDirectory() as folder:
            for name in names:
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
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

    def test_source_that_has_got_its_test_leaves_the_list(self):
        names = ["tuner/A.cpp", "tests/unit/tuner/ATest.cpp", "tests/unit/tuner/BTest.cpp"]
        self.assertEqual(
            self.faults(names, Elsewhere("tuner", "A", "BTest", "a part")),
            ["ELSEWHERE: 0 sources A.cpp in tuner have no test of their name, not one"],
        )

    def test_source_that_is_gone_leaves_the_list(self):
        names = ["tuner/A.cpp", "tests/unit/tuner/ATest.cpp"]
        self.assertEqual(
            self.faults(names, Elsewhere("tuner", "Gone", "ATest", "a part")),
            ["ELSEWHERE: 0 sources Gone.cpp in tuner have no test of their name, not one"],
        )

    def test_name_means_one_source(self):
        names = ["tuner/a/Part.cpp", "tuner/b/Part.cpp", "tests/unit/tuner/WholeTest.cpp"]
        self.assertEqual(
            self.faults(names, Elsewhere("tuner", "Part", "WholeTest", "a part")),
            ["ELSEWHERE: 2 sources Part.cpp in tuner have no test of their name, not one"],
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
