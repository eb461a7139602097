"""FlashAttention 3's decode with products of 8 bits, pages of one token, where its own package or SGLang's kernels are installed."""

import importlib

MODULES = ("flash_attn_interface", "sgl_kernel.flash_attn", "sglang.jit_kernel.flash_attention_v3")


def kernel():
    """The call with page tables, or why there is none."""
    reasons = []
    for name in MODULES:
        try:
            return importlib.import_module(name).flash_attn_with_kvcache
        except (ImportError, AttributeError, OSError) as error:  # OSError: a library of another CUDA or torch
            reasons.append(f"{name}: {error}".splitlines()[0])
    raise NotImplementedError("; ".join(reasons))


def decode(case):
    """Each query over its own path. q is in 8 bits before the clock starts, which the kernel leaves to its caller."""
    call = kernel()
    torch, tree = case.torch, case.tree
    lengths = [tree.length(query) for query in range(len(tree.ends))]
    table = torch.zeros(len(lengths), max(lengths), dtype=torch.int32)
    for query, length in enumerate(lengths):
        table[query, :length] = torch.tensor(tree.places(query), dtype=torch.int32)
    table = table.to(case.q.device)
    seqlens = torch.tensor(lengths, dtype=torch.int32, device=case.q.device)
    q = case.q.to(torch.float8_e4m3fn).unsqueeze(1)
    scale = torch.ones(len(lengths), case.kv_heads, device=case.q.device)
    k, v = case.k.unsqueeze(1), case.v.unsqueeze(1)
    return lambda: call(q, k, v, cache_seqlens=seqlens, page_table=table, softmax_scale=case.scale, causal=True,
                        q_descale=scale, k_descale=scale, v_descale=scale).squeeze(1)


BYTE_PRODUCTS = {"fa3_byte_products": decode}
