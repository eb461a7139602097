#!/usr/bin/env python3
"""A spec with an attention for each row of the support table, `feature_NAME`, as runtime/doctor/Features.h has them.

  tests/gpu/support_spec.py >support.deft

Packages of these attentions under tests/gpu/verify.py make a record that shows their rows. GPUs refuse some rows, so give each
attention a package of its own (`deftc build support.deft --variant NAME`). A row is missing: `deftc run` hands over no lists.
"""

import pathlib
import re
import sys

FEATURES = pathlib.Path(__file__).resolve().parents[2] / "runtime/doctor/Features.h"
ROW = re.compile(r'^    \{"(\w+)", "(?:[^"\\]|\\.)*",\s*(.*?)\},$', re.S | re.M)
NOT_RUN = {"latent_given_lists"}
GQA = re.compile(r"DEFT_GQA\((\d+),(.*)\)$", re.S)


def text_of(literals):
    """What C's compiler makes of adjacent strings."""
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals))


def attentions(header):
    """The spec of each row by its name."""
    found = {}
    for name, spec in ROW.findall(header):
        if name in NOT_RUN:
            continue
        gqa = GQA.match(spec)
        text = f"attention feature {{ query_heads = 32; kv_heads = 8; head_dim = {gqa[1]}; {text_of(gqa[2])} }}" if gqa else text_of(spec)
        found[name] = text.replace("attention feature", f"attention feature_{name}", 1)
    return found


if __name__ == "__main__":
    sys.stdout.write("\n".join(attentions(FEATURES.read_text(encoding="utf-8")).values()) + "\n")
