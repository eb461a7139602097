from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

import deft.vllm
from plain_attention import assert_close, packed, plain
from vllm_fakes import PAGE, common, config_of, ints, registry  # noqa: F401

HEADS, LATENT, ROPE, SCALE = 4, 512, 64, 0.072
PAGES = 10
ROWS = [3, 1, 2], [3, 1, 7], [5]  # the first two share a prompt
CACHES = {"auto": torch.bfloat16, "fp8": torch.uint8, "fp8_e4m3": torch.uint8, "fp8_ds_mla": torch.uint8}


class Engine:
    """Two layers of a model with latent attention, as vLLM holds them."""

    def __init__(self, kept="auto", rope=ROPE, dtype=torch.bfloat16):
        from deft.vllm.mla import DeftMLABackend

        self.backend, self.kept = DeftMLABackend, kept
        self.layers = {f"layer{i}": self.layer(kept, rope, 0.5 + i) for i in range(2)}
        config = config_of(self.layers)
        config.model_config.dtype = dtype
        spec = SimpleNamespace(block_size=PAGE, dtype=CACHES[kept])
        self.builder = self.backend.get_builder_cls()(spec, list(self.layers), config, torch.device("cpu"))
        shape = self.backend.get_kv_cache_shape(PAGES, PAGE, 1, LATENT + ROPE, kept)
        self.caches = [torch.zeros(shape, dtype=CACHES[kept]) for _ in self.layers]
        self.meant = [torch.zeros(PAGES, PAGE, LATENT + ROPE) for _ in self.layers]  # what stands in the caches, as numbers

    def layer(self, kept, rope, k_scale):
        impl = self.backend.get_impl_cls()(
            num_heads=HEADS, head_size=LATENT + rope, scale=SCALE, num_kv_heads=1, alibi_slopes=None, sliding_window=None,
            kv_cache_dtype=kept, logits_soft_cap=None, attn_type="decoder", kv_sharing_target_layer_name=None, q_lora_rank=None,
            kv_lora_rank=LATENT, qk_nope_head_dim=128, qk_rope_head_dim=rope, qk_head_dim=128 + rope, v_head_dim=128,
            kv_b_proj=None, indexer=None,
        )  # fmt: skip
        return SimpleNamespace(impl=impl, _k_scale_float=k_scale)

    def write(self, layer, tokens, slots):
        """As vLLM's concat_and_cache_mla."""
        at = (slots // PAGE, slots % PAGE)
        if self.kept == "auto":
            kept = meant = tokens
        elif self.kept == "fp8_ds_mla":
            kept, meant = packed(tokens)
        else:
            scale = self.layers[f"layer{layer}"]._k_scale_float
            numbers = (tokens / scale).to(torch.float8_e4m3fn)
            kept, meant = numbers.view(torch.uint8), numbers.float() * scale
        self.caches[layer][at], self.meant[layer][at] = kept, meant.float()

    def cache(self, layer):
        """As MLAAttention.forward_impl hands it over."""
        is_viewed = self.kept in ("fp8", "fp8_e4m3")
        return self.caches[layer].view(torch.float8_e4m3fn) if is_viewed else self.caches[layer]


def parts_of(tokens, generator):
    """q as MLAAttention.forward_impl hands it over: heads first, projected, and the view of a row's rotated end."""
    projected = torch.randn(HEADS, tokens, LATENT, generator=generator).bfloat16().transpose(0, 1)
    rotated = torch.randn(tokens, HEADS, 128 + ROPE, generator=generator).bfloat16()[..., 128:]
    return projected, rotated


@pytest.fixture
def table():
    filled = torch.full((4, 8), -1, dtype=torch.int32)
    for row, pages in enumerate(ROWS):
        filled[row, : len(pages)] = ints(pages)
    return filled


def check_layer(engine, layer, metadata, table, lengths, counts, generator):
    """One layer's decoding, in float64."""
    q = parts_of(metadata.num_decode_tokens, generator)
    before = [part.clone() for part in q]
    held = engine.layers[f"layer{layer}"]
    out, lse = held.impl.forward_mqa(q, engine.cache(layer), metadata, held)
    assert out.shape == (metadata.num_decode_tokens, HEADS, LATENT) and lse is None
    assert all(torch.equal(*both) for both in zip(q, before))
    first, whole = 0, torch.cat(q, -1)
    for row, length, count in zip(table, lengths, counts):
        k = engine.meant[layer][row[: -(-length // PAGE)].long()].reshape(-1, 1, LATENT + ROPE)[:length]
        seen = range(length - count + 1, length + 1)
        right, _ = plain(whole[first : first + count], k, k[..., :LATENT], seen, scale=SCALE)
        assert_close(out[first : first + count], right)
        first += count


@pytest.mark.parametrize("kept", CACHES)
def test_prompts_appends_decoding_and_drafts_are_the_attention_of_each_request(registry, table, kept):
    engine = Engine(kept)
    engine.builder.reorder_batch_threshold = 512  # prompts run here, too, as drafts do over any cache
    generator = torch.Generator().manual_seed(11)
    lengths = [0, 0, 0]
    for captured in ([1] * 4, [1] * 4), ([2] * 3, [2] * 3):
        engine.builder.build_for_cudagraph_capture(common(torch.ones(4, 8, dtype=torch.int32), *captured))
    # A prompt that two share, the rest of their own, decoding, the same with padding, chains of drafts in a graph and of none.
    for counts, padded in ([40, 0, 0], 0), ([0, 37, 9], 0), ([1, 1, 1], 0), ([1, 1, 1], 1), ([2, 2, 2], 0), ([3, 1, 1], 0):
        rows = [row for row in range(3) if counts[row]]
        for layer in range(2):
            for row in rows:
                tokens = torch.randn(counts[row], LATENT + ROPE, generator=generator).bfloat16()
                places = range(lengths[row], lengths[row] + counts[row])
                slots = torch.tensor([int(table[row, place // PAGE]) * PAGE + place % PAGE for place in places])
                own = slots >= 0 if counts != [0, 37, 9] or row != 1 else slots // PAGE == 7  # shared pages stay
                engine.write(layer, tokens[own], slots[own])
        lengths = [length + count for length, count in zip(lengths, counts)]
        step = common(table[rows], [lengths[row] for row in rows], [counts[row] for row in rows], padded=padded)
        metadata = engine.builder.build(0, step)
        is_of_graph = metadata.planned.steps in engine.builder._planner._of_graphs.values()
        assert is_of_graph == (padded == 1 or counts == [2, 2, 2])
        for layer in range(2):
            check_layer(engine, layer, metadata, table[rows], [lengths[row] for row in rows], [counts[row] for row in rows], generator)


def test_long_prompts_are_left_to_vllm(registry, table):
    """Behind the requests that run here, which are planned without them."""
    engine = Engine()
    engine.builder.reorder_batch_threshold = 4
    generator = torch.Generator().manual_seed(3)
    for layer in range(2):
        slots = torch.arange(PAGES * PAGE)
        engine.write(layer, torch.randn(len(slots), LATENT + ROPE, generator=generator).bfloat16(), slots)
    metadata = engine.builder.build(0, common(table[:3], [40, 37, 9], [1, 4, 9]))
    assert (metadata.num_decode_tokens, metadata.num_prefills, metadata.planned.queries) == (5, 1, 5)
    for layer in range(2):
        check_layer(engine, layer, metadata, table[:2], [40, 37], [1, 4], generator)
    alone = engine.builder.build(0, common(table[2:3], [9], [9]))
    assert alone.num_prefills == 1 and alone.planned is None


def test_requests_that_share_pages_read_them_once(registry, table):
    engine = Engine()
    planned = engine.builder.build(0, common(table[:2], [40, 37], [1, 1])).planned
    [of_layers] = planned.steps._planned.values()  # one variant for both
    assert of_layers._batch.sharing() == (2, 77, 77 - 2 * PAGE)


def test_what_it_can_do_is_told_truly(registry):
    from engine_fakes import Support

    engine = Engine()
    backend = engine.backend
    assert backend.is_mla() and backend.get_name() == "CUSTOM" and backend.supports_head_size(576)
    assert [*CACHES] == [kept for kept in backend.supported_kv_cache_dtypes if kept not in ("float16", "bfloat16")]
    asked = "sliding_window sink mm_prefix non_causal per_head_quant_scales batch_invariance kv_connector".split()
    assert not any(getattr(backend, f"supports_{what}")() for what in asked) and not backend.supports_head_size(128)
    impl = backend.get_impl_cls()
    assert not impl.supports_pcp and not engine.layers["layer0"].impl.supports_quant_query_input
    assert engine.builder._cudagraph_support is Support.UNIFORM_BATCH


def test_products_of_8_bits_are_not_of_latent_caches(registry, monkeypatch):
    asked = SimpleNamespace(additional_config={"deft": {"products": "fp8_e4m3"}})
    monkeypatch.setattr("vllm.config.get_current_vllm_config_or_none", lambda: asked)
    with pytest.raises(NotImplementedError, match="products='fp8_e4m3' is not supported here: a latent cache"):
        Engine("fp8")


@pytest.mark.parametrize(
    "given, message",
    [
        ({"kept": "fp8_e5m2"}, "kv_cache_dtype='fp8_e5m2' is not supported here: .*it is one of auto, "),
        ({"rope": 0}, "head_dim_kpe=0 is not supported here: .*from 16 to 128"),
        ({"kept": "fp8_ds_mla", "dtype": torch.float16}, "kv_cache_dtype='fp8_ds_mla' is not supported here: .*the model's are torch.float16"),
    ],
)
def test_what_it_cannot_is_named_before_the_first_step(registry, given, message):
    with pytest.raises(NotImplementedError, match=message):
        Engine(**given)


@pytest.mark.parametrize("kept", CACHES)
def test_tokens_of_a_prompt_are_multiplied_in_16_bits(registry, kept):
    assert Engine(kept).builder.reorder_batch_threshold == (512 if kept == "auto" else 1)
