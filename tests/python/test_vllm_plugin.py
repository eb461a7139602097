import json
import logging
from array import array
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import deft
import deft.vllm
from deft._adapters.steps import Room
from deft.vllm.host_tables import Known
from deft.vllm.planner import Planner, Tables, work_of
from deftc_program import deftc
from engine_fakes import Support
from plain_attention import assert_close, pages_of, plain
from vllm_fakes import IN_BYTES, PAGE, Engine, common, ints, registry  # noqa: F401


def test_it_registers_itself_once_and_says_which_release_it_was_seen_with(registry, caplog):
    with caplog.at_level(logging.INFO):
        deft.vllm.register()
        deft.vllm.register()
    assert list(registry.values()) == ["deft.vllm.Backend"]
    assert "CUSTOM is deft, which was tested on a GPU with vLLM 0.26" in caplog.text


def test_with_a_release_that_it_was_not_seen_with_it_says_that_it_is_experimental(registry, monkeypatch, caplog):
    monkeypatch.setattr("deft._adapters.releases.version", lambda package: "0.24.1")
    with caplog.at_level(logging.INFO):
        deft.vllm.register()
    assert "which is experimental: it was tested on a GPU with vLLM 0.26, not with 0.24.1" in caplog.text


def test_it_leaves_another_backend_in_its_place(registry, caplog):
    from vllm.v1.attention.backends.registry import AttentionBackendEnum

    registry[AttentionBackendEnum.CUSTOM] = "other.Backend"
    deft.vllm.register()
    assert list(registry.values()) == ["other.Backend"] and "other.Backend already" in caplog.text


@pytest.mark.parametrize("version", ["0.21.3", "0.34.0", "1.0.0"])
def test_releases_that_it_was_not_written_for_are_left_alone(registry, monkeypatch, caplog, version):
    monkeypatch.setattr("deft._adapters.releases.version", lambda package: version)
    deft.vllm.register()
    assert not registry and f"it supports 0.22 to 0.33, installed is {version}" in caplog.text


def test_rows_of_padding_are_left_out():
    work, queries = work_of(common(torch.zeros(4, 8, dtype=torch.int32), [20, 5], [1, 1], padded=2), PAGE, True)
    assert queries == 2 and work.lengths.tolist() == [20, 5] and work.query_indptr is None  # one each
    assert work.pages.shape == (2, 2) and work.pages.stride() == (8, 1)


def test_a_table_that_the_host_knows_is_not_asked_for(monkeypatch):
    entries = np.array([[3, 1], [3, 2], [0, 0]], np.int32)
    known = Known(SimpleNamespace(rows=lambda *shape: entries), array("Q", [5, 7]), entries.shape)

    def on_host(table, lengths, page_size):
        return known if (lengths.tolist(), page_size, table.shape) == ([20, 25], PAGE, known.shape) else None

    monkeypatch.setattr("deft.vllm.planner.on_host", on_host)
    given, tables = common(torch.zeros(3, 2, dtype=torch.int32), [20, 25], [1, 1], padded=1), Tables()
    work, _ = work_of(given, PAGE, True, tables=tables)
    assert work.pages.pages.entries == known.entries.ctypes.data and work.ids is known.ids
    assert work_of(given, PAGE, True, tables=tables)[0].pages is work.pages  # read once
    known = known._replace(table=SimpleNamespace(rows=lambda *shape: entries))
    assert work_of(given, PAGE, True, tables=tables)[0].pages is not work.pages


def test_queries_are_told_apart_where_a_request_has_several():
    work, queries = work_of(common(torch.zeros(4, 8, dtype=torch.int32), [20, 5], [3, 1], padded=1), PAGE, True)
    assert queries == 4 and work.query_indptr.tolist() == [0, 3, 4]
    first, queries = work_of(common(torch.zeros(4, 8, dtype=torch.int32), [20, 5], [3, 1]), PAGE, True, most=1)
    assert queries == 3 and first.query_indptr.tolist() == [0, 3] and first.lengths.tolist() == [20]


def test_lengths_that_drafts_make_uncertain_are_read_where_they_are_exact():
    given = common(torch.zeros(1, 8, dtype=torch.int32), [20], [1])
    given.seq_lens_cpu_upper_bound = ints([23])
    assert work_of(given, PAGE, True)[0].lengths.tolist() == [23]
    assert work_of(given, PAGE, False)[0].lengths.tolist() == [20]


def test_a_step_that_is_not_causal_is_named():
    given = common(torch.zeros(1, 8, dtype=torch.int32), [20], [1])
    given.causal = False
    with pytest.raises(NotImplementedError, match="causal=False"):
        work_of(given, PAGE, True)


def test_steps_that_replay_a_graph_are_kept_by_their_kind():
    planner = Planner(torch.device("cpu"), PAGE, 1024, True)
    table = torch.arange(32, dtype=torch.int32).reshape(4, 8)
    for lengths, counts in ([1] * 4, [1] * 4), ([1] * 2, [1] * 2), ([3] * 2, [3] * 2):
        planner.expect_graph(common(table, lengths, counts))
    assert planner._eager._room == Room(4, 4 + 4 + 512, 1024)  # as many as the largest has, and prompts
    steps = [
        planner.plan(common(table, lengths, counts, padded=padded), []).steps
        for lengths, counts, padded in (
            ([20, 5, 7], [1, 1, 1], 1),  # of the graph of 4
            ([20, 5, 7, 9], [1, 1, 1, 1], 0),
            ([20, 5], [1, 1], 0),  # of 2
            ([20, 5], [3, 3], 0),  # of 2 with two drafts each
            ([20, 5, 7], [1, 1, 1], 0),  # of no graph
            ([20, 5], [3, 1], 0),  # a chain is shorter
            ([20, 5], [2, 2], 0),
        )
    ]
    assert steps[0] is steps[1] and steps[4] is steps[5] is steps[6]
    assert len({*map(id, steps)}) == 4


@pytest.mark.parametrize(
    "kept, has_sinks, has_head_scales",
    [
        ("auto", False, False),
        ("fp8", False, False),
        ("fp8_e5m2", False, False),
        ("auto", True, False),
        ("fp8", True, False),
        ("fp8", False, True),
        ("fp8", True, True),
    ],
)
def test_a_step_writes_the_cache_and_computes_each_layer(registry, kept, has_sinks, has_head_scales):
    engine = Engine(torch.uint8 if kept in IN_BYTES else torch.bfloat16, kept, has_sinks, has_head_scales)

    def caches_of(impl, layer, cache):
        """K and V as numbers."""
        parts = impl._caches(cache)
        if kept not in IN_BYTES:
            return parts
        scales = layer._k_scale.view(-1, 1), layer._v_scale.view(-1, 1)
        return [part.view(IN_BYTES[kept]).float() * scale for part, scale in zip(parts, scales)]

    generator = torch.Generator().manual_seed(11)
    table = torch.full((4, 8), -1, dtype=torch.int32)
    for row, pages in enumerate(([3, 1, 2], [3, 1, 7], [5])):
        table[row, : len(pages)] = ints(pages)
    lengths = [0, 0, 0]
    engine.builder.build_for_cudagraph_capture(common(torch.ones(4, 8, dtype=torch.int32), [1] * 4, [1] * 4))
    # A prompt that two share, the rest of their own, then three steps of decoding; the second is padded, before the third
    # weights are loaded again.
    for number, (counts, padded) in enumerate([([40, 0, 0], 0), ([0, 37, 9], 0), ([1, 1, 1], 0), ([1, 1, 1], 1), ([1, 1, 1], 1)]):
        if number == 4:
            engine.load(-0.75)
        rows = [row for row in range(3) if counts[row]]
        before = lengths
        lengths = [length + count for length, count in zip(lengths, counts)]
        total = sum(counts)
        slots = [int(table[row, t // PAGE]) * PAGE + t % PAGE for row in rows for t in range(before[row], lengths[row])]
        keep = [lengths[row] for row in rows]
        metadata = engine.builder.build(
            0, common(table[rows], keep, [counts[row] for row in rows], padded=padded, slots=ints(slots))
        )
        assert (metadata.steps is engine.builder._planner._of_graphs[4, 1]) == (padded == 1)
        for impl, layer, cache, sinks in zip(engine.impls, engine.layers, engine.caches, engine.sinks):
            q, k, v = (torch.randn(total + padded, heads, 64, generator=generator).bfloat16() for heads in (4, 2, 2))
            if counts == [0, 37, 9]:  # the shared pages have the same tokens
                old = caches_of(impl, layer, cache)
                for new, part in zip((k, v), old):
                    new[: 2 * PAGE] = part[ints([3, 1]).long()].flatten(0, 1)
            impl.do_kv_cache_update(layer, k, v, cache, ints(slots))
            output = torch.full((total + padded, 4 * 64), 7.0, dtype=torch.bfloat16)
            assert impl.forward(layer, q, k, v, cache, metadata, output) is output
            assert (output[total:] == 7).all()
            window = -1 if impl.sliding_window is None else impl.sliding_window - 1
            first = 0
            for row in rows:
                own = [pages_of(part, table[row], lengths[row], "NHD") for part in caches_of(impl, layer, cache)]
                end = first + counts[row]
                seen = range(lengths[row] - counts[row] + 1, lengths[row] + 1)
                right, _ = plain(q[first:end], *own, seen, soft_cap=impl.logits_soft_cap or 0.0, window_left=window, sinks=sinks)
                assert_close(output[first:end].view(-1, 4, 64), right)
                first = end


PRODUCTS = {"deft": {"products": "fp8_e4m3"}}


@pytest.mark.parametrize("has_head_scales", [False, True])
def test_with_products_of_8_bits_it_takes_the_q_that_vllm_has_quantized(registry, has_head_scales):
    engine = Engine(torch.uint8, "fp8", False, has_head_scales, PRODUCTS)
    generator = torch.Generator().manual_seed(7)
    k_and_v = torch.randn(40, 2, 2, 64, generator=generator).bfloat16()
    metadata = engine.builder.build(0, common(ints([[3, 1, 2]]), [40], [2], slots=ints([0, 0])))
    slots = [[3, 1, 2][t // PAGE] * PAGE + t % PAGE for t in range(40)]
    for impl, layer, cache in zip(engine.impls, engine.layers, engine.caches):
        assert impl.supports_quant_query_input
        impl.do_kv_cache_update(layer, k_and_v[:, 0], k_and_v[:, 1], cache, ints(slots))
        q = (torch.randn(2, 4 * 64, generator=generator) / 0.125).to(torch.float8_e4m3fn)  # over its scale
        out, beside = (torch.full((2, 4 * 64), 7.0, dtype=torch.bfloat16) for _ in range(2))
        impl.forward(layer, q, None, None, cache, metadata, out)
        # The same numbers in 16 bits, which have no scale.
        scaled = SimpleNamespace(**{**vars(layer), "_k_scale": layer._k_scale * 0.125, "_k_scale_float": layer._k_scale_float * 0.125})
        impl.forward(scaled, q.bfloat16(), None, None, cache, metadata, beside)
        assert torch.equal(out, beside)
        parts = [part.view(torch.float8_e4m3fn).float() for part in impl._caches(cache)]
        own = [pages_of(part * scale.view(-1, 1), ints([3, 1, 2]), 40, "NHD") for part, scale in zip(parts, (layer._k_scale, layer._v_scale))]
        window = -1 if impl.sliding_window is None else impl.sliding_window - 1
        options = {"soft_cap": impl.logits_soft_cap or 0.0, "window_left": window}
        right, _ = plain(q.float().view(2, 4, 64) * 0.125, *own, [39, 40], **options)
        size, _ = plain(q.float().view(2, 4, 64) * 0.125, own[0], own[1].abs(), [39, 40], **options)
        assert ((out.view(2, 4, 64).double() - right).abs() <= (2**-4 + 2**-8) * size + 1e-4).all()


def test_without_being_asked_q_keeps_its_bits(registry):
    assert not any(impl.supports_quant_query_input for impl in Engine(torch.uint8, "fp8").impls)


@pytest.mark.parametrize(
    "kept, asked, message",
    [
        ("auto", PRODUCTS, "products='fp8_e4m3' is not supported here: .*kv_cache_dtype is auto"),
        ("fp8_e5m2", PRODUCTS, "products='fp8_e4m3' is not supported here: .*kv_cache_dtype is fp8_e5m2"),
        ("fp8", {"deft": {"products": "fp8"}}, "products='fp8' is not supported here: they are of fp8_e4m3"),
        ("fp8", {"deft": {"product": "fp8_e4m3"}}, "additional_config=.*'product'.* is not supported here: deft has `products`"),
    ],
)
def test_products_that_there_are_not_are_named(registry, kept, asked, message):
    with pytest.raises(NotImplementedError, match=message):
        Engine(torch.uint8 if kept != "auto" else torch.bfloat16, kept, additional_config=asked)


def test_a_captured_step_is_replayed_elsewhere(registry, tmp_path):
    """DEFT_CAPTURE=folder:tensors, as an engine's developer has it."""
    engine = Engine()
    table = torch.full((4, 8), -1, dtype=torch.int32)
    for row, pages in enumerate(([3, 1, 2], [3, 1, 7], [5])):
        table[row, : len(pages)] = ints(pages)
    with deft.capture(tmp_path, "tensors"):
        metadata = engine.builder.build(0, common(table[:3], [40, 37, 9], [1, 1, 1], slots=ints([0, 0, 0])))
        for impl, layer, cache in zip(engine.impls, engine.layers, engine.caches):
            q = torch.randn(3, 4, 64).bfloat16()
            impl.forward(layer, q, None, None, cache, metadata, torch.empty(3, 4 * 64, dtype=torch.bfloat16))
    steps = sorted(tmp_path.glob("*.json"))
    assert len(steps) == 2  # the second layer has a window and a cap
    for path in steps:
        step = json.loads(path.read_text())
        assert step["page_table"] and step["run"]["k"]["token_stride"] == 2 * 2 * 64  # V beside K
        shown = deftc("replay", path, "--backend", "cpu", "--repeat", "1")
        assert "check    right: error" in shown and "3 queries" in shown


def test_a_profiling_run_gives_zeros_and_fused_outputs_are_named(registry):
    engine = Engine()
    output = torch.ones(3, 256)
    assert (engine.impls[0].forward(None, None, None, None, None, None, output) == 0).all()
    with pytest.raises(NotImplementedError, match="output_scale"):
        engine.impls[0].forward(None, None, None, None, None, None, output, output_scale=1.0)


def test_what_it_can_do_is_told_truly(registry):
    engine = Engine()
    backend = engine.backend
    assert backend.supports_sliding_window() and backend.get_name() == "CUSTOM"
    assert backend.supports_sink() and backend.supports_per_head_quant_scales()
    assert not any(
        getattr(backend, f"supports_{what}")()
        for what in (
            "alibi_sqrt mm_prefix non_causal batch_invariance kv_connector device_cpu_query_lens_mismatch"
        ).split()
    )
    assert [size for size in (8, 16, 64, 72, 256, 512) if backend.supports_head_size(size)] == [16, 64, 256]
    assert engine.builder._cudagraph_support is Support.UNIFORM_BATCH
    impl = backend.get_impl_cls()
    for name, value in {"alibi_slopes": [1.0], "sinks": torch.ones(3), "attn_type": "encoder", "kv_cache_dtype": "fp8_ds_mla"}.items():
        with pytest.raises(NotImplementedError, match=name):
            impl(4, 64, 1.0, 2, **{name: value})


def test_a_cache_of_another_type_is_named_before_the_first_step(registry):
    with pytest.raises(NotImplementedError, match="kv_cache_dtype=torch.float16 .* of the model's type, torch.bfloat16"):
        Engine(kv_dtype=torch.float16)


def test_models_with_latent_caches_have_a_backend_of_their_own(registry, monkeypatch):
    import vllm.config

    def is_mla(use_mla):
        config = SimpleNamespace(model_config=SimpleNamespace(use_mla=use_mla))
        monkeypatch.setattr(vllm.config, "get_current_vllm_config_or_none", lambda: config)
        return deft.vllm.Backend.__name__

    assert (is_mla(False), is_mla(True)) == ("DeftBackend", "DeftMLABackend")
    monkeypatch.setattr(vllm.config, "get_current_vllm_config_or_none", lambda: None)
    assert deft.vllm.Backend.__name__ == "DeftBackend"
    with pytest.raises(AttributeError, match="no attribute 'Other'"):
        deft.vllm.Other
