"""vLLM's decode context parallelism: what two and three ranks find over their tokens, merged, is the attention of whole requests."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from context_fakes import Group, merged, merged_by_exchange, slot_of
from engine_fakes import install
from plain_attention import assert_close, packed, plain
from vllm_fakes import IN_BYTES, PAGE, common, config_of, ints, registry  # noqa: F401

HEADS, DIM, LATENT, ROPE, PAGES = 2, 64, 512, 64, 10  # heads of a rank
ROWS = [3, 1, 2, 4], [3, 1, 7, 6], [5, 0, 8, 9]  # the first two share what is in their first two pages
LATENT_BYTES = {"fp8": torch.float8_e4m3fn, "fp8_ds_mla": None}


@pytest.fixture
def table():
    return ints([[*row, -1] for row in ROWS])


class Engine:
    """Each rank's builder and layer of one model, and what stands in the caches, as numbers of whole requests."""

    def __init__(self, monkeypatch, count=2, unit=1, kept="auto", exchange="ag_rs", is_latent=False, has_sinks=False, more=None):
        self.count, self.unit, self.kept, self.is_latent = count, unit, kept, is_latent
        self.group = Group(count)
        install(monkeypatch, "vllm", "0.26.0", {
            "vllm.distributed": {"get_dcp_group": lambda: self.group},
            "vllm.v1.attention.ops.common": {"cp_lse_ag_out_rs": merged},
            "vllm.v1.attention.ops.dcp_alltoall": {"dcp_a2a_lse_reduce": merged_by_exchange},
        })  # fmt: skip
        self.sinks = torch.randn(count, HEADS, generator=torch.Generator().manual_seed(5)).bfloat16() if has_sinks else None
        self.config = config_of({})
        self.config.parallel_config = SimpleNamespace(
            decode_context_parallel_size=count, cp_kv_cache_interleave_size=unit, dcp_comm_backend=exchange
        )
        self.config.additional_config = more or {}
        monkeypatch.setattr("vllm.config.get_current_vllm_config_or_none", lambda: self.config)
        self.layers = self.group.run(self.layer)
        self.builders = self.group.run(self.builder)
        shape, dtype = (PAGES, PAGE, LATENT + ROPE) if is_latent else (PAGES, 1, PAGE, 2 * DIM), torch.bfloat16
        if kept == "fp8_ds_mla":
            shape = (PAGES, PAGE, 656)
        self.caches = [torch.zeros(shape, dtype=dtype if kept == "auto" else torch.uint8) for _ in range(count)]

    def layer(self, rank):
        if self.is_latent:
            from deft.vllm.mla import DeftMLAImpl

            impl = DeftMLAImpl(
                num_heads=HEADS, head_size=LATENT + ROPE, scale=0.072, num_kv_heads=1, alibi_slopes=None, sliding_window=None,
                kv_cache_dtype=self.kept, logits_soft_cap=None, attn_type="decoder", kv_sharing_target_layer_name=None,
                q_lora_rank=None, kv_lora_rank=LATENT, qk_nope_head_dim=128, qk_rope_head_dim=ROPE, qk_head_dim=128 + ROPE,
                v_head_dim=128, kv_b_proj=None, indexer=None,
            )  # fmt: skip
        else:
            from deft.vllm.backend import DeftImpl

            sinks = None if self.sinks is None else self.sinks[rank]
            impl = DeftImpl(HEADS, DIM, 0.125, 1, kv_cache_dtype=self.kept, sinks=sinks, logits_soft_cap=5.0)
            impl.process_weights_after_loading(torch.bfloat16)
        scales = {"_k_scale": torch.tensor(0.5), "_v_scale": torch.tensor(0.25), "_k_scale_float": 0.5, "_v_scale_float": 0.25}
        return SimpleNamespace(impl=impl, _q_scale_float=0.125, **scales)

    def builder(self, rank):
        from deft.vllm.backend import DeftMetadataBuilder
        from deft.vllm.mla import DeftMLAMetadataBuilder

        config = config_of({"layer": self.layers[rank]})
        config.parallel_config = self.config.parallel_config
        spec = SimpleNamespace(block_size=PAGE, dtype=torch.bfloat16 if self.kept == "auto" else torch.uint8)
        made = DeftMLAMetadataBuilder if self.is_latent else DeftMetadataBuilder
        return made(spec, ["layer"], config, torch.device("cpu"))

    def capture(self, lengths, counts):
        step = common(torch.ones(len(lengths), 5, dtype=torch.int32), lengths, counts)
        self.group.run(lambda rank: self.builders[rank].build_for_cudagraph_capture(step))

    def write(self, pages, first, tokens):
        """K and V of tokens from `first` on, [tokens, 1, elements]; what shared pages hold already stays."""
        for token, new in enumerate(tokens, first):
            rank, slot = slot_of(pages, token, PAGE, self.count, self.unit)
            if self.is_latent:
                if self.kept == "fp8":
                    new = (new / 0.5).to(LATENT_BYTES["fp8"]).view(torch.uint8)
                elif self.kept == "fp8_ds_mla":
                    new = packed(new)[0]
                self.caches[rank][slot // PAGE, slot % PAGE] = new[0]
                continue
            layer = self.layers[rank]
            layer.impl.do_kv_cache_update(layer, new[None, :, :DIM], new[None, :, DIM:], self.caches[rank], ints([slot]))

    def read(self, pages, length):
        """K and V of a request, as numbers."""
        found = [slot_of(pages, token, PAGE, self.count, self.unit) for token in range(length)]
        if not self.is_latent:
            parts = [layer.impl._caches(cache) for layer, cache in zip(self.layers, self.caches)]
            rows = [torch.stack([parts[rank][i][slot // PAGE, slot % PAGE] for rank, slot in found]) for i in range(2)]
            if self.kept == "auto":
                return rows
            return [row.view(IN_BYTES[self.kept]).float() * scale for row, scale in zip(rows, (0.5, 0.25))]
        rows = torch.stack([self.caches[rank][slot // PAGE, slot % PAGE] for rank, slot in found])[:, None]
        if self.kept == "fp8":
            rows = rows.view(LATENT_BYTES["fp8"]).float() * 0.5
        elif self.kept == "fp8_ds_mla":
            numbers, scales = rows[..., :512].contiguous().view(torch.float8_e4m3fn).float(), rows[..., 512:528].contiguous().view(torch.float32)
            meant = (numbers.unflatten(-1, (4, 128)) * scales[..., None]).flatten(-2).bfloat16()
            rows = torch.cat([meant, rows[..., 528:].contiguous().view(torch.bfloat16)], -1)
        return rows, rows[..., :LATENT]

    def forward(self, step, q):
        """`q` of all ranks' heads. Each rank's output, and whether its plan was one of a graph."""
        given = q.chunk(self.count, 1)

        def work(rank):
            layer, builder, cache = self.layers[rank], self.builders[rank], self.caches[rank]
            metadata = builder.build(0, step)
            if not self.is_latent:
                output = torch.full((step.num_actual_tokens, HEADS * DIM), 7.0, dtype=torch.bfloat16)
                layer.impl.forward(layer, given[rank], None, None, cache, metadata, output)
                return output.view(-1, HEADS, DIM), metadata.steps in builder._planner._of_graphs.values()
            kept = cache.view(torch.float8_e4m3fn) if self.kept == "fp8" else cache
            gathered = self.group.all_gather(given[rank].contiguous(), dim=1)  # as MLAAttention.forward_impl does
            out, lse = layer.impl.forward_mqa(gathered, kept, metadata, layer)
            return merged(out, lse, self.group), metadata.planned.steps in builder._planner._of_graphs.values()

        return self.group.run(work)


def check(engine, table, steps):
    """`steps`: how many queries each request has, and rows of padding behind them; of both the graphs that there are."""
    generator = torch.Generator().manual_seed(11)
    width, lengths = (LATENT + ROPE, [0, 0, 0]) if engine.is_latent else (2 * DIM, [0, 0, 0])
    shared = 2 * PAGE * engine.count
    for counts, padded, is_graph in steps:
        rows = [row for row in range(3) if counts[row]]
        for row in rows:
            new = torch.randn(counts[row], 1, width, generator=generator).bfloat16()
            own = shared if row == 1 and lengths[row] == 0 else 0
            engine.write(table[row], lengths[row] + own, new[own:])
            lengths[row] += counts[row]
        step = common(table[rows], [lengths[row] for row in rows], [counts[row] for row in rows], padded=padded)
        q = torch.randn(step.num_actual_tokens, HEADS * engine.count, LATENT + ROPE if engine.is_latent else DIM, generator=generator).bfloat16()
        found = engine.forward(step, q)
        assert [was_graph for _, was_graph in found] == [is_graph] * engine.count
        out, first = torch.cat([one for one, _ in found], 1), 0
        sinks = None if engine.sinks is None else engine.sinks.flatten()
        options = {"scale": 0.072} if engine.is_latent else {"soft_cap": 5.0, "sinks": sinks}
        for row in rows:
            end = first + counts[row]
            seen = range(lengths[row] - counts[row] + 1, lengths[row] + 1)
            right, _ = plain(q[first:end], *engine.read(table[row], lengths[row]), seen, **options)
            assert_close(out[first:end], right)
            first = end
        if not engine.is_latent:
            assert (out[first:] == 7).all()


STEPS = [
    ([70, 0, 0], 0, False),  # a prompt
    ([0, 67, 3], 0, False),  # which another one shares
    ([1, 1, 1], 0, False),
    ([1, 1, 1], 1, True),  # padded to a graph's requests
    ([1, 1, 1], 1, True),
    ([3, 3, 3], 0, True),  # with two drafts each
    ([3, 1, 2], 0, False),
]


def of_three(steps):
    """Pages of three ranks hold more."""
    return [([100, 0, 0], 0, False), ([0, 99, 3], 0, False), *steps[2:]]


@pytest.mark.parametrize(
    "given",
    [
        {"unit": 1}, {"unit": 16}, {"unit": 4, "kept": "fp8"}, {"unit": 1, "kept": "fp8_e5m2"}, {"unit": 2, "has_sinks": True},
        {"unit": 8, "exchange": "a2a"}, {"unit": 1, "count": 3}, {"unit": 16, "count": 3, "kept": "fp8", "has_sinks": True},
    ],
    ids=str,
)  # fmt: skip
def test_what_ranks_find_over_their_tokens_is_the_attention_of_each_request(registry, monkeypatch, table, given):
    engine = Engine(monkeypatch, **given)
    engine.capture([1] * 4, [1] * 4)
    engine.capture([3] * 3, [3] * 3)
    check(engine, table, STEPS if engine.count == 2 else of_three(STEPS))


@pytest.mark.parametrize("given", [{"unit": 1}, {"unit": 16, "kept": "fp8"}, {"unit": 2, "kept": "fp8_ds_mla"}, {"unit": 1, "count": 3}], ids=str)
def test_of_latent_caches_too(registry, monkeypatch, table, given):
    engine = Engine(monkeypatch, is_latent=True, **given)
    for builder in engine.builders:
        builder.reorder_batch_threshold = 512  # prompts run here, too, as drafts do over any cache
    engine.capture([1] * 4, [1] * 4)
    engine.capture([3] * 3, [3] * 3)
    check(engine, table, STEPS if engine.count == 2 else of_three(STEPS))


def test_each_rank_reads_a_shared_page_once(registry, monkeypatch, table):
    engine = Engine(monkeypatch)
    step = common(table[:2], [70, 67], [1, 1])
    for rank, metadata in enumerate(engine.group.run(lambda rank: engine.builders[rank].build(0, step))):
        [of_layer] = metadata.steps._planned.values()
        batch = of_layer._batch
        assert batch.sharing() == (2, 137, 137 - 4 * PAGE)  # of all ranks
        own = [sum(1 for token in range(length) if slot_of(table[row], token, PAGE, 2, 1)[0] == rank) for row, length in ((0, 70), (1, 67))]
        assert batch.summary().tokens_read in (sum(own), sum(own) - 2 * PAGE)  # of this one; so small a tree may be read by path


def test_a_rank_that_has_no_token_of_a_request_changes_nothing(registry, monkeypatch, table):
    engine = Engine(monkeypatch, unit=16)  # 16 tokens lie on one
    check(engine, table, [([5, 0, 0], 0, False), ([1, 0, 16], 0, False), ([1, 0, 1], 0, False)])


def test_backends_say_that_they_give_lse_and_know_positions(registry, monkeypatch):
    engine = Engine(monkeypatch)
    from deft.vllm.mla import DeftMLAImpl

    for impl in (type(engine.layers[0].impl), DeftMLAImpl):
        assert impl.supports_dcp and impl.can_return_lse_for_decode and impl.supports_mtp_with_cp_non_trivial_interleave_size


def test_what_ranks_cannot_is_named(registry, monkeypatch):
    with pytest.raises(NotImplementedError, match="cp_kv_cache_interleave_size=3 is not supported here: it divides the 16 tokens"):
        Engine(monkeypatch, unit=3)
    with pytest.raises(NotImplementedError, match="dcp_comm_backend='ring' is not supported here: it is one of ag_rs, a2a"):
        Engine(monkeypatch, exchange="ring")
    from deft.vllm.backend import DeftImpl

    Engine(monkeypatch)
    with pytest.raises(NotImplementedError, match="num_kv_heads=2 is not supported here: with context parallelism"):
        DeftImpl(4, DIM, 0.125, 2)
    monkeypatch.delattr("vllm.v1.attention.ops.common.cp_lse_ag_out_rs")
    with pytest.raises(NotImplementedError, match="decode_context_parallel_size=2 is not .* no vllm.v1.attention.ops.common.cp_lse_ag_out_rs"):
        DeftImpl(2, DIM, 0.125, 1)
