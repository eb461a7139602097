"""A tree with tensors, and what is right for it."""

import dataclasses

MOST_COPIED = 24 << 30  # bytes of K and V that lie by path, where a kernel reads them so


def check_copied(size):
    if size > MOST_COPIED:
        raise NotImplementedError(f"the paths would take {size >> 30} GiB")


@dataclasses.dataclass
class Case:
    """Of one layer and step: q [queries, heads, dim], k and v [tokens, kv_heads, dim], in f16 on the GPU; K and V may be e4m3."""

    torch: object
    tree: object
    heads: int
    kv_heads: int
    q: object
    k: object
    v: object

    @property
    def dim(self):
        return self.q.shape[-1]

    @property
    def is_of_bytes(self):
        return self.k.dtype == self.torch.float8_e4m3fn

    @property
    def scale(self):
        return self.dim ** -0.5


def draw(torch, tree, heads, kv_heads, dim, seed, of_bytes=False):
    generator = torch.Generator("cuda").manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, dtype=torch.float16, device="cuda", generator=generator)

    kept = torch.float8_e4m3fn if of_bytes else torch.float16
    return Case(torch, tree, heads, kv_heads, normal(len(tree.ends), heads, dim), normal(tree.tokens, kv_heads, dim).to(kept),
                normal(tree.tokens, kv_heads, dim).to(kept))


def rows_of(case, cache, places):
    """8-bit floats are picked as bytes, which every torch can pick."""
    return cache.view(case.torch.uint8)[places].view(cache.dtype) if case.is_of_bytes else cache[places]


def largest_error(case, out, most=48):
    """Of the rows of so many queries, the largest distance from float32 attention over the row's length."""
    torch = case.torch
    count, worst = len(case.tree.ends), 0.0
    for query in sorted({i * (count - 1) // max(1, most - 1) for i in range(most)} if count > 1 else {0}):
        places = torch.tensor(case.tree.places(query), device="cuda")
        group = case.heads // case.kv_heads
        keys, values = (rows_of(case, x, places).float().repeat_interleave(group, 1) for x in (case.k, case.v))
        scores = torch.einsum("hd,thd->ht", case.q[query].float(), keys) * case.scale
        right = torch.einsum("ht,thd->hd", scores.softmax(-1), values)
        error = (out[query].float() - right).norm(dim=-1) / right.norm(dim=-1)
        worst = max(worst, error.max().item())
    return worst
