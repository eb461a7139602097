"""What type checkers say of a program that uses the whole package, and of one that uses it wrongly."""

import os
import re
import subprocess
import sys
from pathlib import Path

import deft
import pytest

pytest.importorskip("mypy")
PROGRAM = Path(__file__).with_name("typed_program.py")
PACKAGE = Path(deft.__file__).absolute().parents[1]


def check(file, tmp_path):
    """mypy's words on the program; of the package it reads what the package says, not how that is kept."""
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", f"--cache-dir={tmp_path}", str(file)]
    # Where the package is installed mypy finds it by py.typed, and refuses a path to it.
    is_installed = PACKAGE.name == "site-packages"
    environment = os.environ if is_installed else {**os.environ, "MYPYPATH": str(PACKAGE)}
    return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True).stdout


def test_a_program_with_the_whole_package_is_strictly_typed(tmp_path):
    assert check(PROGRAM, tmp_path).startswith("Success: no issues found")


def test_the_program_uses_every_name_and_runs():
    text = PROGRAM.read_text()
    unused = [name for name in deft.__all__ if name != "lang" and not re.search(rf"deft\.{name}\b", text)]
    assert unused == []
    ran = subprocess.run([sys.executable, PROGRAM], check=True, capture_output=True, text=True).stdout
    assert ran.startswith("1.0 Sharing(requests=2, request_tokens=41, tokens=25)")


@pytest.mark.parametrize(
    "line, said",
    [
        ("deft.Tree().add_root('20')", "arg-type"),
        ("deft.Tree().add_roots(20)", "attr-defined"),
        ("deft.compile('a').plan(deft.Tree(), chunks=3)", "call-arg"),
        ("deft.compile('a').plan(deft.Tree()).summary().itms", "attr-defined"),
        ("x: int = deft.compile('a').spec", "assignment"),
        ("deft.attention(head_dim=64)", "call-arg"),
        ("deft.PagedBatch(deft.Tree(), max_requests=1)", "arg-type"),
        ("deft.SequenceTree(pages='8')", "arg-type"),
        ("deft.compile('a').plan(deft.Tree(), slack='8')", "arg-type"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, line, said):
    file = tmp_path / "wrong.py"
    file.write_text(f"import deft\n\n{line}\n")
    assert f"[{said}]" in check(file, tmp_path)
