from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from plain_attention import assert_close, plain
from sglang_fakes import Requests, layer, make, mode, registry  # noqa: F401

HEADS, LATENT, ROPE, SCALE = 4, 64, 16, 0.11


class Pool:
    """A slot for each token, of two layers, as SGLang's MLATokenToKVPool."""

    def __init__(self, slots, dtype=torch.bfloat16):
        self.dtype = dtype
        self.buffers = [torch.zeros(slots, 1, LATENT + ROPE, dtype=dtype) for _ in range(2)]

    def get_key_buffer(self, layer):
        return self.buffers[layer]

    def set_kv_buffer(self, layer, slots, k, v):
        self.buffers[layer.layer_id][slots] = k.to(self.dtype)

    def set_mla_kv_buffer(self, layer, slots, k_nope, k_rope):
        self.set_kv_buffer(layer, slots, torch.cat([k_nope, k_rope], -1), None)


def latent_layer(number, **more):
    given = {"qk_head_dim": LATENT + ROPE, "v_head_dim": LATENT, "tp_q_head_num": HEADS, "tp_k_head_num": 1, "scaling": SCALE}
    return layer(number, **{**given, **more})


LAYERS = [latent_layer(0), latent_layer(1, scaling=2 * SCALE)]


def make_latent(page_size, dtype=torch.bfloat16):
    pool = Pool(512, dtype)
    return make(page_size, use_mla_backend=True, dtype=torch.bfloat16, kv_cache_dtype=dtype, token_to_kv_pool=pool)


def check(requests, backend, batch, generator, forward, in_parts=False):
    """Each layer of a step, in float64."""
    for one in LAYERS:
        count, dims = len(batch.out_cache_loc), [LATENT, ROPE]
        q = torch.randn(HEADS, count, LATENT + ROPE, generator=generator).bfloat16().transpose(0, 1)  # as products have it
        k = torch.randn(count, 1, LATENT + ROPE, generator=generator).bfloat16()
        if in_parts:
            (q_nope, q_rope), (k_nope, k_rope) = q.split(dims, -1), k.split(dims, -1)
            out = forward(q_nope, k_nope, k_nope, one, batch, q_rope=q_rope, k_rope=k_rope)
        else:
            out = forward(q.reshape(count, -1), k, k[..., :LATENT], one, batch)
        assert out.shape == (count, HEADS * LATENT)
        first, pool = 0, requests.made.token_to_kv_pool
        for slots, seen in requests.slots():
            own = pool.get_key_buffer(one.layer_id)[slots].float()
            right, _ = plain(q[first : first + len(seen)], own, own[..., :LATENT], seen, scale=one.scaling)
            assert_close(out.view(count, HEADS, LATENT)[first : first + len(seen)], right)
            first += len(seen)


@pytest.mark.parametrize("page_size", [1, 8])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn])
@pytest.mark.parametrize("in_parts", [False, True])
def test_prompts_and_decoding(registry, page_size, dtype, in_parts):
    backend, made = make_latent(page_size, dtype)
    generator = torch.Generator().manual_seed(13)
    requests = Requests(made, page_size)
    for counts, kind in ([20, 0, 0], "extend"), ([0, 0, 7], "extend"), ([0, 5, 0], "extend"), ([1, 1, 1], "decode"), ([1, 1, 1], "decode"):
        if counts == [0, 5, 0]:  # the prompt that is shared is not computed again
            requests.lengths[1] = 16
        batch = requests.step(counts, generator, kind)
        backend.init_forward_metadata(batch)
        check(requests, backend, batch, generator, getattr(backend, f"forward_{kind}"), in_parts)
    (planned, _) = backend._steps._planned.values()
    assert planned._batch.sharing().tokens == sum(requests.lengths) - 16


def test_steps_of_a_graph(registry):
    backend, made = make_latent(8)
    generator = torch.Generator().manual_seed(17)
    requests = Requests(made, 8)
    batch = requests.step([17, 17, 9], generator, "extend")
    backend.init_forward_metadata(batch)
    check(requests, backend, batch, generator, backend.forward_extend)
    backend.init_cuda_graph_state(4, 4)
    for number in range(3):
        batch = requests.step([1, 1, 1], generator, "decode")
        backend.init_forward_metadata_out_graph(batch, in_capture=number == 0)
        check(requests, backend, batch, generator, backend.forward_decode)


def test_prompts_stay_latent(registry):
    """SGLang asks which form a backend's prompts have, by its name."""
    make(8)
    assert not registry.forms
    make_latent(8)
    assert registry.forms["deft"](None, None) == "absorbed"


def test_what_it_cannot_do_is_named(registry):
    from deft.sglang.planner import latent_variant_of

    for name, value in {"tp_k_head_num": 4, "logit_cap": 3.0, "sliding_window_size": 7, "is_cross_attention": True}.items():
        told = "num_kv_heads" if name == "tp_k_head_num" else name
        with pytest.raises(NotImplementedError, match=told):
            latent_variant_of(latent_layer(0, **{name: value}), 8, torch.bfloat16, torch.bfloat16)
    backend, made = make_latent(8)
    batch = Requests(made, 8).step([3, 0, 0], None, "extend")
    backend.init_forward_metadata(batch)
    q = torch.zeros(3, HEADS * (LATENT + ROPE)).bfloat16()
    with pytest.raises(NotImplementedError, match="topk_indices"):
        backend.forward_extend(q, None, None, LAYERS[0], batch, topk_indices=torch.zeros(3, 4))
    made.token_to_kv_pool.buffers[0] = torch.zeros(512, 1, 104).bfloat16()
    with pytest.raises(NotImplementedError, match=r"kv_cache_layout=\(512, 1, 104\)"):
        backend.forward_extend(q, None, None, LAYERS[0], batch)
    with pytest.raises(NotImplementedError, match="speculative_algorithm"):
        make(8, use_mla_backend=True, server_args=SimpleNamespace(speculative_algorithm="EAGLE"))
    backend.init_forward_metadata(SimpleNamespace(forward_mode=mode("idle")))
