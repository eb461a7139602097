#!/usr/bin/env python3
"""FlashInfer's own tests of the wrappers that deft.flashinfer has, run against ours.

  git clone https://github.com/flashinfer-ai/flashinfer && git -C flashinfer checkout v0.7.4
  python3 tests/gpu/flashinfer_tests/run.py flashinfer --record FILE [--most N] [--seconds S] [--jobs N] [-k WORDS] [file ...]

The wrappers' names in the module `flashinfer` are replaced by ours; all else that the tests use stays what it is. With
`--reference flashinfer` that is FlashInfer, which must be installed in the checkout's version and compiles its kernels as
they are needed, minutes each. With `--reference torch` (the default) what the tests compare with is attention written in
torch (reference.py), and FlashInfer need not be there.

The record (JSON) says how many passed, failed and were outside, each kind with its reason. `--most N`: of each test function
N cases, drawn by `--seed`. `--seconds S`: what has not begun by then is counted as not run. `--jobs N` deals the cases to N
processes, which share the GPU: most of a test's time is the host's. `--device cpu` runs the tests on the CPU, where they are
small enough and capture no graph.

Exit code: 0 where nothing failed, 1 where something did, 3 where torch, deft, pytest or the GPU is missing.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

# Those in which the wrappers stand beside a result that is right; others need GPUs or caches of another kind.
FILES = """attention/test_batch_decode_kernels.py attention/test_batch_attention.py attention/test_shared_prefix_kernels.py
attention/test_sliding_window.py attention/test_tensor_cores_decode.py attention/test_non_contiguous_decode.py
attention/test_decode_prefill_lse.py attention/test_batch_invariant_fa2.py
attention/test_decode_fp8_calibration_scale.py attention/test_deepseek_mla.py attention/test_batch_prefill_kernels.py
attention/test_attention_sink.py attention/test_batch_prefill.py attention/test_non_contiguous_prefill.py
attention/test_fp8_prefill.py""".split()


def revision(checkout):
    done = subprocess.run(["git", "-C", checkout, "describe", "--tags", "--always"], capture_output=True, text=True)
    return done.stdout.strip() or "not a checkout"


def run_parts(jobs):
    """The records of as many processes, and how they ended. Each writes to a log of its own, which is shown where it broke."""
    with tempfile.TemporaryDirectory() as folder:
        started = []
        for part in range(jobs):
            log = open(Path(folder, f"{part}.log"), "w")
            command = [sys.executable, *sys.argv, "--part", str(part), "--record", f"{folder}/{part}.json"]
            started.append((subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT), log))
        codes, records = [], []
        for part, (process, log) in enumerate(started):
            codes.append(process.wait())
            log.close()
            written = Path(folder, f"{part}.json")
            if written.exists():
                records.append(json.loads(written.read_text()))
            else:
                print(Path(folder, f"{part}.log").read_text()[-4000:], file=sys.stderr)
        return records, codes


def conclude(record, file, is_broken):
    print(json.dumps({key: value for key, value in record.items() if key != "functions"}, indent=2))
    if file:
        file.write_text(json.dumps(record, indent=2) + "\n")
    return 1 if is_broken or record["counts"].get("failed") or record["counts"].get("not collected") else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("files", nargs="*", help="under the checkout's tests/")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--revision", help="of a checkout that has lost its history")
    parser.add_argument("--reference", choices=["torch", "flashinfer"], default="torch")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--most", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    parser.add_argument("-k", dest="words")
    options = parser.parse_intermixed_args()
    try:
        import pytest
        import torch

        import deft
        import deft.flashinfer
    except ImportError as error:
        print(f"flashinfer_tests: {error}", file=sys.stderr)
        return 3
    if options.device == "cuda" and not torch.cuda.is_available():
        print("flashinfer_tests: there is no GPU", file=sys.stderr)
        return 3

    from judge import Judge, joined

    if options.jobs > 1 and options.part is None:
        records, codes = run_parts(options.jobs)
        if not records:
            return max(codes)
        is_broken = len(records) < options.jobs or any(code not in (0, 1) for code in codes)
        return conclude(joined(records), options.record, is_broken)

    from ours import Prompts, replace

    if options.reference == "torch":
        import reference

        reference.install(options.device)
    used = replace(options.device)
    part = (options.part or 0, options.jobs)
    plugins = [Judge(used, options.most, options.seconds, options.seed, part), Prompts(used, options.device)]
    if options.device == "cpu":
        from on_cpu import OnCpu

        plugins.append(OnCpu())
    sys.path.insert(0, str(options.checkout.resolve()))
    arguments = ["-q", "--noconftest", "-p", "no:cacheprovider", "-c", "/dev/null", "--tb=no", "--no-header", "-W", "ignore"]
    arguments += ["--continue-on-collection-errors"]
    arguments += ["--rootdir", str(options.checkout), *(["-k", options.words] if options.words else [])]
    arguments += [str(options.checkout / "tests" / file) for file in options.files or FILES]
    code = pytest.main(arguments, plugins=plugins)

    record = {
        "flashinfer": options.revision or revision(options.checkout),
        "reference": options.reference,
        "device": torch.cuda.get_device_name() if options.device == "cuda" else "cpu",
        "deft": deft.__version__,
        "torch": torch.__version__,
        "most": options.most,
        "seed": options.seed,
        **plugins[0].record(),
    }
    is_broken = code in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERRUPTED)
    return conclude(record, options.record, is_broken)


if __name__ == "__main__":
    sys.exit(main())
