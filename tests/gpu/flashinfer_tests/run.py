#!/usr/bin/env python3
"""FlashInfer's own tests of the wrappers that deft.flashinfer has, run against ours.

  git clone https://github.com/flashinfer-ai/flashinfer && git -C flashinfer checkout v0.6.14
  python3 tests/gpu/flashinfer_tests/run.py flashinfer --record FILE [--most N] [--seconds S] [-k WORDS] [file ...]

The wrappers' names in the module `flashinfer` are replaced by ours; all else that the tests use stays what it is. With
`--reference flashinfer` that is FlashInfer, which must be installed in the checkout's version and compiles its kernels as
they are needed, minutes each. With `--reference torch` (the default) what the tests compare with is attention written in
torch (reference.py), and FlashInfer need not be there.

The record (JSON) says how many passed, failed and were outside, each kind with its reason. `--most N`: of each test function
N cases, drawn by `--seed`. `--seconds S`: what has not begun by then is counted as not run. `--device cpu` runs the tests on
the CPU, where they are small enough and capture no graph.

Exit code: 0 where nothing failed, 1 where something did, 3 where torch, deft, pytest or the GPU is missing.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

# Those in which the wrappers stand beside a result that is right; others need GPUs or caches of another kind.
FILES = """attention/test_batch_decode_kernels.py attention/test_batch_attention.py attention/test_shared_prefix_kernels.py
attention/test_sliding_window.py attention/test_tensor_cores_decode.py attention/test_non_contiguous_decode.py
attention/test_decode_prefill_lse.py attention/test_batch_invariant_fa2.py
attention/test_decode_fp8_calibration_scale.py""".split()


def revision(checkout):
    done = subprocess.run(["git", "-C", checkout, "describe", "--tags", "--always"], capture_output=True, text=True)
    return done.stdout.strip() or "not a checkout"


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

    from judge import Judge
    from ours import replace

    if options.reference == "torch":
        import reference

        reference.install(options.device)
    used = replace(options.device)
    plugins = [Judge(used, options.most, options.seconds, options.seed)]
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
    print(json.dumps({key: value for key, value in record.items() if key != "functions"}, indent=2))
    if options.record:
        options.record.write_text(json.dumps(record, indent=2) + "\n")
    is_broken = code in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERRUPTED)
    return 1 if is_broken or record["counts"].get("failed") or record["counts"].get("not collected") else 0


if __name__ == "__main__":
    sys.exit(main())
