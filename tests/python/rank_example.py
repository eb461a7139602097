"""The example of docs/ranks.md: one rank of two.

usage: rank_example.py RANK GROUP_NAME
"""

import sys
import deft, numpy

rank, name = int(sys.argv[1]), sys.argv[2]
att = deft.compile("""attention a {
  query_heads = 4; kv_heads = 1; head_dim = 64; dtype = f16; output = f16 with lse;
  kv_cache = paged(page_size = 16, order = nhd);
}""")
tree = deft.Tree()
prompt = tree.add_root(100, location=0)
for branch in range(2):
    tree.add_query(tree.add_child(prompt, 20, location=128 + 32 * branch))
tree.set_ranks(deft.Ranks(count=2, rank=rank, unit=16))  # 16 tokens here, 16 there

peers = deft.Peers(name, count=2, rank=rank, timeout=30)
peers.agree(att, tree)
q = numpy.ones((2, 4, 64), "float16")
k = v = numpy.full((8, 16, 1, 64), rank, "float16")  # this rank's part of the cache
out, lse = peers.merge(*att.run(tree, q, k, v, numpy.arange(8, dtype="int32"), return_lse=True))
print(f"rank {rank}: {att.plan(tree, partition='node').summary().tokens_read} of 140 tokens, {out.shape[1]} heads merged")
