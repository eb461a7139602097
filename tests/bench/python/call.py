"""What a call of plan.run costs beside the attention: a tree of one token, two heads of 16 numbers, one thread. Processor time, the
least of five rounds, in microseconds; expect some tens for NumPy.

usage: call.py [torch]      torch: with its tensors, in the host's memory
"""

import sys
import time
from ctypes import addressof

import deft
import numpy as np
from deft._library import lib
from deft._tensors import Slot, view
from deft._process import runtime

CALLS = 4000


def microseconds(call):
    rounds = []
    for _ in range(5):
        begin = time.process_time()
        for _ in range(CALLS):
            call()
        rounds.append((time.process_time() - begin) / CALLS * 1e6)
    return min(rounds)


def main():
    att = deft.compile("attention a { query_heads = 2; kv_heads = 1; head_dim = 16; dtype = f16; kv_cache = contiguous; }")
    tree = deft.Tree()
    tree.add_query(tree.add_root(1, location=0))
    q, k = np.ones((1, 2, 16), "float16"), np.ones((1, 1, 16), "float16")
    out = np.empty_like(q)
    if sys.argv[1:] == ["torch"]:
        import torch

        q, k, out = (torch.from_numpy(array) for array in (q, k, out))
    deft.set_threads(1)
    plan = att.plan(tree, workers=1)
    plan.run(q, k, k, out=out)
    assert (out == 1).all()
    call = plan._calls[-1]
    structs = addressof(call.inputs), addressof(call.outputs)
    seen, slot = view("q", q), Slot()
    for what, function in (
        ("plan.run", lambda: plan.run(q, k, k, out=out)),
        ("attention.run", lambda: att.run(tree, q, k, k, out=out)),
        ("deft_runtime_run", lambda: lib.deft_runtime_run(runtime(), att, plan._host.handle, *structs)),
        ("reading an array", lambda: view("q", q)),
        ("filling a struct", lambda: slot.fill(seen)),
    ):
        print(f"{what:20}{microseconds(function):8.2f} us")


if __name__ == "__main__":
    main()
