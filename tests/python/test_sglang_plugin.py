import logging
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

import deft.sglang
from sglang_fakes import LAYERS, Pool, Requests, layer, make, mode, registry  # noqa: F401


def test_it_registers_itself_once(registry):
    deft.sglang.register()
    deft.sglang.register()
    assert list(registry.made) == ["deft"] and registry.choices == ["triton", "deft"]


@pytest.mark.parametrize("version", ["0.5.11", "0.5.24", "0.6.0"])
def test_releases_that_it_was_not_written_for_are_left_alone(registry, monkeypatch, caplog, version):
    monkeypatch.setattr("deft._adapters.releases.version", lambda package: version)
    deft.sglang.register()
    assert not registry.made and f"it supports 0.5.12 to 0.5.23, installed is {version}" in caplog.text


def test_it_says_which_release_it_was_seen_with_once_it_is_chosen(registry, caplog):
    with caplog.at_level(logging.INFO):
        deft.sglang.register()
        assert caplog.text == ""
        make(page_size=8)
    assert "the attention backend is deft; it was tested on a GPU with SGLang 0.5.17" in caplog.text


def test_with_another_release_it_says_that_it_is_experimental(registry, monkeypatch, caplog):
    monkeypatch.setattr("deft._adapters.releases.version", lambda package: "0.5.14")
    with caplog.at_level(logging.INFO):
        make(page_size=8)
    assert "it is experimental: it was tested on a GPU with SGLang 0.5.17, not with 0.5.14" in caplog.text


def test_graphs_have_room_for_the_rows_that_fill_them_up(registry):
    backend, made = make(page_size=8)
    backend.init_cuda_graph_state(4, 4)
    steps = backend._planner.plan_graph(torch.tensor([1, 2]), torch.tensor([1, 1]))
    assert steps._room == (2, 2, made.max_total_num_tokens + 8)


@pytest.mark.parametrize("page_size", [1, 8])
@pytest.mark.parametrize("form", [None, "on the device alone"])
def test_prompts_and_decoding(registry, page_size, form):
    backend, made = make(page_size)
    generator = torch.Generator().manual_seed(13)
    requests = Requests(made, page_size)
    for counts in ([20, 0, 0], [0, 0, 7]):
        batch = requests.step(counts, generator, "extend", form)
        backend.init_forward_metadata(batch)
        requests.check(backend, batch, generator, backend.forward_extend)
    # The prompt that is shared is not computed again.
    requests.lengths[1] = 16
    batch = requests.step([0, 5, 0], generator, "extend", form)
    backend.init_forward_metadata(batch)
    requests.check(backend, batch, generator, backend.forward_extend)
    for _ in range(3):
        batch = requests.step([1, 1, 1], generator, "decode", form)
        backend.init_forward_metadata(batch)
        requests.check(backend, batch, generator, backend.forward_decode)
    (planned, _) = backend._steps._planned.values()
    assert planned._batch.sharing().tokens == sum(requests.lengths) - 16


def scaled(number, k_scale, v_scale):
    """As SGLang holds them: on the device, and as the host's numbers."""
    return layer(number, k_scale=torch.tensor(k_scale), v_scale=torch.tensor(v_scale), k_scale_float=k_scale, v_scale_float=v_scale)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_caches_of_8_bit_floats_have_scales_of_their_layers_or_none(registry, dtype):
    backend, made = make(8, kv_cache_dtype=dtype, token_to_kv_pool=Pool(512, dtype))
    generator = torch.Generator().manual_seed(19)
    requests = Requests(made, 8)
    for layers in [scaled(0, 0.5, 2.0), scaled(1, 1.5, 0.25)], [layer(0), layer(1, sliding_window_size=6, logit_cap=4.0)]:
        for counts, kind in ([17, 17, 9], "extend"), ([1, 1, 1], "decode"):
            batch = requests.step(counts, generator, kind)
            backend.init_forward_metadata(batch)
            requests.check(backend, batch, generator, getattr(backend, f"forward_{kind}"), layers)
        requests.lengths = [0, 0, 0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float8_e4m3fn])
def test_layers_with_sinks(registry, dtype):
    """Of the type of the model, which may be loaded again while their graphs stay."""
    backend, made = make(8, kv_cache_dtype=dtype, token_to_kv_pool=Pool(512, dtype))
    generator = torch.Generator().manual_seed(23)
    requests = Requests(made, 8)
    backend.init_cuda_graph_state(4, 4)
    sinks, places = [torch.tensor([1.0, -2.0, 0.5, 3.0]).half(), torch.zeros(4).half()], set()
    for counts, kind in ([17, 17, 9], "extend"), ([1, 1, 1], "decode"), ([1, 1, 1], "decode"):
        batch = requests.step(counts, generator, kind)
        backend.init_forward_metadata(batch) if kind == "extend" else backend.init_forward_metadata_out_graph(batch)
        requests.check(backend, batch, generator, getattr(backend, f"forward_{kind}"), sinks=sinks)
        places.add(tuple(kept.data_ptr() for kept in backend._sinks.values()))
        sinks[1].add_(0.75)
    assert len(places) == 1


def test_a_pool_of_another_layout_is_named(registry):
    pool = Pool(512)
    backend, made = make(8, token_to_kv_pool=pool)
    batch = Requests(made, 8).step([3, 0, 0], None, "extend")
    backend.init_forward_metadata(batch)
    pool.buffers = [[buffer.view(-1, 8, 2, 64).transpose(1, 2) for buffer in layer] for layer in pool.buffers]
    with pytest.raises(NotImplementedError, match=r"kv_cache_layout=\(64, 2, 8, 64\)"):
        backend.forward_extend(torch.zeros(3, 256).half(), None, None, layer(0), batch)


def test_a_scale_that_only_the_device_knows_is_named(registry):
    from deft.sglang.planner import scales_of

    assert scales_of(layer(0)) == (1.0, 1.0)
    with pytest.raises(NotImplementedError, match="v_scale=.* does not wait for the device"):
        scales_of(layer(0, k_scale=torch.tensor(2.0), k_scale_float=2.0, v_scale=torch.tensor(2.0)))


@pytest.mark.parametrize("interface", ["newer", "older"])
def test_steps_of_a_graph_have_their_pages_at_one_address(registry, interface):
    backend, made = make(8)
    generator = torch.Generator().manual_seed(17)
    requests = Requests(made, 8)
    batch = requests.step([17, 17, 9], generator, "extend")
    backend.init_forward_metadata(batch)
    requests.check(backend, batch, generator, backend.forward_extend)
    backend.init_cuda_graph_state(4, 4)
    assert backend.get_cuda_graph_seq_len_fill_value() == 1
    addresses = set()
    for number in range(3):
        batch = requests.step([1, 1, 1], generator, "decode")
        given = batch.batch_size, batch.req_pool_indices, batch.seq_lens
        if interface == "newer":
            backend.init_forward_metadata_out_graph(batch, in_capture=number == 0)
        elif number == 0:
            backend.init_forward_metadata_capture_cuda_graph(given[0], given[0], *given[1:], None, batch.forward_mode, None)
        else:
            backend.init_forward_metadata_replay_cuda_graph(
                *given, 0, None, batch.forward_mode, None, seq_lens_cpu=batch.seq_lens
            )
        addresses.add((backend._steps, backend._steps._work.pages.seen.data, backend._steps._work.pages.pages.row_stride))
        requests.check(backend, batch, generator, backend.forward_decode)
    assert len(addresses) == 1
    with pytest.raises(NotImplementedError, match="forward_mode"):
        backend.init_forward_metadata_out_graph(requests.step([2, 2, 2], generator, "extend"))


def test_what_it_cannot_do_is_named(registry):
    for name, more in {
        "kv_cache_dtype": {"kv_cache_dtype": torch.bfloat16},
        "disable_hybrid_swa_memory": {"token_to_kv_pool": SimpleNamespace(translate_loc_from_full_to_swa=None)},
    }.items():
        with pytest.raises(NotImplementedError, match=name):
            make(1, **more)
    from deft.sglang.planner import variant_of

    for name, value in {"v_head_dim": 32, "is_cross_attention": True, "attn_type": "encoder_only"}.items():
        with pytest.raises(NotImplementedError, match=name):
            variant_of(layer(0, **{name: value}), 1, torch.float16, torch.float16)
    with pytest.raises(NotImplementedError, match="logit_capping_method"):
        variant_of(layer(0, logit_cap=1.0, logit_capping_method="other"), 1, torch.float16, torch.float16)
    with pytest.raises(NotImplementedError, match="kv_cache_dtype"):
        variant_of(layer(0), 1, torch.float16, torch.uint8)
    with pytest.raises(NotImplementedError, match="dtype=torch.float32"):
        variant_of(layer(0), 1, torch.float32, torch.float32)
    backend, made = make(1)
    batch = Requests(made, 1).step([3, 0, 0], None, "extend")
    backend.init_forward_metadata(batch)
    for name, value in {"sinks": torch.ones(3), "xpos": torch.ones(3)}.items():
        with pytest.raises(NotImplementedError, match=name):
            backend.forward_extend(torch.zeros(3, 256).half(), None, None, layer(0), batch, **{name: value})
    backend.init_forward_metadata(SimpleNamespace(forward_mode=mode("idle")))
