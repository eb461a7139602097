"""Checks that every source has a test of its name: A/B.cpp has tests/unit/A/BTest.cpp, or stands in ELSEWHERE.

A source without a header of its own (there is no A/B.h) is a part of what some header beside it declares. Where it
includes a header of its folder, A/Y.h, of which there is a test, tests/unit/A/YTest.cpp, it needs neither.

usage: check_mirrored.py [ROOT]      prints one line a fault; exit code 1 when there is any
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

FOLDERS = ("compiler", "runtime", "specs", "tools", "tuner")


@dataclass(frozen=True)
class Elsewhere:
    """Sources that are tested through something else: where they lie, at whatever depth, their names, the test (its
    name in tests/unit, or a path in tests/), and why they have none of their own."""

    folder: str
    names: str
    test: str
    reason: str


ELSEWHERE = (
    # Parts of one thing, which its header declares or its door shows: the test is of the whole.
    Elsewhere("compiler/codegen/cpu", "Accumulate Emitter Fetches HookInliner Jit Kernel Lowering Scores", "CpuKernelTest", "parts of one kernel: what it computes is compared"),
    Elsewhere("compiler/spec", "ParserSelect", "ParserTest", "the parser, by kinds of text"),
    Elsewhere("runtime/api", "CaptureTensors StepCapture", "GpuCaptureTest", "a captured step, by what the files of runs hold; on the host: CaptureTest"),
    Elsewhere("runtime/exec/cpu", "ScaledRows UnitRunner", "CpuExecutorTest", "a part of the executor: what it computes is compared"),
    Elsewhere("tools/deftc/cache", "EntryTiming", "TuneCommandTest", "what deftc cache regret and renew have in common"),
    Elsewhere("tuner/regret", "TimedRegret", "TuneCommandTest", "a session of its own, by deftc cache regret"),
    Elsewhere("tuner/session", "ClassSearch TuneClass", "TuneTest", "steps of a session"),
    # Text in, text out: tests of IR stand beside their input.
    Elsewhere("compiler/dialect", "Attention Attributes Deft", "lit/dialect", "text, verifiers and canonical forms"),
    Elsewhere("tools/cmake", "older_glibc", "python/test_package.py", "is linked into a wheel alone"),
    Elsewhere("tools/deft-opt", "main", "passes/check_passes.py", "runs every pass"),
    # Needs a GPU: by a driver of the tests in CI, on a GPU by what is run there.
    Elsewhere("tuner/bench", "CeilingProbe KernelBench", "BenchVariantsTest", "times of a device"),
    # Behind the public classes.
    Elsewhere("runtime/api", "Agreement", "PeersTest", "what ranks compare; those of GPUs: GpuPeersTest"),
    Elsewhere("runtime/api", "Followers", "PagedBatchTest", "plans that follow a step; those of beams: BeamTreeTest"),
    Elsewhere("runtime/api", "Params", "ArgumentsTest", "what a run is told"),
    Elsewhere("runtime/api", "CacheTensors TensorCheck", "RunTensorsTest", "parts of what is asked of a run's tensors"),
    Elsewhere("runtime/api", "GpuPlan", "GpuTest", "all that a plan on a GPU does"),
    Elsewhere("runtime/program", "KernelChoice", "GpuTest", "which kernels a GPU is given"),
    # The command line: a command is tested by calling it.
    Elsewhere("tools/deftc", "CommandLine main", "DeftcTest", "hands in the process's streams"),
    Elsewhere("tools/deftc", "CheckCommand FmtCommand SpecsCommand ExplainCommand", "FrontCommandsTest", "what reads a spec alone"),
    Elsewhere("tools/deftc", "BuildCommand ShowCommand DoctorCommand", "KernelCommandsTest", "what makes and shows a package"),
    Elsewhere("tools/deftc", "ClassifyCommand", "CacheCommandTest", "the classes of its entries"),
    Elsewhere("tools/deftc", "BenchKernels BenchMachine BenchReport BenchTable", "BenchTest", "deftc bench"),
    Elsewhere("tools/deftc", "RunBackend RunCpu RunCuda RunDump RunInputs RunReport RunSelection RunSession StepChecks StepInputs", "RunCommandTest", "deftc run"),
    Elsewhere("tools/deftc", "CompareInputs CompareSession", "CompareCommandTest", "deftc compare"),
)


def is_there(root, test):
    if "/" in test:
        return (root / "tests" / test).exists()
    return any((root / "tests" / "unit").rglob(f"{test}.cpp"))


def has_mirror(root, source):
    return (root / "tests" / "unit" / source.with_name(f"{source.stem}Test.cpp")).exists()


def is_part(root, source):
    """Whether it has no header, and includes one of its folder that has a test."""
    if (root / source.with_suffix(".h")).exists():
        return False
    headers = [Path(name) for name in re.findall(r'^#include "(.+\.h)"$', (root / source).read_text(), re.MULTILINE)]
    return any(header.parent == source.parent and has_mirror(root, header) for header in headers)


def faults(root, elsewhere):
    """What is wrong, as sentences: first of the sources, then of the list."""
    sources = sorted(path.relative_to(root) for folder in FOLDERS for path in (root / folder).rglob("*.cpp"))
    if not sources:
        yield "there is no source"
    alone = [source for source in sources if not has_mirror(root, source) and not is_part(root, source)]
    listed = []
    for entry in elsewhere:
        for name in entry.names.split():
            found = [source for source in alone if source.stem == name and source.is_relative_to(entry.folder)]
            if len(found) != 1:
                yield f"ELSEWHERE: {len(found)} sources {name}.cpp in {entry.folder} are without a test, not one"
            listed += found
    for source in alone:
        if source not in listed:
            yield f"{source}: has no test tests/unit/{source.with_name(source.stem + 'Test.cpp')} and is not in ELSEWHERE"
        if listed.count(source) > 1:
            yield f"{source}: is in ELSEWHERE {listed.count(source)} times"
    for entry in elsewhere:
        if not is_there(root, entry.test):
            yield f"ELSEWHERE: there is no test {entry.test} for {entry.names} of {entry.folder}"
        if not entry.reason:
            yield f"ELSEWHERE: {entry.names} of {entry.folder} stand there without a reason"


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    found = list(faults(root, ELSEWHERE))
    print("\n".join(found) if found else "mirrored: every source has its test, or is known to be tested elsewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
