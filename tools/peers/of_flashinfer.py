"""FlashInfer's wrappers, pages of one token, where it is installed."""

WORKSPACE_BYTES = 512 << 20


def _caches(case):
    return case.k.unsqueeze(1), case.v.unsqueeze(1)


def _integers(case, values):
    return case.torch.tensor(list(values), dtype=case.torch.int32, device="cuda")


def _starts(counts):
    starts = [0]
    for count in counts:
        starts.append(starts[-1] + count)
    return starts


def decode(case):
    """Decode on tensor cores, each query over its own path."""
    import flashinfer
    torch, tree = case.torch, case.tree
    queries = range(len(tree.ends))
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
        torch.empty(WORKSPACE_BYTES, dtype=torch.uint8, device="cuda"), "NHD", use_tensor_cores=True)
    wrapper.plan(_integers(case, _starts(map(tree.length, queries))),
                 _integers(case, [place for query in queries for place in tree.places(query)]),
                 _integers(case, [1] * len(tree.ends)), case.heads, case.kv_heads, case.dim, 1, q_data_type=torch.float16,
                 kv_data_type=case.k.dtype)
    caches = _caches(case)
    return lambda: wrapper.run(case.q, caches)


def persistent(case):
    """The kernel whose blocks live on, each query over its own path."""
    import flashinfer
    torch, tree = case.torch, case.tree
    queries = range(len(tree.ends))
    lengths = [tree.length(query) for query in queries]
    wrapper = flashinfer.BatchAttention("NHD")
    wrapper.plan(_integers(case, range(len(tree.ends) + 1)), _integers(case, _starts(lengths)),
                 _integers(case, [place for query in queries for place in tree.places(query)]), _integers(case, lengths),
                 case.heads, case.kv_heads, case.dim, case.dim, 1, q_data_type=torch.float16, kv_data_type=case.k.dtype)
    caches, out = _caches(case), torch.empty_like(case.q)
    lse = torch.empty(case.q.shape[:2], device="cuda")
    return lambda: wrapper.run(case.q, caches, out, lse)[0]


def cascade(case):
    """A level of the tree a level of the cascade, where all queries come from the same number of nodes."""
    import flashinfer
    torch, tree = case.torch, case.tree
    depth = len(tree.paths[0])
    if any(len(path) != depth for path in tree.paths) or tree.ends != sorted(tree.ends):
        raise NotImplementedError("queries end at different levels, or in another order than their nodes")
    query_starts, page_starts, pages, last = [], [], [], []
    for level in range(depth):
        nodes = list(dict.fromkeys(path[level] for path in tree.paths))
        query_starts.append(_integers(case, _starts(len(tree.nodes[node].queries) for node in nodes)))
        page_starts.append(_integers(case, _starts(tree.nodes[node].tokens for node in nodes)))
        pages.append(_integers(case, [place for node in nodes for place in range(
            tree.nodes[node].first, tree.nodes[node].first + tree.nodes[node].tokens)]))
        last.append(_integers(case, [1] * len(nodes)))
    wrapper = flashinfer.MultiLevelCascadeAttentionWrapper(
        depth, torch.empty(WORKSPACE_BYTES, dtype=torch.uint8, device="cuda"), "NHD")
    wrapper.plan(query_starts, page_starts, pages, last, case.heads, case.kv_heads, case.dim, 1,
                 q_data_type=torch.float16)
    caches = torch.stack(_caches(case), 1)
    return lambda: wrapper.run(case.q, caches)


PEERS = {"flashinfer_decode": decode, "flashinfer_persistent": persistent, "flashinfer_cascade": cascade}
TAKE_BYTES = {"flashinfer_decode", "flashinfer_persistent"}
