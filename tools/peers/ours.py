"""deftc, with the config that ships for this GPU or the analytic choice."""


def prepare(case, products=""):
    import deft
    torch = case.torch
    attention = deft.compile(
        f"attention bench {{ query_heads = {case.heads}; kv_heads = {case.kv_heads}; head_dim = {case.dim}; dtype = f16;"
        f" kv_cache = paged(page_size = 1{', dtype = fp8_e4m3' if case.is_of_bytes else ''}); {products} }}")
    tree, nodes = deft.Tree(), []
    for node in case.tree.nodes:
        nodes.append(tree.add_root(node.tokens, location=node.first) if node.parent < 0
                     else tree.add_child(nodes[node.parent], node.tokens, location=node.first))
    for end in case.tree.ends:
        tree.add_query(nodes[end])
    plan = attention.plan(tree, device=case.q.device)
    plan.upload()
    table = torch.arange(case.tree.tokens, dtype=torch.int32, device=case.q.device)
    k, v, out = case.k.unsqueeze(1), case.v.unsqueeze(1), torch.empty_like(case.q)
    return lambda: plan.run(case.q, k, v, table, out=out)


def with_byte_products(case):
    """The kernel rounds q, which is in 16 bits, and the weights."""
    return prepare(case, "products = fp8_e4m3;")


PEERS = {"deftc": prepare}
TAKE_BYTES = {"deftc"}
BYTE_PRODUCTS = {"deftc_byte_products": with_byte_products}
