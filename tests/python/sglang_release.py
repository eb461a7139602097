#!/usr/bin/env python3
"""Does the plug-in fit the SGLang that is installed?

Registers it, and computes prompts and steps with SGLang's own pools, layers and modes of a batch, on processors. Needs SGLang, deft
and no GPU. Prints what it saw; exit code 1 where something is not as the plug-in has it.

  python3 tests/python/sglang_release.py
"""

import importlib.metadata
import inspect
import sys
from types import SimpleNamespace

import torch
from plain_attention import plain, plain_shown
from release_checks import Checks

HEADS, KV_HEADS, DIM, PAGE, SLOTS = 4, 2, 64, 8, 512
LATENT, ROPE, LATENT_SCALE = 128, 64, 0.07
DRAFTS = 12
ROWS = [3, 1, 4]  # of the table, that requests have
see = Checks()


def registered():
    import deft.sglang
    from sglang.srt import server_args
    from sglang.srt.layers.attention.attention_registry import ATTENTION_BACKENDS

    deft.sglang.register()
    see("deft is among the attention backends", deft.sglang.NAME in ATTENTION_BACKENDS)
    see("and among the choices of --attention-backend", deft.sglang.NAME in server_args.ATTENTION_BACKEND_CHOICES)
    return ATTENTION_BACKENDS[deft.sglang.NAME]


def check_methods(backend):
    from sglang.srt.layers.attention.base_attn_backend import AttentionBackend

    for name in ("init_forward_metadata", "init_cuda_graph_state", "get_cuda_graph_seq_len_fill_value", "forward_decode", "forward_extend"):
        asked, taken = ([*inspect.signature(getattr(kind, name)).parameters] for kind in (AttentionBackend, type(backend)))
        as_it_is = [one for one in asked if one != "kwargs"]
        see(f"{name} takes {as_it_is[1:]}", as_it_is == taken[: len(as_it_is)])
    known = hasattr(AttentionBackend, "init_forward_metadata_out_graph")
    asked = inspect.signature(AttentionBackend.init_forward_metadata_out_graph).parameters if known else {}
    see(f"a graph's steps are announced with {[*asked][1:] or 'the arguments of older releases'}", [*asked][:3] in ([], ["self", "forward_batch", "in_capture"]))


class Requests:
    """Two that share a prompt and one that does not, on SGLang's tables."""

    def __init__(self, dtype, is_latent=False):
        from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool, MLATokenToKVPool, ReqToTokenPool

        self.is_latent = is_latent
        if is_latent:
            self.pool = MLATokenToKVPool(SLOTS, PAGE, dtype, LATENT, ROPE, 2, "cpu", False)
        else:
            self.pool = MHATokenToKVPool(SLOTS, PAGE, dtype, KV_HEADS, DIM, 2, "cpu", False)
        self.table = ReqToTokenPool(5, 96, "cpu", False)
        self.lengths = [0, 0, 0]
        page = 1
        for number, row in enumerate(ROWS):
            shared = 2 * PAGE if number == 1 else 0
            self.table.req_to_token[row, :shared] = self.table.req_to_token[ROWS[0], :shared]
            for first in range(shared, 6 * PAGE, PAGE):
                self.table.req_to_token[row, first : first + PAGE] = torch.arange(PAGE) + page * PAGE
                page += 1

    def runner(self, dtype, algorithm=None):
        return SimpleNamespace(
            server_args=SimpleNamespace(speculative_algorithm=algorithm, speculative_num_draft_tokens=algorithm and DRAFTS),
            use_mla_backend=self.is_latent,
            page_size=PAGE,
            dtype=torch.float16,
            kv_cache_dtype=dtype,
            device="cpu",
            token_to_kv_pool=self.pool,
            req_to_token_pool=self.table,
            max_total_num_tokens=SLOTS,
        )

    def step(self, counts, mode):
        before, self.lengths = self.lengths, [length + count for length, count in zip(self.lengths, counts)]
        self.active, self.counts = [i for i in range(3) if counts[i]], counts
        lengths = torch.tensor([self.lengths[i] for i in self.active])
        slots = [self.table.req_to_token[ROWS[i], before[i] : self.lengths[i]] for i in self.active]
        return SimpleNamespace(
            forward_mode=mode,
            batch_size=len(self.active),
            req_pool_indices=torch.tensor([ROWS[i] for i in self.active]),
            seq_lens=lengths,
            seq_lens_cpu=lengths,
            extend_seq_lens=torch.tensor([counts[i] for i in self.active]),
            extend_seq_lens_cpu=[counts[i] for i in self.active],
            out_cache_loc=torch.cat(slots).long(),
        )

    def right(self, q, layer, scales):
        """Of each query, of what the pool has."""
        first, rows = 0, []
        for i in self.active:
            slots = self.table.req_to_token[ROWS[i], : self.lengths[i]].long()
            own = [part[slots].float() * scale for part, scale in zip(self.pool.get_kv_buffer(layer.layer_id), scales)]
            seen = range(self.lengths[i] - self.counts[i] + 1, self.lengths[i] + 1)
            end = first + self.counts[i]
            rows.append(plain(q[first:end], *own, seen, window_left=layer.sliding_window_size, scale=layer.scaling)[0].float())
            first = end
        return torch.cat(rows)


def layers_of(scales):
    from sglang.srt.layers.radix_attention import RadixAttention

    made = [RadixAttention(HEADS, DIM, DIM**-0.5, KV_HEADS, 0), RadixAttention(HEADS, DIM, DIM**-0.5, KV_HEADS, 1, sliding_window_size=6)]
    if scales != (1.0, 1.0):
        for layer in made:
            layer.k_scale, layer.v_scale = map(torch.tensor, scales)
            layer.k_scale_float, layer.v_scale_float = scales
    return made


def latent_layers():
    from sglang.srt.layers.radix_attention import RadixAttention

    return [RadixAttention(HEADS, LATENT + ROPE, scale, 1, layer, v_head_dim=LATENT) for layer, scale in enumerate((LATENT_SCALE, 0.12))]


def run_layer(backend, layer, batch, is_latent):
    """q, and the output as SGLang's own code hands it on."""
    count = len(batch.out_cache_loc)
    if is_latent:
        q, k = (torch.randn(count, heads, LATENT + ROPE).half() for heads in (HEADS, 1))
        return q, backend.forward(q.flatten(1), k, k[..., :LATENT], layer, batch)
    q, k, v = (torch.randn(count, heads, DIM).half() for heads in (HEADS, KV_HEADS, KV_HEADS))
    return q, backend.forward(q.flatten(1), k, v, layer, batch)


def check_steps(make, dtype, scales, is_latent=False):
    from sglang.srt.model_executor.forward_batch_info import ForwardMode

    requests = Requests(dtype, is_latent)
    backend = make(requests.runner(dtype))
    worst = 0.0
    # A prompt, one that has its first pages, which are not computed again, another prompt, and steps of all.
    for counts, mode in (
        ([20, 0, 0], ForwardMode.EXTEND),
        ([0, 5, 7], ForwardMode.EXTEND),
        ([1, 1, 1], ForwardMode.DECODE),
        ([1, 1, 1], ForwardMode.DECODE),
    ):
        if counts[1] == 5:
            requests.lengths[1] = 2 * PAGE
        batch = requests.step(counts, mode)
        backend.init_forward_metadata(batch)
        for layer in latent_layers() if is_latent else layers_of(scales):
            q, out = run_layer(backend, layer, batch, is_latent)
            right = requests.right(q, layer, scales)
            worst = max(worst, (out.view(right.shape).float() - right).abs().max().item())
    see(f"{'latent ' * is_latent}caches of {dtype}, scales {scales}: largest error {worst:.2g}", worst < 0.02)
    return backend


def random_tree():
    """As SGLang has it: draft 0 is the root, and a parent stands before its children."""
    sees = torch.eye(DRAFTS, dtype=torch.bool)
    for draft in range(1, DRAFTS):
        sees[draft] |= sees[int(torch.randint(draft, ()))]
    return sees


def verify_inputs(backend, trees, lengths):
    """Of drafts from a corpus, with masks of whole contexts, and from a draft model, in the buffer that the backend hands out."""
    from sglang.srt.speculative.eagle_info import EagleVerifyInput
    from sglang.srt.speculative.ngram_info import NgramVerifyInput

    drafts = torch.zeros(len(trees) * DRAFTS, dtype=torch.int64)
    whole = [torch.cat([torch.ones(DRAFTS, length, dtype=torch.bool), tree], 1).flatten() for tree, length in zip(trees, lengths)]
    yield "NGRAM", NgramVerifyInput(draft_token=drafts, custom_mask=torch.cat(whole), draft_token_num=DRAFTS)
    mask = backend.verify_mask
    mask.buffer.fill_(True)
    mask.buffer[: len(drafts) * DRAFTS] = torch.stack(trees).flatten()
    see("a draft model writes what drafts see of each other alone", mask.mode.name == "QLEN_ONLY" and mask.fits(4) and not mask.fits(5))
    given = {name: None for name in ("positions", "retrieve_index", "retrieve_next_token", "retrieve_next_sibling", "retrieve_cum_len")}
    yield "EAGLE", EagleVerifyInput(
        draft_token=drafts, custom_mask=mask.buffer, spec_steps=3, topk=4, draft_token_num=DRAFTS, capture_hidden_mode=None,
        seq_lens_sum=None, seq_lens_cpu=None, **given,
    )  # fmt: skip


def check_verify(make, dtype, scales):
    """In a step that replays a graph of one request more."""
    from sglang.srt.model_executor.forward_batch_info import ForwardMode

    requests = Requests(dtype)
    backend = make(requests.runner(dtype, "NGRAM"))
    backend.init_cuda_graph_state(4, 4 * DRAFTS)
    layers, worst = layers_of(scales), 0.0
    batch = requests.step([20, 5, 7], ForwardMode.EXTEND)
    backend.init_forward_metadata(batch)
    for layer in layers:
        run_layer(backend, layer, batch, False)
    contexts, trees = list(requests.lengths), [random_tree() for _ in ROWS]
    for name, spec in verify_inputs(backend, trees, contexts):
        requests.lengths = list(contexts)
        batch = requests.step([DRAFTS] * 3, ForwardMode.TARGET_VERIFY)
        batch.batch_size, batch.spec_info = 4, spec
        batch.req_pool_indices = torch.tensor([*ROWS, 0])
        batch.seq_lens = batch.seq_lens_cpu = torch.tensor([*contexts, 1])
        batch.out_cache_loc = torch.cat([batch.out_cache_loc, torch.zeros(DRAFTS, dtype=torch.int64)])
        backend.init_forward_metadata_out_graph(batch)
        for layer in layers:
            q, out = run_layer(backend, layer, batch, False)
            for i, (tree, length) in enumerate(zip(trees, contexts)):
                slots = requests.table.req_to_token[ROWS[i], : length + DRAFTS].long()
                own = [part[slots].float() * scale for part, scale in zip(requests.pool.get_kv_buffer(layer.layer_id), scales)]
                position = torch.cat([torch.arange(length), length + tree.sum(1) - 1])
                shown = torch.cat([torch.ones(DRAFTS, length, dtype=torch.bool), tree], 1)
                if layer.sliding_window_size >= 0:
                    shown &= position >= position[length:, None] - layer.sliding_window_size
                rows = slice(i * DRAFTS, (i + 1) * DRAFTS)
                right, _ = plain_shown(q[rows], *own, shown, scale=layer.scaling)
                worst = max(worst, (out.view(q.shape)[rows].float() - right).abs().max().item())
        see(f"drafts of {name}, caches of {dtype}, scales {scales}: largest error {worst:.2g}", worst < 0.02)


def check_pages_of_trees():
    """What SGLang refuses of backends that it does not know."""
    from sglang.srt.arg_groups import speculative_hook as hook

    for name in ("_handle_ngram", "_handle_eagle_family"):
        see(f"{name} lets trees over pages pass", hasattr(getattr(hook, name), "knows_deft"))


def check_prompts():
    from sglang.srt.models.deepseek_common.attention_backend_handler import AttentionBackendRegistry, AttnForwardMethod

    form = AttentionBackendRegistry.get_handler("deft")(None, None)
    see("prompts of models with latent attention are absorbed", form == AttnForwardMethod.MLA)


def main():
    print(f"sglang {importlib.metadata.version('sglang')}, torch {torch.__version__}")
    make = registered()
    backend = check_steps(make, torch.float16, (1.0, 1.0))
    check_methods(backend)
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        for scales in ((1.0, 1.0), (0.5, 2.0)):
            check_steps(make, dtype, scales)
    for dtype, scales in ((torch.float16, (1.0, 1.0)), (torch.float8_e4m3fn, (0.5, 2.0)), (torch.float8_e5m2, (0.5, 2.0))):
        check_verify(make, dtype, scales)
    check_pages_of_trees()
    for dtype in (torch.float16, torch.float8_e4m3fn):
        check_steps(make, dtype, (1.0, 1.0), is_latent=True)
    check_prompts()
    return see.exit_code


if __name__ == "__main__":
    sys.exit(main())
