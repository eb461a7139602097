"""A tree with tensors, and what is right for it."""

import dataclasses

MOST_COPIED = 24 << 30  # bytes of K and V that lie by path, where a kernel reads them so
LARGEST_ERROR = 0.01  # of a row's length; f16 results have a tenth


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


def draw(torch, tree, heads, kv_heads, dim, seed, of_bytes=False, device="cuda"):
    generator = torch.Generator(device).manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, dtype=torch.float16, device=device, generator=generator)

    kept = torch.float8_e4m3fn if of_bytes else torch.float16
    return Case(torch, tree, heads, kv_heads, normal(len(tree.ends), heads, dim), normal(tree.tokens, kv_heads, dim).to(kept),
                normal(tree.tokens, kv_heads, dim).to(kept))


def rows_of(case, cache, places):
    """8-bit floats are picked as bytes, which every torch can pick."""
    return cache.view(case.torch.uint8)[places].view(cache.dtype) if case.is_of_bytes else cache[places]


def _rows(case, most=48):
    """Of so many queries: which, its keys, its values and what attention in float32 makes of them."""
    torch = case.torch
    count = len(case.tree.ends)
    for query in sorted({i * (count - 1) // max(1, most - 1) for i in range(most)} if count > 1 else {0}):
        places = torch.tensor(case.tree.places(query), device=case.q.device)
        group = case.heads // case.kv_heads
        keys, values = (rows_of(case, x, places).float().repeat_interleave(group, 1) for x in (case.k, case.v))
        yield query, keys, values, _attention(case, case.q[query].float(), keys, values)


def _attention(case, q, keys, values, kept=lambda weights: weights):
    scores = case.torch.einsum("hd,thd->ht", q, keys) * case.scale
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    return case.torch.einsum("ht,thd->hd", kept(weights), values) / weights.sum(-1, keepdim=True)


def _distance(row, right):
    return ((row.float() - right).norm(dim=-1) / right.norm(dim=-1)).max().item()


def largest_error(case, out):
    """Of the rows of some queries, the largest distance from float32 attention over the row's length."""
    return max(_distance(out[query], right) for query, _, _, right in _rows(case))


def _in_e4m3(case, x, unit):
    return (x / unit).to(case.torch.float8_e4m3fn).float() * unit


def allowed_error(case, has_byte_products):
    """With products of 8 bits: twice the error of attention in float32 over rows of q and weights that are rounded as the
    language's rule A12 has it."""
    if not has_byte_products:
        return LARGEST_ERROR
    torch, worst = case.torch, 0.0
    for query, keys, values, right in _rows(case):
        q = case.q[query].float()
        unit = torch.exp2(torch.ceil(torch.log2(q.abs().amax(-1, keepdim=True) / 448)))
        rounded = _attention(case, _in_e4m3(case, q, unit), keys, values, lambda weights: _in_e4m3(case, weights, 2.0**-8))
        worst = max(worst, _distance(rounded, right))
    return 2 * worst
