"""FastTree's kernels, and its rewrite of DeFT's, from a folder that the user has: `kernel_bench` of FastTree's public artifact.

The settings are those of the artifact's own scripts. Both know requests at leaves alone."""

import importlib
import sys

from case import check_copied

TILE_ROWS = {1: (64, 16), 4: (16, 4), 16: (4, 1)}  # by the number of query heads a KV head


def _modules(folder, *names):
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return [importlib.import_module(name) for name in names]


def _nodes(case, folder):
    if not case.tree.has_queries_at_leaves_alone():
        raise NotImplementedError("queries that do not end at leaves, one at each")
    (simple,) = _modules(folder, "kv_tree_simple")
    nodes = []
    for node in case.tree.nodes:
        one = simple.KVTreeNode()
        one.parent, one.id, one.seqlen, one.requests = node.parent, len(nodes), node.tokens, list(node.queries)
        one.num_children = 0
        nodes.append(one)
        if node.parent >= 0:
            nodes[node.parent].num_children += 1
    return nodes


def _tiles(case):
    group = case.heads // case.kv_heads
    if group not in TILE_ROWS:
        raise NotImplementedError(f"the artifact has no settings for {group} query heads a KV head")
    return TILE_ROWS[group], (32, 32)


def fasttree(folder):
    def prepare(case):
        (kernels,) = _modules(folder, "fasttree")
        rows, columns = _tiles(case)
        params = kernels.FastTreeParams()
        params.set_values(0.66, 0.33, 0.1)
        params.set_q_tile_sizes(list(rows))
        params.set_kv_tile_sizes(list(columns))
        params.set_kv_group_num(case.heads // case.kv_heads)
        firsts = [node.first for node in case.tree.nodes] + [case.tree.tokens]
        made, _ = kernels.fasttree_preparation(_nodes(case, folder), firsts, len(case.tree.ends), case.heads, case.kv_heads,
                                               case.dim, [1024, 128], [132, 528], [132, 132], params)
        out = case.torch.empty_like(case.q)

        def run():
            kernels.fasttree_decode(case.q, case.k, case.v, out, *made, list(rows), list(columns), case.scale)
            return out

        return run

    return prepare


def deft_rewrite(folder):
    def prepare(case):
        (kernels,) = _modules(folder, "DeFT")
        torch, tree = case.torch, case.tree
        rows, columns = _tiles(case)
        # It reads paths, each of its own; of the cache's shape it takes the number of requests and their longest.
        longest = max(map(tree.length, range(len(tree.ends))))
        check_copied(len(tree.ends) * longest * case.kv_heads * case.dim * 4)
        k, v = (torch.zeros(len(tree.ends), longest, case.kv_heads, case.dim, dtype=torch.float16, device="cuda")
                for _ in range(2))
        for query in range(len(tree.ends)):
            places = torch.tensor(tree.places(query), device="cuda")
            k[query, :len(places)], v[query, :len(places)] = case.k[places], case.v[places]
        made = kernels.DeFT_preparation(_nodes(case, folder), k, 128, 64, case.heads, case.dim)
        out = torch.empty_like(case.q)

        def run():
            kernels.DeFT_decode(case.q, k.view(-1, case.kv_heads, case.dim), v.view(-1, case.kv_heads, case.dim), out,
                                *made, rows[0], columns[0], case.scale, 64)
            return out

        return run

    return prepare


def peers(folder):
    return {"fasttree": fasttree(folder), "deft_in_fasttree": deft_rewrite(folder)}
