"""Latent caches on a GPU, through FlashInfer's wrapper and FlashMLA's functions, against torch's attention in double precision.

usage: gpu_latent.py      alone, or as a part of gpu_check.py; exit code 1 where something is wrong
"""

import math
import sys
from concurrent.futures import ThreadPoolExecutor

import deft
import torch
from deft._adapters.variant import attention_of, make_latent_variant
from deft.flash_mla import flash_mla_with_kvcache, get_mla_metadata
from deft.flashinfer import BatchMLAPagedAttentionWrapper

CKV, KPE, SCALE, REQUESTS = 512, 64, 192**-0.5, 5
SHAPES = [(16, 64), (128, 64), (16, 1), (128, 1)]  # heads, and tokens of a page


class Batch:
    """Requests over a shared prefix, with pages in no order."""

    def __init__(self, heads, page, each, device):
        self.heads, self.page, self.each, self.device = heads, page, each, device
        shared, own = 1024 // page, 192 // page
        pages = torch.randperm(shared + REQUESTS * own).int()
        self.table = torch.stack([torch.cat([pages[:shared], pages[shared + i * own : shared + (i + 1) * own]]) for i in range(REQUESTS)])
        self.lengths = torch.tensor([1030 + 31 * i for i in range(REQUESTS)], dtype=torch.int32)
        self.cache = torch.randn(len(pages), page, CKV + KPE, dtype=torch.bfloat16, device=device)
        self.q = torch.randn(REQUESTS * each, heads, CKV + KPE, dtype=torch.bfloat16, device=device)

    def requests(self):
        pages = [-(-int(length) // self.page) for length in self.lengths]
        indices = torch.cat([row[:count] for row, count in zip(self.table, pages)])
        indptr = torch.tensor([0, *pages], dtype=torch.int32).cumsum(0, dtype=torch.int32)
        queries = torch.arange(REQUESTS + 1, dtype=torch.int32) * self.each
        return [one.to(self.device) for one in (queries, indptr, indices, self.lengths)]

    def plan(self, wrapper):
        wrapper.plan(*self.requests(), self.heads, CKV, KPE, self.page, self.each > 1, SCALE, torch.bfloat16, torch.bfloat16)

    def wrapper(self, for_graphs=False):
        workspace = torch.empty(0, device=self.device)
        if not for_graphs:
            return BatchMLAPagedAttentionWrapper(workspace)
        rows = [torch.zeros(REQUESTS + 1, dtype=torch.int32, device=self.device) for _ in range(2)]
        indices = torch.zeros(self.table.numel(), dtype=torch.int32, device=self.device)
        return BatchMLAPagedAttentionWrapper(workspace, True, *rows, indices, rows[0][1:].clone())

    def parts(self):
        return [*self.q.split([CKV, KPE], -1), *self.cache.split([CKV, KPE], -1)]

    def right(self):
        """(out, lse to the base e)"""
        rows = []
        for i, (row, length) in enumerate(zip(self.table.long(), self.lengths.tolist())):
            k = self.cache[row.to(self.device)].reshape(-1, CKV + KPE)[:length].double()
            scores = torch.einsum("qhd,td->qht", self.q[i * self.each : (i + 1) * self.each].double(), k) * SCALE
            last = length - self.each + torch.arange(self.each, device=self.device)[:, None, None]
            scores = scores.masked_fill(torch.arange(length, device=self.device) > last, -math.inf)
            rows.append((torch.einsum("qht,td->qhd", scores.softmax(-1), k[:, :CKV]), scores.logsumexp(-1)))
        return tuple(torch.cat(one) for one in zip(*rows))


def compile_kernels(device):
    """Side by side; later loads find them in the cache."""
    tree = deft.Tree()
    tree.add_query(tree.add_root(1000, location=0))

    def load(shape):
        heads, page = shape
        variant = make_latent_variant(
            query_heads=heads, latent_dim=CKV, rope_dim=KPE, page_size=page, dtype="bf16", output_dtype="bf16", sm_scale=SCALE)
        attention_of(variant).plan(tree, device=device)

    with ThreadPoolExecutor() as pool:
        list(pool.map(load, SHAPES))


def check_wrapper(batch, name, check):
    wrapper, right = batch.wrapper(), batch.right()
    batch.plan(wrapper)
    out, lse = wrapper.run(*batch.parts(), return_lse=True, return_lse_base_on_e=True)
    results = [check(f"a wrapper, {name}", out, right[0]), check(f"its lse, {name}", lse, right[1])]
    apart = [part.clone() for part in batch.parts()]
    results.append(check(f"parts apart, {name}", wrapper.run(*apart), right[0]))
    both = torch.stack([batch.cache, batch.cache * 2], 2)[:, :, 0]  # layers side by side
    results.append(check(f"a cache with strides, {name}", wrapper.run(query=batch.q, kv_cache=both), right[0]))
    return results


def check_graph(batch, name, check, are_apart):
    """It replays a step with longer requests on other pages."""
    wrapper, out = batch.wrapper(for_graphs=True), torch.empty(len(batch.q), batch.heads, CKV, dtype=torch.bfloat16, device=batch.device)
    batch.plan(wrapper)
    parts = [part.clone() for part in batch.parts()] if are_apart else batch.parts()
    wrapper.run(*parts, out=out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        wrapper.run(*parts, out=out)
    results = []
    for step in range(2):
        if step:
            batch.lengths, batch.table = batch.lengths + 17, batch.table.flip(0)
            batch.plan(wrapper)
        out.zero_()
        graph.replay()
        results.append(check(f"a captured wrapper, step {step}, {name}", out, batch.right()[0]))
    return results


def check_flash_mla(batch, name, check):
    metadata, _ = get_mla_metadata()
    q, table = batch.q.view(REQUESTS, batch.each, batch.heads, -1), batch.table.to(batch.device)
    lengths = batch.lengths.to(batch.device)

    def layer(**more):
        return flash_mla_with_kvcache(
            q, batch.cache.unsqueeze(2), table, lengths, CKV, metadata, None, softmax_scale=SCALE, causal=batch.each > 1, **more)

    (out, lse), right = layer(), batch.right()
    right_lse = right[1].view(REQUESTS, batch.each, batch.heads).transpose(1, 2)
    results = [check(f"FlashMLA's function, {name}", out.flatten(0, 1), right[0]), check(f"its lse, {name}", lse, right_lse)]
    sinks = 3 * torch.randn(batch.heads, device=batch.device) + right[1].mean().float()
    kept = torch.sigmoid(right[1] - sinks).unsqueeze(-1)
    results.append(check(f"FlashMLA's function with sinks, {name}", layer(attn_sink=sinks)[0].flatten(0, 1), right[0] * kept))
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out, _ = layer()
    graph.replay()
    return [*results, check(f"FlashMLA's function, captured, {name}", out.flatten(0, 1), right[0])]


def check_lists(batch, name, check, topk=333, overlap=0):
    """FlashMLA's function with indices: with holes, tokens that are there twice, and tokens beside them that are NaN."""
    slots = batch.cache.shape[0] * batch.page
    q, cache = batch.q.view(REQUESTS, batch.each, batch.heads, -1), batch.cache.clone().unsqueeze(2)
    rows = cache.view(slots, -1)
    rows[0] = math.nan
    metadata, _ = get_mla_metadata(list_overlap=overlap)
    indices = torch.zeros(REQUESTS, batch.each, topk, dtype=torch.int32, device=batch.device)

    def draw():
        drawn = torch.randint(1, slots, indices.shape, dtype=torch.int32, device=batch.device)
        drawn[torch.rand(indices.shape, device=batch.device) < 0.2] = -1
        drawn[0, 0] = -1
        indices.copy_(drawn)

    def right():
        tokens = rows[indices.long().clamp(min=1)].double()
        scores = torch.einsum("bqhd,bqtd->bqht", q.double(), tokens) * SCALE
        scores = scores.masked_fill(indices[:, :, None] < 0, -math.inf)
        return torch.einsum("bqht,bqtd->bqhd", scores.softmax(-1).nan_to_num(), tokens[..., :CKV]), scores.logsumexp(-1).transpose(1, 2)

    def layer():
        return flash_mla_with_kvcache(q, cache, None, None, CKV, metadata, None, softmax_scale=SCALE, indices=indices)

    draw()
    (out, lse), expected = layer(), right()
    results = [check(f"lists, {name}", out, expected[0]), check(f"their lse, {name}", *(one.clamp(min=-1e3) for one in (lse, expected[1])))]
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out, _ = layer()
    draw()
    graph.replay()
    return [*results, check(f"lists, captured, {name}", out, right()[0])]


def check_finite_parts(device):
    """A run that looks for what is not finite finds it in either part."""
    att = deft.compile(f"attention a {{ query_heads = 16; kv_cache = latent(dim = {CKV}, rope = {KPE}, page_size = 64); scale = 0.07; }}")
    tree = deft.Tree()
    tree.add_query(tree.add_root(100, location=0))
    q = torch.randn(1, 16, CKV + KPE, dtype=torch.bfloat16, device=device)
    ckv, kpe = (torch.randn(2, 64, width, dtype=torch.bfloat16, device=device) for width in (CKV, KPE))
    table = torch.tensor([1, 0], dtype=torch.int32, device=device)
    att.run(tree, q, (ckv, kpe), page_table=table, check_finite=True)
    kpe[0, 20, 5] = math.nan
    try:
        att.run(tree, q, (ckv, kpe), page_table=table, check_finite=True)
    except deft.UsageError as error:
        is_right = f"K is NaN at element {CKV + 5} of the token at kv_pos 84" in error.message
        print(f"{'ok' if is_right else 'WRONG'}  a NaN in one part: {error.message}")
        return is_right
    print("WRONG  a NaN in one part is not found")
    return False


def check_all(device, check):
    compile_kernels(device)
    results = []
    for heads, page in SHAPES:
        for each in (1, 4):
            name = f"{heads} heads, pages of {page}, {each} queries"
            batch = Batch(heads, page, each, device)
            results += check_wrapper(batch, name, check)
            results += check_flash_mla(batch, name, check)
            results += check_lists(batch, name, check)
            if each > 1:  # with few heads, on Hopper, unions
                results += check_lists(batch, f"{name}, which agree", check, topk=1500, overlap=1)
            for are_apart in (False, True):
                results += check_graph(Batch(heads, page, each, device), f"{name}, {'apart' if are_apart else 'whole'}", check, are_apart)
    return [*results, check_finite_parts(device)]


def main():
    from gpu_check import check

    torch.manual_seed(3)
    results = check_all(torch.device("cuda:0"), check)
    print(f"{'all' if all(results) else 'NOT ALL'} of {len(results)} are right")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
