"""FlashInfer's wrappers for prompts on a GPU: what queries see, sinks, and custom masks that only the GPU knows, in captured graphs.
Right is a plain evaluation in double precision on the host.

usage: gpu_flashinfer.py [cpu]      alone, or as a part of gpu_check.py; exit code 1 where something is wrong
"""

import sys
import time

import torch
from deft.flashinfer import (
    BatchDecodeWithPagedKVCacheWrapper,
    BatchPrefillWithPagedKVCacheWrapper,
    BatchPrefillWithRaggedKVCacheWrapper,
)
from plain_attention import plain_shown

HEADS, KV_HEADS, DIM, PAGE = 16, 4, 128, 16
LENGTHS, COUNTS = [700, 333, 41, 90], [60, 8, 41, 1]  # the first two share eight pages
SHAPES = (HEADS, KV_HEADS, DIM)


def ints(values, device):
    return torch.tensor(values, dtype=torch.int32, device=device)


def sums(values, device):
    return ints([0, *values], device).cumsum(0, dtype=torch.int32)


class Prompts:
    def __init__(self, device, seed=1):
        self.device, self.generator = device, torch.Generator().manual_seed(seed)
        self.lengths, pages = [*LENGTHS], torch.randperm(160, generator=self.generator).tolist()
        self.rows = [pages[:60], [*pages[:8], *pages[60:90]], pages[90:100], pages[100:110]]
        self.cache = torch.randn(160, 2, PAGE, KV_HEADS, DIM, generator=self.generator).bfloat16()
        self.q = torch.randn(sum(COUNTS), HEADS, DIM, generator=self.generator).bfloat16()
        self.on_device = self.q.to(device), self.cache.to(device)

    def plan(self, wrapper, **more):
        pages = [-(-length // PAGE) for length in self.lengths]
        indices = [page for row, count in zip(self.rows, pages) for page in row[:count]]
        last = [(length - 1) % PAGE + 1 for length in self.lengths]
        given = sums(COUNTS, self.device), sums(pages, self.device), ints(indices, self.device), ints(last, self.device)
        wrapper.plan(*given, *SHAPES, PAGE, q_data_type=torch.bfloat16, **more)

    def tokens(self, cache=None):
        """K and V of each request."""
        cache = self.cache if cache is None else cache
        return [cache[row].transpose(0, 1).flatten(1, 2)[:, :length] for row, length in zip(self.rows, self.lengths)]

    def right(self, shown, cache=None, **more):
        parts = [plain_shown(q, *kv, one, **more) for q, kv, one in zip(self.q.split(COUNTS), self.tokens(cache), shown)]
        return torch.cat([out for out, _ in parts]).to(self.device), torch.cat([lse for _, lse in parts]).to(self.device)

    def shown(self, causal, window_left=-1):
        found = []
        for count, length in zip(COUNTS, self.lengths):
            own, token = torch.arange(length - count, length)[:, None], torch.arange(length)[None, :]
            one = token <= own if causal else torch.ones(count, length, dtype=torch.bool)
            found.append(one & (token >= own - window_left) if window_left >= 0 else one)
        return found

    def trees(self):
        """Random ones, whose drafts stand in any order."""
        masks = []
        for count, length in zip(COUNTS, self.lengths):
            mask = torch.zeros(count, length, dtype=torch.bool)
            mask[:, : length - count] = True
            order = torch.randperm(count, generator=self.generator).tolist()
            for place, draft in enumerate(order):
                parent = int(torch.randint(-1, place, (1,), generator=self.generator)) if place else -1
                if parent >= 0:
                    mask[draft] = mask[order[parent]]
                mask[draft, length - count + draft] = True
            masks.append(mask)
        return masks


def flat(masks, device):
    return torch.cat([mask.flatten() for mask in masks]).to(device)


def packed(masks, device):
    rows = []
    for mask in masks:
        bits = torch.zeros(-(-mask.numel() // 8) * 8, dtype=torch.uint8)
        bits[: mask.numel()] = mask.flatten()
        rows.append((bits.view(-1, 8) << torch.arange(8, dtype=torch.uint8)).sum(-1).to(torch.uint8))
    return torch.cat(rows).to(device)


def check_kinds(device, check):
    prompts, results = Prompts(device), []
    workspace = torch.empty(0, device=device)
    wrapper, (q, cache) = BatchPrefillWithPagedKVCacheWrapper(workspace), prompts.on_device
    for causal in (True, False):
        for window_left in (-1, 50):
            prompts.plan(wrapper, causal=causal, window_left=window_left)
            out, lse = wrapper.run(q, cache, return_lse=True)
            right, name = prompts.right(prompts.shown(causal, window_left)), f"causal={causal}, window_left={window_left}"
            results += [check(f"prompts, {name}", out, right[0]), check(f"their lse, {name}", lse, right[1])]
    sinks = torch.randn(HEADS, generator=prompts.generator) * 3
    out = wrapper.run(q, cache, sinks=sinks.to(device))
    results.append(check("prompts with sinks", out, prompts.right(prompts.shown(False, 50), sinks=sinks)[0]))
    stored = prompts.cache.to(torch.float8_e4m3fn)
    prompts.plan(wrapper, causal=True, kv_data_type=torch.float8_e4m3fn)
    out = wrapper.run(q, stored.to(device), sinks=sinks.to(device), v_scale=2.0)
    right = prompts.right(prompts.shown(True), stored.bfloat16(), sinks=sinks)[0]
    results.append(check("prompts with sinks over 8 bits", out, right * 2))
    k, v = (torch.cat(parts).to(device) for parts in zip(*prompts.tokens()))
    ragged = BatchPrefillWithRaggedKVCacheWrapper(workspace)
    ragged.plan(sums(COUNTS, device), sums(prompts.lengths, device), *SHAPES, causal=True, q_data_type=torch.bfloat16)
    results.append(check("ragged prompts", ragged.run(q, k, v), prompts.right(prompts.shown(True))[0]))
    decode = BatchDecodeWithPagedKVCacheWrapper(workspace)
    pages = [-(-length // PAGE) for length in prompts.lengths]
    indices = [page for row, count in zip(prompts.rows, pages) for page in row[:count]]
    last = [(length - 1) % PAGE + 1 for length in prompts.lengths]
    decode.plan(sums(pages, device), ints(indices, device), ints(last, device), *SHAPES, PAGE, q_data_type=torch.bfloat16)
    rows = [sum(COUNTS[: request + 1]) - 1 for request in range(4)]  # whose queries see all
    out = decode.run(q[rows], cache, sinks=sinks.to(device))
    results.append(check("decoding with sinks", out, prompts.right(prompts.shown(True), sinks=sinks)[0][rows]))
    return results


def for_graphs(device):
    sizes = {"qo_indptr_buf": 5, "paged_kv_indptr_buf": 5, "paged_kv_indices_buf": 200, "paged_kv_last_page_len_buf": 4}
    sizes |= {"custom_mask_buf": 1, "mask_indptr_buf": 5}
    buffers = {name: torch.zeros(size, dtype=torch.int32, device=device) for name, size in sizes.items()}
    return BatchPrefillWithPagedKVCacheWrapper(torch.empty(0, device=device), "NHD", True, **buffers)


def check_graph(device, check):
    """Captured as engines do, with a mask that says nothing; then each step has its own trees, and the last one none."""
    prompts, wrapper, results = Prompts(device), for_graphs(device), []
    q, cache = prompts.on_device
    out = torch.empty_like(q)
    is_gpu = torch.device(device).type == "cuda"
    step = lambda: wrapper.run(q, cache, out=out)
    if is_gpu:
        prompts.plan(wrapper, custom_mask=torch.ones(sum(c * n for c, n in zip(COUNTS, prompts.lengths)), dtype=torch.bool, device=device))
        step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        step = graph.replay
    for number in range(4):
        masks = prompts.trees()
        given = {"packed_custom_mask": packed(masks, device)} if number % 2 else {"custom_mask": flat(masks, device)}
        prompts.plan(wrapper, **given)
        out.zero_()
        step()
        results.append(check(f"draft trees, step {number} of a graph", out, prompts.right(masks)[0]))
        prompts.lengths = [length + 3 for length in prompts.lengths]
    masks = prompts.trees()
    masks[1][2, 5] = False
    try:
        prompts.plan(wrapper, custom_mask=flat(masks, device))
        step()
        torch.cuda.synchronize()
        prompts.plan(wrapper, custom_mask=flat(prompts.trees(), device))
        print("WRONG  a mask that hides a token of a context is not noticed")
        return [*results, False]
    except NotImplementedError as error:
        is_right = "query 2 of request 1" in str(error)
        print(f"{'ok' if is_right else 'WRONG'}  a mask that hides a token of a context: {error}")
        return [*results, is_right]


def time_masks(device):
    """What a plan with a mask costs the host, of 32 requests of 8,192 tokens with 60 drafts."""
    requests, drafts, length = 32, 60, 8192
    mask = torch.ones(requests, drafts, length, dtype=torch.bool, device=device)
    mask[:, :, length - drafts :] = torch.ones(drafts, drafts, dtype=torch.bool, device=device).tril()
    pages = length // PAGE
    given = [sums([size] * requests, "cpu") for size in (drafts, pages)]
    given += [torch.arange(requests * pages, dtype=torch.int32), ints([PAGE] * requests, "cpu")]
    wrapper = BatchPrefillWithPagedKVCacheWrapper(torch.empty(0, device=device))
    for name, more in (("with a mask", {"custom_mask": mask.flatten()}), ("causal", {"causal": True})):
        times = []
        for _ in range(20):
            torch.cuda.synchronize()
            began = time.perf_counter()
            wrapper.plan(*given, *SHAPES, PAGE, q_data_type=torch.bfloat16, **more)
            returned = time.perf_counter()
            torch.cuda.synchronize()
            times.append((returned - began, time.perf_counter() - began))
        host, whole = (1e6 * sorted(column)[len(column) // 2] for column in zip(*times))
        print(f"    a plan of 32 requests {name}: {host:.0f} us of the host, {whole:.0f} us until the GPU has it")


def check_all(device, check):
    results = check_kinds(device, check) + check_graph(device, check)
    if torch.device(device).type == "cuda":
        time_masks(device)
    return results


def main():
    device = "cpu" if "cpu" in sys.argv[1:] else "cuda"

    def check(name, out, right):
        rows_without_tokens = right.isinf()
        error = (out.double() - right.double()).masked_fill(rows_without_tokens, 0).abs().max().item()
        print(f"{'ok' if error < 0.02 else 'WRONG'}  {name}: {error:.4f}")
        return error < 0.02

    results = check_all(device, check)
    print(f"{'all' if all(results) else 'NOT ALL'} of {len(results)} are right")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
