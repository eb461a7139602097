"""Runs the command blocks of a Markdown file and compares what they print with what the file shows.

usage: run_readme.py FILE BIN_FOLDER

The word after the language of a fenced block says what to do with it:

    ```sh            run; a ```text block that follows directly is its expected output
    ```text varies   expected output whose numbers are this machine's (processors, what is installed): any number is right
    ```sh gpu        the same, where there is an NVIDIA GPU
    ```sh nvrtc      the same, where `deftc doctor` finds NVRTC
    ```sh set-up     not run (it installs or builds); every tools/... that it names must be there and answer --help
    ```sh reproduce  not run (it makes a record anew, for an hour or on other machines); its scripts must be there
    ```python        run, by one interpreter for all of the file, where there is NumPy; its output as that of ```sh
                     (blocks of `>>>` are not: tests/python runs those of the document that has them)
    ```python torch  the same, where there is torch; `transformers` likewise
    ```python gpu    the same, where there is an NVIDIA GPU and torch
    ```X file=NAME   written to NAME, for the blocks after it; a spec must be as `deftc fmt` writes it
    ```X quote=PATH  not run; it must stand in that file of the repository, which has a test of its own

Blocks run in order in one folder that has nothing but the repository's specs and tests and, as build/dev, the build that
BIN_FOLDER is in; BIN_FOLDER comes first in PATH, and Python finds the package of that build.
Output is compared exactly, runs of blanks counted as one, but for what cannot be the same everywhere: a time or a rate may
be TIME_FACTOR times another, and a rounding error ERROR_FACTOR times, which the vectors of a processor decide.
"""

import itertools
import os
import re
import textwrap
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from notebook import Notebook

FENCE = re.compile(r"^```(\S*) *(.*)$")
NUMBER = re.compile(r"(?<![A-Za-z_\d.])[-+]?\d+(,\d{3})*(\.\d+)?(e[-+]?\d+)?(?![A-Za-z_\d])")
TIME_OR_RATE = re.compile(r" ?(us|ms|s|min|GB/s|GFLOP/s|TFLOP/s)(?![A-Za-z_])")
FOLLOWS_FROM_TIMES = re.compile(r"(median of|reaches) $")  # as many runs as there was time for, a share of a rate
IS_LONGEST = re.compile(r" us to $")  # of many times: one may have waited for anything
IS_ERROR = re.compile(r"(error|allowed|off by) $")  # of the worst row, which rounding chooses
TIME_FACTOR, LONGEST_FACTOR, ERROR_FACTOR = 50, 10_000, 4


@dataclass
class Block:
    language: str
    mode: str
    line: int
    text: str
    expected: "Block | None" = None


def blocks_of(text):
    """The fenced blocks of a file, a ```text block attached to the ```sh block directly before it."""
    blocks, current, gap_is_blank = [], None, False
    for number, line in enumerate(text.splitlines(), 1):
        match = FENCE.match(line)
        if current is None and match:
            current = Block(match[1], match[2].strip(), number, "")
        elif current is None:
            gap_is_blank = gap_is_blank and not line.strip()
        elif line.rstrip() == "```":
            if current.language == "text" and blocks and blocks[-1].language in ("sh", "python") and gap_is_blank:
                blocks[-1].expected = current
            else:
                blocks.append(current)
            current, gap_is_blank = None, True
        else:
            current.text += line + "\n"
    return blocks


PROGRESS = re.compile(r"^[\w ]+: \d+ %.*$", re.MULTILINE)  # said where work takes longer than a second
VERDICT = re.compile(r", compute-bound \(.*$", re.MULTILINE)  # what bounds a run depends on the machine


def lines_of(text):
    """Without amounts of blank space, progress and verdicts."""
    lines = (re.sub(r"\s+", " ", line).strip() for line in VERDICT.sub("", PROGRESS.sub("", text)).splitlines())
    return [line for line in lines if line]


def factor_of(line, number):
    """How many times another number this one may be, by what stands around it."""
    before = line[:number.start()]
    if IS_LONGEST.search(before):
        return LONGEST_FACTOR
    if TIME_OR_RATE.match(line, number.end()) or FOLLOWS_FROM_TIMES.search(before):
        return TIME_FACTOR
    return ERROR_FACTOR if IS_ERROR.search(before) else 1


def numbers_agree(shown, printed):
    """Of two lines that are the same but for numbers."""
    for one, other in zip(NUMBER.finditer(shown), NUMBER.finditer(printed)):
        low, high = sorted(float(number[0].replace(",", "")) for number in (one, other))
        if one[0] != other[0] and not 0 < high <= factor_of(shown, one) * low:
            return False
    return True


def fault_of_output(shown, printed, do_numbers_vary=False):
    """The first line that is another one; None where all agree."""
    shown, printed = lines_of(shown), lines_of(printed)

    def form(line):  # a number decides about plurals
        return re.sub(r"s\b", "", NUMBER.sub("<n>", line)) if do_numbers_vary else NUMBER.sub("<n>", line)

    for one, other in itertools.zip_longest(shown, printed, fillvalue="(nothing)"):
        if form(one) != form(other) or not (do_numbers_vary or numbers_agree(one, other)):
            return f"it shows  {one}\n  and prints {other}"
    return None


def check_set_up(block, root):
    for script in re.findall(r"(?:^|\s)(tools/\w+)", block.text):
        if not os.access(root / script, os.X_OK):
            yield f"line {block.line}: {script} is not there or cannot be run"
        elif subprocess.run([root / script, "--help"], capture_output=True, check=False).returncode != 0:
            yield f"line {block.line}: {script} --help fails"


def check_reproduce(block, root):
    for script in re.findall(r"(?:^|\s)((?:tools|tests)/[\w/]+\.\w+|tests/gpu/\w+)", block.text):
        if not (root / script).exists():
            yield f"line {block.line}: {script} is not there"


def check_quote(block, root, name):
    """A quotation leaves out what stands left of all its lines, and may begin and end anywhere."""
    path = root / name
    if not path.exists():
        yield f"line {block.line}: {name} is not there"
        return
    lines, quoted = path.read_text(encoding="utf-8").splitlines(), block.text.rstrip("\n").splitlines()
    for first in range(len(lines) - len(quoted) + 1):
        if textwrap.dedent("\n".join(lines[first:first + len(quoted)])).splitlines() == quoted:
            return
    yield f"line {block.line}: this does not stand in {name}"


def check_form(block, name, folder, environment):
    """Specs are shown in the form that they have after `deftc fmt`."""
    if subprocess.run(["deftc", "fmt", "--check", name], cwd=folder, env=environment, capture_output=True, check=False).returncode != 0:
        yield f"line {block.line}: {name} is not as `deftc fmt` writes it"


def check_output(block, printed):
    if block.expected and (fault := fault_of_output(block.expected.text, printed, block.expected.mode == "varies")):
        yield f"line {block.expected.line}: the output has changed; {fault}"


def run_cell(block, notebook):
    needs = {"": ["numpy"], "gpu": ["torch"]}.get(block.mode, block.mode.split())
    missing = [name for name in needs if not notebook.has(name)]
    if missing:
        print(f"--- line {block.line}: skipped, there is no {missing[0]} here")
        return
    is_right, printed = notebook.run(block.text, f"line {block.line}")
    print(f"--- line {block.line}, {'ran' if is_right else 'failed'}\n{block.text}\n{printed}", flush=True)
    if not is_right:
        yield f"line {block.line}: this Python fails"
    else:
        yield from check_output(block, printed)


def run_block(block, folder, environment):
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.text],
        cwd=folder, env=environment, text=True, check=False, timeout=600,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    print(f"--- line {block.line}, exit code {result.returncode}\n{block.text}\n{result.stdout}", flush=True)
    if result.returncode != 0:
        yield f"line {block.line}: exit code {result.returncode}"
    else:
        yield from check_output(block, result.stdout)


def has_nvrtc(environment):
    doctor = subprocess.run(["deftc", "doctor"], env=environment, capture_output=True, text=True, check=False)
    return re.search(r"^\s*ok\s+nvrtc\b", doctor.stdout, re.MULTILINE) is not None


def faults_of(file, bin_folder, root, gpu=False):
    environment = dict(os.environ, PATH=f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
                       PYTHONPATH=str(bin_folder.parent.parent / "runtime" / "python"))
    with tempfile.TemporaryDirectory() as folder, Notebook(folder, environment) as notebook:
        for name in ("specs", "tests"):
            (Path(folder) / name).symlink_to(root / name)
        # The build that BIN_FOLDER belongs to, by the name that a reader's build has.
        (Path(folder) / "build").mkdir()
        (Path(folder) / "build" / "dev").symlink_to(bin_folder.parent.parent)
        environment["DEFT_CACHE_DIR"] = str(Path(folder) / "cache")
        for block in blocks_of(file.read_text(encoding="utf-8")):
            if block.mode.startswith("file="):
                name = block.mode.removeprefix("file=")
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text, encoding="utf-8")
                if path.suffix == ".deft":
                    yield from check_form(block, name, folder, environment)
            elif block.mode.startswith("quote="):
                yield from check_quote(block, root, block.mode.removeprefix("quote="))
            elif block.language == "python":
                if not block.text.startswith(">>>") and (block.mode != "gpu" or gpu):
                    yield from run_cell(block, notebook)
            elif block.language != "sh":
                continue
            elif block.mode == "reproduce":
                yield from check_reproduce(block, root)
            elif block.mode == "set-up":
                yield from check_set_up(block, root)
            elif block.mode == "" or (block.mode == "gpu" and gpu):
                yield from run_block(block, folder, environment)
            elif block.mode == "nvrtc":
                if has_nvrtc(environment):
                    yield from run_block(block, folder, environment)
                else:
                    print(f"--- line {block.line}: skipped, there is no NVRTC here")
            elif block.mode != "gpu":
                yield f"line {block.line}: unknown mode `{block.mode}`"


def main():
    file, bin_folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    root = Path(__file__).resolve().parents[2]
    found = list(faults_of(file, bin_folder, root, gpu=Path("/dev/nvidiactl").exists()))
    print("\n".join(found) if found else f"{file.name}: every block does what the file says")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
