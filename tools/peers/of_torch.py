"""torch's own: scaled_dot_product_attention by path and by level, and FlexAttention with the tree as its mask."""

import collections

from case import check_copied


def by_path(case):
    """What flat decoding does: each query reads its whole path, which lies by itself for it."""
    torch = case.torch
    tree = case.tree
    check_copied(sum(map(tree.length, range(len(tree.ends)))) * case.kv_heads * case.dim * 4)
    calls, out = [], torch.empty_like(case.q)
    lengths = collections.defaultdict(list)
    for query in range(len(tree.ends)):
        lengths[tree.length(query)].append(query)
    for queries in lengths.values():
        places = torch.tensor([tree.places(query) for query in queries], device="cuda")
        k, v = (x[places].transpose(1, 2).contiguous() for x in (case.k, case.v))
        rows = torch.tensor(queries, device="cuda")
        calls.append((rows, case.q[rows].unsqueeze(2).contiguous(), k, v))

    def run():
        for rows, q, k, v in calls:
            result = torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True).squeeze(2)
            if len(calls) == 1:
                return result
            out[rows] = result
        return out

    return run


def by_level(case):
    """A call of flash attention for all nodes of one size and number of readers, rows of a KV head's query heads side by
    side, and the partial results joined by their logarithms."""
    torch, tree = case.torch, case.tree
    group = case.heads // case.kv_heads
    kinds = collections.defaultdict(list)
    for node in tree.nodes:
        if node.tokens and node.queries:
            kinds[node.tokens, len(node.queries)].append(node)
    calls = []
    for (tokens, readers), nodes in kinds.items():
        places = torch.tensor([range(node.first, node.first + tokens) for node in nodes], device="cuda")
        k, v = (x[places].transpose(1, 2).contiguous() for x in (case.k, case.v))
        rows = torch.tensor([node.queries for node in nodes], device="cuda")
        calls.append((rows, readers, k, v))
    depth = max(map(len, tree.paths))
    # Of each query's partial results: where they are among all, or the last place, which weighs nothing.
    count = sum(rows.numel() for rows, _, _, _ in calls)
    at, first = [[] for _ in tree.ends], 0
    for rows, _, _, _ in calls:
        for i, query in enumerate(rows.flatten().tolist()):
            at[query].append(first + i)
        first += rows.numel()
    at = torch.tensor([one + [count] * (depth - len(one)) for one in at], device="cuda")
    partial = torch.zeros(count + 1, case.heads, case.dim, dtype=torch.float16, device="cuda")
    logarithm = torch.full((count + 1, case.heads), float("-inf"), device="cuda")

    def run():
        first = 0
        for rows, readers, k, v in calls:
            q = case.q[rows].view(len(rows), readers, case.kv_heads, group, case.dim)
            q = q.transpose(1, 2).reshape(len(rows), case.kv_heads, readers * group, case.dim)
            out, lse = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, scale=case.scale)[:2]
            part = slice(first, first + rows.numel())
            partial[part] = out.view(len(rows), case.kv_heads, readers, group, case.dim).transpose(1, 2).reshape(
                -1, case.heads, case.dim)
            logarithm[part] = lse.view(len(rows), case.kv_heads, readers, group).transpose(1, 2).reshape(-1, case.heads)
            first += rows.numel()
        weights = logarithm[at].softmax(1)
        return torch.einsum("qph,qphd->qhd", weights, partial[at].float()).half()

    return run


def flex(case):
    """FlexAttention, compiled: the tree as a mask over all tokens, whose empty blocks are left out."""
    torch, tree = case.torch, case.tree
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    nodes = len(tree.nodes)
    sees = torch.zeros(len(tree.ends), nodes, dtype=torch.bool)
    for query, path in enumerate(tree.paths):
        sees[query, path] = True
    sees = sees.cuda()
    node_of = torch.repeat_interleave(torch.arange(nodes), torch.tensor([node.tokens for node in tree.nodes])).cuda()
    mask = torch.compile(create_block_mask)(lambda b, h, q, kv: sees[q, node_of[kv]], None, None, len(tree.ends),
                                            tree.tokens, device="cuda")
    attend = torch.compile(flex_attention, dynamic=False)
    q = case.q.transpose(0, 1).unsqueeze(0).contiguous()
    k, v = (x.transpose(0, 1).unsqueeze(0).contiguous() for x in (case.k, case.v))
    return lambda: attend(q, k, v, block_mask=mask, enable_gqa=True).squeeze(0).transpose(0, 1)


PEERS = {"sdpa_by_path": by_path, "sdpa_by_level": by_level, "flex": flex}
