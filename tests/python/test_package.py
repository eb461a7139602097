"""The package as a user has it."""

import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import deft
import pytest

INSTALLED = Path(deft.__file__).absolute().parent
IS_WHEEL = (INSTALLED / "bin" / "deftc").exists()


def test_it_needs_no_other_package():
    code = (
        "import sys; before = set(sys.modules); import deft; "
        "print(sorted({name.partition('.')[0] for name in set(sys.modules) - before} "
        "& {'numpy', 'torch', 'ml_dtypes', 'transformers', 'cupy', 'jax'}))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "[]\n"


def test_sources_are_text():
    att = deft.compile("attention mine { query_heads = 4; kv_heads = 2; head_dim = 64; }")
    assert 'extern "C"' in att.source("cuda")
    assert "deft_mine_merge" in att.source("cuda", architecture="sm_80", phase="merge")
    assert "deft.attention" in att.source("ir")
    assert att.spec == att.source("spec") == "attention mine { query_heads = 4; kv_heads = 2; head_dim = 64; }"
    with pytest.raises(deft.UsageError, match="no source of kind `ptx`"):
        att.source("ptx")


def test_shipped_specs_are_found_by_name():
    att = deft.compile(path="gemma2_9b", attention="gemma2_9b_window")
    assert (att.query_heads, att.head_dim) == (16, 256)
    assert "softcap" in att.spec


def test_a_spec_is_read_from_a_file_with_its_imports(tmp_path):
    (tmp_path / "parts.deft").write_text("mask near(w: i32) = kv_pos > q_pos - w;")
    text = 'import "parts.deft"; attention a { query_heads = 2; kv_heads = 1; head_dim = 16; mask = tree && near(5); }'
    (tmp_path / "mine.deft").write_text(text)
    assert deft.compile(path=tmp_path / "mine.deft").head_dim == 16
    assert deft.compile(text, import_folder=tmp_path).spec == text


def test_the_doctor_says_what_is_there():
    report = deft.doctor()
    assert report["usable"] and report["cpu"]["ok"] and report["compiler"]["ok"]
    assert str(report).startswith(f"deftc {deft.__version__}\n")


def test_types_are_given():
    assert (INSTALLED / "py.typed").exists()


@pytest.mark.skipif(not IS_WHEEL, reason="this is a build tree, not a wheel")
def test_the_tool_is_a_console_script_and_makes_packages(tmp_path):
    tool = Path(sys.executable).with_name("deftc")
    assert deft.__version__ in subprocess.run([tool, "--version"], check=True, capture_output=True, text=True).stdout
    package = tmp_path / "llama.deftpkg"
    subprocess.run([tool, "build", "llama3_8b", "--cpu", "-o", package], check=True, capture_output=True)
    assert deft.load(package).query_heads == 32


@pytest.mark.skipif(not IS_WHEEL, reason="this is a build tree, not a wheel")
def test_the_wheel_needs_no_llvm_and_shows_none():
    for file in (Path(deft.get_library()), INSTALLED / "bin" / "deftc"):
        needed = subprocess.run(["ldd", file], check=True, capture_output=True, text=True).stdout
        names = {line.split()[0].rpartition("/")[2].partition(".so")[0] for line in needed.splitlines()}
        assert names <= {"linux-vdso", "libdeft", "libc", "libm", "libdl", "libpthread", "librt", "ld-linux-x86-64"}, needed
        versions = {tuple(map(int, found.split(b"."))) for found in re.findall(rb"GLIBC_(2\.\d+)", file.read_bytes())}
        assert max(versions) <= (2, 34), "RHEL 9"
    assert b"_ZN4mlir" not in (Path(deft.get_library())).read_bytes()
    assert (INSTALLED / "include" / "deft" / "deft.h").exists()
    assert (INSTALLED / "include" / "deft" / "version.h").exists()


@pytest.mark.skipif(not IS_WHEEL, reason="this is a build tree, not a wheel")
def test_the_compiler_is_in_the_wheel_once():
    assert (INSTALLED / "bin" / "deftc").stat().st_size < 100_000
    assert Path(deft.get_library()).stat().st_size > 10_000_000


@pytest.mark.skipif(not IS_WHEEL or not shutil.which("cc"), reason="this is a build tree, or there is no C compiler")
def test_a_program_in_c_is_linked_to_the_wheels_library_and_finds_it(tmp_path):
    source, library = tmp_path / "host.c", Path(deft.get_library())
    source.write_text("#include <deft/deft.h>\n#include <stdio.h>\nint main(void) { return puts(deft_version()) < 0; }\n")
    command = ["cc", source, f"-I{deft.get_include()}", library, f"-Wl,-rpath,{library.parent}", "-o", tmp_path / "host"]
    subprocess.run(command, check=True, capture_output=True)
    assert subprocess.run([tmp_path / "host"], check=True, capture_output=True, text=True).stdout == f"{deft.__version__}\n"


@pytest.mark.skipif(not IS_WHEEL, reason="this is a build tree, not a wheel")
def test_the_wheel_says_what_is_in_it():
    files = importlib.metadata.files("deftc")
    sbom = next(file for file in files if file.match("*.dist-info/sboms/*.cdx.json"))
    bom = json.loads(sbom.read_text())
    assert bom["metadata"]["component"]["version"] == deft.__version__ == importlib.metadata.version("deftc")
    assert {"LLVM, MLIR and LLD", "zlib", "Zstandard", "GNU C++ library"} <= {one["name"] for one in bom["components"]}
    licences = next(file for file in files if file.match("*.dist-info/licenses/THIRD_PARTY_LICENCES.txt"))
    assert "LLVM Exceptions to the Apache 2.0 License" in licences.read_text()
