"""What CMake says where something is missing that deftc is built from: a project that looks for it and does nothing else.

usage: needs_test.py CMAKE
"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CMAKE = "cmake"
NEEDS = Path(__file__).resolve().parents[2] / "tools" / "cmake" / "DeftNeeds.cmake"
PROJECT = f"""
cmake_minimum_required(VERSION 3.25)
project(needs LANGUAGES NONE)
set(DEFT_ENABLE_COMPILER ON)
include({NEEDS})
"""
CONFIG = """
set(LLVM_VERSION_MAJOR {major})
set(LLVM_PACKAGE_VERSION {major}.1.8)
set(LLVM_LIBRARY_DIR ${{CMAKE_CURRENT_LIST_DIR}})
"""


class NeedsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "CMakeLists.txt").write_text(PROJECT)

    def configure(self, mlir_dir, *options):
        """What CMake says, its lines joined, and whether it was content, with MLIR_DIR in the environment."""
        ran = subprocess.run(
            [CMAKE, "-S", self.folder, "-B", self.folder / "build", *options],
            capture_output=True,
            text=True,
            env={**os.environ, "MLIR_DIR": str(mlir_dir)},
        )
        return " ".join((ran.stdout + ran.stderr).split()), ran.returncode == 0

    def mlir(self, major, libraries=("liblldELF.a", "liblldCommon.a")):
        """A folder with the files of an MLIR of this version that are looked at."""
        folder = self.folder / f"mlir-{major}"
        folder.mkdir()
        (folder / "MLIRConfig.cmake").write_text(CONFIG.format(major=major))
        for library in libraries:
            (folder / library).write_bytes(b"")
        return folder

    def test_a_folder_without_mlir_is_named_with_what_to_do(self):
        said, content = self.configure(self.folder / "nowhere")
        self.assertFalse(content)
        self.assertIn(f"MLIR_DIR is {self.folder / 'nowhere'}, which has no MLIRConfig.cmake", said)
        for word in ("tools/setup", "llvm-22-dev libmlir-22-dev mlir-22-tools", "liblld-22-dev", "pip install FILE"):
            self.assertIn(word, said)

    def test_another_version_is_named(self):
        said, content = self.configure(self.mlir(19))
        self.assertFalse(content)
        self.assertIn(f"MLIR_DIR is {self.folder / 'mlir-19'}, which has 19.1.8", said)

    def test_the_environment_says_where_mlir_lies(self):
        said, _ = self.configure(self.mlir(22))
        self.assertNotIn("llvm-22-dev", said)
        self.assertNotIn("liblld-22-dev", said)

    def test_a_library_that_is_missing_is_named_alone(self):
        said, content = self.configure(self.mlir(22, libraries=()))
        self.assertFalse(content)
        self.assertIn("LLD 22 beside them: liblld-22-dev", said)
        self.assertNotIn("llvm-22-dev", said)

    def test_the_next_try_looks_anew(self):
        self.configure(self.folder / "nowhere")
        said, _ = self.configure(self.mlir(22))
        self.assertNotIn("llvm-22-dev", said)

    def test_what_is_not_built_is_not_asked_for(self):
        said, _ = self.configure(self.folder / "nowhere", "-DDEFT_ENABLE_TESTS=OFF")
        self.assertNotIn("libgtest-dev", said)
        said, _ = self.configure(self.folder / "nowhere", "-DDEFT_ENABLE_TESTS=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON")
        self.assertIn("libgtest-dev", said)


if __name__ == "__main__":
    CMAKE = sys.argv.pop(1)
    unittest.main()
