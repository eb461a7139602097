"""What `tools/dev lint` compares with and which sources it then takes, in repositories made for it; and its help."""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "lib"))
import tidy


class Repository:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments):
        identity = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *identity, *arguments], cwd=self.folder, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def write(self, name, text=""):
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text)

    def commit(self, *names):
        """Adds files of these names with new text, and commits; returns the commit."""
        for name in names:
            self.write(name, f"// {name} {self.git('rev-list', '--all', '--count')}\n")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=x")
        return self.git("rev-parse", "HEAD")


class TidyTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        self.repository = Repository(folder.name)
        os.chdir(folder.name)

    def test_branch_is_compared_with_where_it_left_main(self):
        fork = self.repository.commit("tuner/A.cpp")
        self.repository.git("checkout", "--quiet", "-b", "mine")
        self.repository.commit("tuner/B.cpp")
        self.repository.commit("tuner/C.cpp")
        self.assertEqual(tidy.base(), (fork, "where this branch left main"))
        self.assertEqual(tidy.changed_sources(fork), ["tuner/B.cpp", "tuner/C.cpp"])

    def test_main_of_the_origin_counts_before_that_of_this_clone(self):
        pushed = self.repository.commit("tuner/A.cpp")
        self.repository.git("update-ref", "refs/remotes/origin/main", pushed)
        self.repository.commit("tuner/B.cpp")
        self.repository.commit("tuner/C.cpp")
        self.assertEqual(tidy.base(), (pushed, "where this branch left origin/main"))

    def test_clone_with_nothing_of_its_own_is_compared_with_the_commit_before(self):
        before = self.repository.commit("tuner/A.cpp")
        head = self.repository.commit("tuner/B.cpp")
        self.repository.git("update-ref", "refs/remotes/origin/main", head)
        self.assertEqual(tidy.base(), (before, "the commit before the last"))

    def test_merge_is_compared_with_what_it_was_merged_into(self):
        self.repository.commit("tuner/A.cpp")
        self.repository.git("checkout", "--quiet", "-b", "mine")
        self.repository.commit("tuner/B.cpp")
        self.repository.commit("tuner/C.cpp")
        self.repository.git("checkout", "--quiet", "main")
        before = self.repository.commit("tuner/D.cpp")
        self.repository.git("merge", "--quiet", "--no-ff", "--message=x", "mine")
        self.assertEqual(tidy.base()[0], before)
        self.assertEqual(tidy.changed_sources(before), ["tuner/B.cpp", "tuner/C.cpp"])

    def test_clone_of_one_commit_has_no_base(self):
        self.repository.commit("tuner/A.cpp", "tests/unit/B.cpp")
        self.assertEqual(tidy.base(), (None, "there is no commit before the last"))
        self.assertEqual(tidy.every_source(), ["tuner/A.cpp"])

    def test_repository_without_a_commit_has_no_base(self):
        self.assertEqual(tidy.base(), (None, "there is no commit"))

    def test_folder_that_git_cannot_read_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            with self.assertRaisesRegex(SystemExit, "git ls-files .*: fatal"):
                tidy.every_source()

    def test_what_is_not_committed_counts_and_what_is_gone_does_not(self):
        commit = self.repository.commit("tuner/A.cpp", "tuner/Gone.cpp", "tuner/Same.cpp", "tests/T.cpp")
        self.repository.write("tuner/A.cpp", "changed")
        self.repository.write("tests/T.cpp", "changed")
        self.repository.write("specs/New.cpp")
        self.repository.git("rm", "--quiet", "tuner/Gone.cpp")
        self.assertEqual(tidy.changed_sources(commit), ["specs/New.cpp", "tuner/A.cpp"])

    def test_header_is_read_through_its_source_or_one_that_includes_it(self):
        self.repository.write("tuner/A.cpp")
        self.repository.write("tuner/User.cpp", '#include "tuner/Alone.h"\n')
        self.repository.write("tests/unit/User.cpp", '#include "tuner/OnlyTested.h"\n')
        commit = self.repository.commit("tuner/A.h", "tuner/Alone.h", "tuner/OnlyTested.h")
        for header in ("tuner/A.h", "tuner/Alone.h", "tuner/OnlyTested.h"):
            self.repository.write(header, "changed")
        self.assertEqual(tidy.changed_sources(commit), ["tuner/A.cpp", "tuner/User.cpp"])

    def test_command_lines_lose_the_precompiled_header(self):
        place = str(self.repository.folder.resolve() / "tuner" / "A.cpp")
        self.repository.write(
            "build/dev/compile_commands.json",
            '[{"file": "%s", "command": "c++ -Winvalid-pch -include /b/cmake_pch.hxx -c A.cpp", "directory": "/b"}]' % place,
        )
        folder = self.repository.folder / "build" / "tidy"
        self.assertEqual(tidy.write_commands(folder), {"tuner/A.cpp"})
        self.assertIn('"c++ -c A.cpp"', (folder / "compile_commands.json").read_text())

    def test_sources_that_are_compiled_together_are_checked_one_by_one(self):
        together = self.repository.folder.resolve() / "build" / "dev" / "tuner" / "together" / "deft_tuner_1.cpp"
        self.repository.write(str(together), '#include "tuner/A.cpp"\n#include "tuner/B.cpp"\n')
        self.repository.write(
            "build/dev/compile_commands.json",
            '[{"file": "%s", "command": "c++ -o 1.o -c %s", "directory": "/b"}]' % (together, together),
        )
        folder = self.repository.folder / "build" / "tidy"
        self.assertEqual(tidy.write_commands(folder), {"tuner/A.cpp", "tuner/B.cpp"})
        place = str(self.repository.folder.resolve() / "tuner" / "B.cpp")
        commands = json.loads((folder / "compile_commands.json").read_text())
        self.assertEqual(commands[1], {"file": place, "command": f"c++ -o 1.o -c {place}", "directory": "/b"})

    def check(self, sources, check_one, *limits):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            return *tidy.check(sources, check_one, *(limits or (None, 1))), printed.getvalue()

    def test_findings_are_printed_and_counted(self):
        found = self.check(["a.cpp", "b.cpp"], lambda source: "a.cpp:1: bad" if source == "a.cpp" else "")
        self.assertEqual(found, (["a.cpp"], [], "a.cpp:1: bad\n"))

    def test_no_source_is_begun_when_the_time_is_over(self):
        clock = {"seconds": 0.0}
        seen = []

        def takes_a_minute(source):
            seen.append(source)
            clock["seconds"] += 60
            return ""

        failed, left, _ = self.check(["a.cpp", "b.cpp", "c.cpp"], takes_a_minute, 1.5, 1, lambda: clock["seconds"])
        self.assertEqual((seen, failed, left), (["a.cpp", "b.cpp"], [], ["c.cpp"]))


class DevTest(unittest.TestCase):
    def test_help_of_a_command_is_help_and_nothing_else(self):
        """With so few programs that nothing could be installed, built or read."""
        dev = Path(__file__).resolve().parents[2] / "tools" / "dev"
        with tempfile.TemporaryDirectory() as folder:
            for program in "bash", "cat", "dirname":
                Path(folder, program).symlink_to(shutil.which(program))
            for command in "build", "test", "fmt", "lint", "golden", "abi":
                for word in "--help", "-h":
                    done = subprocess.run(
                        ["bash", dev, command, word], env={"PATH": folder}, capture_output=True, text=True, check=False
                    )
                    self.assertEqual((done.returncode, done.stderr), (0, ""), command)
                    self.assertTrue(done.stdout.startswith("usage: tools/dev COMMAND\n"), command)


if __name__ == "__main__":
    unittest.main()
