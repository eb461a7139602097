"""The pool of threads that runs plans on processors."""

import subprocess
import sys

FORKED = """
import os, sys, deft, numpy

def run():
    tree = deft.Tree()
    tree.set_queries([tree.add_root(4000, location=0)] * 8)
    q, k = numpy.ones((8, 4, 64), "float16"), numpy.ones((4000, 2, 64), "float16")
    return float(att.run(tree, q, k, k).mean())

att = deft.compile("attention a { query_heads = 4; kv_heads = 2; head_dim = 64; dtype = f16; kv_cache = contiguous; }")
deft.set_threads(3)
assert run() == 1
child = os.fork()
if child == 0:
    assert deft._process._runtime is None
    assert run() == 1 and deft.get_threads() == 3
    if len(sys.argv) > 1:
        os.fork() and os.wait()  # one that ends without a run
    sys.exit(0)
_, status = os.waitpid(child, 0)
assert run() == 1
sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_a_forked_process_has_threads_of_its_own_and_ends():
    for more in [], ["twice"]:
        subprocess.run([sys.executable, "-c", FORKED, *more], check=True, timeout=120)
