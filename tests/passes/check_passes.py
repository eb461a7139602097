"""Checks that every pass of Passes.td says what it does and shows it, and that what it shows is true.

usage: check_passes.py DEFT_OPT LLVM_TBLGEN INCLUDE ...    from the repository root; one line a fault, exit code 1 when
                                                           there is any

A description has one or more examples: two blocks of code fenced by ```mlir, the input and what the pass makes of it.
Both are read and printed by deft-opt, so that names and white space do not count.
"""

import json
import re
import subprocess
import sys
import textwrap

PASSES = "compiler/transforms/Passes.td"
BLOCK = re.compile(r"^ *```mlir\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
REGISTERED = re.compile(r"^ *--(deft-[a-z-]+) ", re.MULTILINE)
PIPELINES = {"deft-optimize"}


def passes_of(records):
    """The passes among the records that llvm-tblgen prints as JSON."""
    return [records[name] for name in records["!instanceof"]["Pass"]]


def examples_of(description):
    """Pairs of input and result, and whether a block was left over."""
    blocks = [textwrap.dedent(block) for block in BLOCK.findall(description)]
    return list(zip(blocks[::2], blocks[1::2])), len(blocks) % 2 != 0


def prose_of(description):
    """What a description says in words."""
    return BLOCK.sub("", description).strip()


def faults_of(one, print_ir):
    """What is wrong with the record of a pass, as sentences. `print_ir` prints IR after the passes of a pipeline."""
    name = one["argument"]
    if not one["summary"].strip():
        yield f"{name} has no summary"
    if len(prose_of(one["description"])) <= len(one["summary"]):
        yield f"{name} has no description that says more than its summary"
    for kind in ("options", "statistics"):
        for member in one[kind]:
            if not member["description"].strip():
                yield f"{name}: `{member['cppName']}` of its {kind} has no description"
    examples, is_odd = examples_of(one["description"])
    if not examples:
        yield f"{name} has no example: two blocks fenced by ```mlir"
    if is_odd:
        yield f"{name} has an input without a result"
    for number, (before, after) in enumerate(examples, 1):
        got, want = print_ir(before, name), print_ir(after, None)
        if print_ir(before, None) == want:
            yield f"{name}: example {number} shows nothing, its input is its result"
        if got != want:
            yield f"{name}: example {number} should give\n{want}but gives\n{got}"


def unknown_passes(help_text, passes):
    """What a command line knows beside the passes of Passes.td and the pipelines."""
    known = {one["argument"] for one in passes} | PIPELINES
    return sorted(set(REGISTERED.findall(help_text)) ^ known)


def run_ir(deft_opt, ir, argument):
    arguments = [f"--pass-pipeline=builtin.module(deft.attention({argument}))"] if argument else []
    done = subprocess.run([deft_opt, "-", *arguments], input=ir, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else f"an error: {done.stderr}"


def main():
    deft_opt, tblgen, *folders = sys.argv[1:]
    includes = [part for folder in folders for part in ("-I", folder)]
    records = json.loads(subprocess.run([tblgen, "-dump-json", *includes, PASSES], capture_output=True, check=True).stdout)
    passes = passes_of(records)
    if not passes:
        print(f"{PASSES} has no pass")
        return 1
    by_reference = [
        {**one, **{kind: [records[member["def"]] for member in one[kind]] for kind in ("options", "statistics")}}
        for one in passes
    ]
    found = [fault for one in by_reference for fault in faults_of(one, lambda ir, pass_: run_ir(deft_opt, ir, pass_))]
    help_text = subprocess.run([deft_opt, "--help"], capture_output=True, text=True, check=True).stdout
    found += [
        f"{name} stands in {PASSES} or on the command line of deft-opt, not in both"
        for name in unknown_passes(help_text, passes)
    ]
    print("\n".join(found) if found else f"passes: {len(passes)} with a description and examples that are true")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
