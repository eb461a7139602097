"""SGLang as the plug-in knows it, where it is not installed: modules, a pool, layers, and requests step by step."""

import importlib
from types import SimpleNamespace

import deft.sglang
import pytest
import torch
from engine_fakes import forget, install
from plain_attention import assert_close, plain


def refuse_pages_of_trees(arguments):
    """As SGLang does of backends that it does not know."""
    if arguments.speculative_num_draft_tokens is None:
        raise ValueError("speculative_num_draft_tokens is missing")
    if arguments.speculative_eagle_topk > 1 and arguments.page_size > 1:
        raise ValueError("topk > 1 with page_size > 1 is for other backends")


@pytest.fixture
def registry(monkeypatch):
    """What was registered."""
    registered = {}
    choices, forms = ["triton"], {}
    modules = {
        "sglang.srt.server_args": {"ATTENTION_BACKEND_CHOICES": choices, "add_attention_backend_choices": choices.extend},
        "sglang.srt.layers.attention.attention_registry": {
            "register_attention_backend": lambda name: lambda make: registered.__setitem__(name, make)
        },
        "sglang.srt.layers.attention.base_attn_backend": {"AttentionBackend": object},
        "sglang.srt.models.deepseek_common.attention_backend_handler": {
            "AttentionBackendRegistry": SimpleNamespace(register=forms.__setitem__),
            "AttnForwardMethod": SimpleNamespace(MLA="absorbed"),
        },
        "sglang.srt.layers.attention.verify_mask": {"VerifyMask": SimpleNamespace},
        "sglang.srt.speculative.eagle_utils": {"TreeMaskMode": SimpleNamespace(FULL_MASK=0, QLEN_ONLY=1)},
        "sglang.srt.arg_groups.speculative_hook": {"_handle_ngram": refuse_pages_of_trees, "_handle_eagle_family": refuse_pages_of_trees},
    }
    install(monkeypatch, "sglang", "0.5.17", modules)
    forget(monkeypatch, "deft.sglang.backend")
    yield SimpleNamespace(made=registered, choices=choices, forms=forms)
    forget(monkeypatch, "deft.sglang.backend")


def mode(name):
    return SimpleNamespace(
        is_decode_or_idle=lambda: name in ("decode", "idle"),
        is_idle=lambda: name == "idle",
        is_target_verify=lambda: name == "verify",
    )


class Pool:
    """A slot for each token, of two layers."""

    def __init__(self, slots, dtype=torch.float16):
        self.dtype = dtype
        self.buffers = [[torch.zeros(slots, 2, 64, dtype=dtype) for _ in range(2)] for _ in range(2)]

    def get_kv_buffer(self, layer):
        return self.buffers[layer]

    def set_kv_buffer(self, layer, slots, k, v, k_scale=None, v_scale=None):
        for buffer, new, scale in zip(self.buffers[layer.layer_id], (k, v), (k_scale, v_scale)):
            buffer[slots] = (new if scale is None else new / scale).to(self.dtype)


def layer(number, **more):
    given = dict(
        layer_id=number, tp_q_head_num=4, tp_k_head_num=2, qk_head_dim=64, v_head_dim=64, scaling=0.125, logit_cap=0.0,
        logit_capping_method="tanh", sliding_window_size=-1, is_cross_attention=False, attn_type="decoder", k_scale=None,
        v_scale=None,
    )  # fmt: skip
    return SimpleNamespace(**{**given, **more})


def runner(page_size, **more):
    given = dict(
        server_args=SimpleNamespace(speculative_algorithm=None, speculative_num_draft_tokens=None),
        use_mla_backend=False,
        page_size=page_size,
        dtype=torch.float16,
        kv_cache_dtype=torch.float16,
        device="cpu",
        token_to_kv_pool=Pool(512),
        req_to_token_pool=SimpleNamespace(req_to_token=torch.zeros(5, 96, dtype=torch.int32)),
        max_total_num_tokens=512,
        forward=lambda batch, plan: plan(batch),
    )
    return SimpleNamespace(**{**given, **more})


def make(page_size, **more):
    """The backend, and what it was made for."""
    deft.sglang.register()
    made = runner(page_size, **more)
    return importlib.import_module("deft.sglang")._make(made), made


LAYERS = [layer(0), layer(1, sliding_window_size=6, logit_cap=4.0)]


class Requests:
    """Two that share a prompt and one that does not, in rows 3, 1 and 4 of the table."""

    rows = [3, 1, 4]

    def __init__(self, made, page_size):
        self.made, self.page_size = made, page_size
        self.lengths = [0, 0, 0]
        page = 1
        for number, row in enumerate(self.rows):
            shared = 2 * 8 if number == 1 else 0
            table = made.req_to_token_pool.req_to_token
            table[row, :shared] = table[self.rows[0], :shared]
            for first in range(shared, 48, page_size):
                table[row, first : first + page_size] = torch.arange(page_size) + page * page_size
                page += 1

    def step(self, counts, generator, kind, form=None):
        before, self.lengths = self.lengths, [length + count for length, count in zip(self.lengths, counts)]
        active = [i for i in range(3) if counts[i]]
        table = self.made.req_to_token_pool.req_to_token
        slots = torch.cat([table[self.rows[i], before[i] : self.lengths[i]] for i in active]).long()
        lengths = torch.tensor([self.lengths[i] for i in active])
        self.active, self.counts = active, counts
        return SimpleNamespace(
            forward_mode=mode(kind),
            batch_size=len(active),
            req_pool_indices=torch.tensor([self.rows[i] for i in active]),
            seq_lens=lengths,
            seq_lens_cpu=lengths if form != "on the device alone" else None,
            extend_seq_lens=torch.tensor([counts[i] for i in active]),
            extend_seq_lens_cpu=[counts[i] for i in active] if form != "on the device alone" else None,
            out_cache_loc=slots,
        )

    def slots(self):
        """Of each request of the step: those of its tokens, and how many of the first each query sees."""
        table = self.made.req_to_token_pool.req_to_token
        for i in self.active:
            yield table[self.rows[i], : self.lengths[i]].long(), range(self.lengths[i] - self.counts[i] + 1, self.lengths[i] + 1)

    def check(self, backend, batch, generator, forward, layers=LAYERS, sinks=None):
        """`sinks`: of each layer."""
        for number, one in enumerate(layers):
            q, k, v = (torch.randn(len(batch.out_cache_loc), heads, 64, generator=generator).half() for heads in (4, 2, 2))
            more = {} if sinks is None else {"sinks": sinks[number]}
            out = forward(q.flatten(1), k, v, one, batch, **more).view(-1, 4, 64)
            first = 0
            for slots, seen in self.slots():
                pool, scales = self.made.token_to_kv_pool, (one.k_scale, one.v_scale)
                own = [
                    buffer[slots] if pool.dtype == torch.float16 else buffer[slots].float() * (1 if scale is None else scale)
                    for buffer, scale in zip(pool.get_kv_buffer(one.layer_id), scales)
                ]
                end = first + len(seen)
                right, _ = plain(q[first:end], *own, seen, soft_cap=one.logit_cap, window_left=one.sliding_window_size, **more)
                assert_close(out[first:end], right)
                first = end
