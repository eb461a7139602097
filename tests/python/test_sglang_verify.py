"""SGLang's verify steps: trees of drafts behind each context, eagerly and in graphs, beside attention in float64."""

import itertools
import sys
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

import deft.sglang
from deft._adapters.draft_masks import room_for_drafts
from plain_attention import assert_close, plain_shown
from sglang_fakes import Pool, layer, make, mode, registry  # noqa: F401

ROWS, SLOTS, MOST = [3, 1, 4], 4096, 512  # of the table; tokens of a request
LAYERS = [layer(0), layer(1, sliding_window_size=6, logit_cap=4.0)]


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(29)


def drawn(generator, low, high):
    return int(torch.randint(low, high + 1, (), generator=generator))


def random_tree(generator, count):
    """Which drafts each of `count` sees, as SGLang has it: draft 0 is the root, and a parent stands before its children."""
    sees = torch.eye(count, dtype=torch.bool)
    for draft in range(1, count):
        sees[draft] |= sees[drawn(generator, 0, draft - 1)]
    return sees


def chain(count):
    return torch.ones(count, count, dtype=torch.bool).tril()


class Verified:
    """Requests with contexts in the cache, the first two of which share their first 64 tokens, and drafts behind them."""

    def __init__(self, made, page_size, generator, contexts=(130, 97, 5)):
        self.made, self.generator, self.lengths = made, generator, list(contexts)
        table = made.req_to_token_pool.req_to_token
        shared, page = 64, 1
        for number, row in enumerate(ROWS):
            first = shared if number == 1 else 0
            table[row, :first] = table[ROWS[0], :first]
            for token in range(first, 448, page_size):
                table[row, token : token + page_size] = torch.arange(page_size) + page * page_size
                page += 1
        pool = made.token_to_kv_pool
        for buffer in itertools.chain(*pool.buffers):
            buffer.copy_(torch.randn(buffer.shape, generator=generator).to(pool.dtype))

    def masks(self, trees):
        """Those of whole contexts."""
        shown = [torch.ones(len(tree), length, dtype=torch.bool) for tree, length in zip(trees, self.lengths)]
        return torch.cat([torch.cat(pair, 1).flatten() for pair in zip(shown, trees)])

    def batch(self, trees, mask, padding=0, **more):
        """A step of the first requests, one for each tree."""
        count, known = len(trees[0]), len(trees)
        table = self.made.req_to_token_pool.req_to_token
        lengths = torch.tensor(self.lengths[:known] + [1] * padding)
        slots = [table[ROWS[i], self.lengths[i] : self.lengths[i] + count] for i in range(known)]
        spec = dict(draft_token=torch.zeros(known * count), custom_mask=mask, draft_token_num=count)
        return SimpleNamespace(
            forward_mode=mode("verify"),
            batch_size=known + padding,
            req_pool_indices=torch.tensor(ROWS[:known] + [0] * padding),
            seq_lens=lengths,
            seq_lens_cpu=lengths,
            out_cache_loc=torch.cat([*slots, torch.zeros(padding * count, dtype=torch.int32)]).long(),
            spec_info=SimpleNamespace(**{**spec, **more}),
        )

    def check(self, backend, batch, trees, layers=LAYERS, sinks=None):
        table, pool = self.made.req_to_token_pool.req_to_token, self.made.token_to_kv_pool
        count = len(trees[0])
        for number, one in enumerate(layers):
            q, k, v = (torch.randn(len(batch.out_cache_loc), heads, 64, generator=self.generator).half() for heads in (4, 2, 2))
            more = {} if sinks is None else {"sinks": sinks[number]}
            out = backend.forward_extend(q.flatten(1), k, v, one, batch, **more).view(-1, 4, 64)
            for i, tree in enumerate(trees):
                length, rows = self.lengths[i], slice(i * count, (i + 1) * count)
                slots = table[ROWS[i], : length + count].long()
                scales = [1 if scale is None else scale for scale in (one.k_scale, one.v_scale)]
                own = [buffer[slots].float() * scale for buffer, scale in zip(pool.get_kv_buffer(one.layer_id), scales)]
                position = torch.cat([torch.arange(length), length + tree.sum(1) - 1])
                shown = torch.cat([torch.ones(count, length, dtype=torch.bool), tree], 1)
                if one.sliding_window_size >= 0:
                    shown &= position >= position[length:, None] - one.sliding_window_size
                right, _ = plain_shown(q[rows], *own, shown, soft_cap=one.logit_cap, **more)
                assert_close(out[rows], right)


def make_verifying(page_size, dtype=torch.float16, **more):
    arguments = SimpleNamespace(speculative_algorithm="NGRAM", speculative_num_draft_tokens=64, **more)
    return make(
        page_size, server_args=arguments, kv_cache_dtype=dtype, token_to_kv_pool=Pool(SLOTS, dtype), max_total_num_tokens=SLOTS,
        req_to_token_pool=SimpleNamespace(req_to_token=torch.zeros(5, MOST, dtype=torch.int32)),
    )  # fmt: skip


FORMS = ["contexts", "contexts in bytes", "drafts alone", "in our own buffer"]


def given_as(form, backend, verified, trees):
    if form.startswith("contexts"):
        mask = verified.masks(trees)
        return mask if form == "contexts" else mask.to(torch.uint8)
    mask = torch.stack(trees).flatten()
    if form == "drafts alone":
        return mask
    backend.verify_mask.buffer.fill_(True)  # as SGLang does, and writes those of requests that there are
    backend.verify_mask.buffer[: len(mask)] = mask
    return backend.verify_mask.buffer


@pytest.mark.parametrize("page_size", [1, 16, 64])
@pytest.mark.parametrize("form", FORMS)
def test_random_trees(registry, generator, page_size, form):
    backend, made = make_verifying(page_size)
    backend.init_cuda_graph_state(4, 4 * 64)
    assert backend.verify_mask.mode == 1 and backend.verify_mask.max_bs == 4
    verified = Verified(made, page_size, generator)
    for count in 33, 8, 64, 1:  # and a step follows a step
        trees = [random_tree(generator, count) for _ in ROWS]
        batch = verified.batch(trees, given_as(form, backend, verified, trees))
        backend.init_forward_metadata(batch)
        verified.check(backend, batch, trees)
        verified.lengths = [length + drawn(generator, 1, 16) for length in verified.lengths]


@pytest.mark.parametrize("page_size", [1, 16])
@pytest.mark.parametrize("form", FORMS)
def test_graphs_filled_up_with_requests_that_have_no_drafts(registry, generator, page_size, form):
    backend, made = make_verifying(page_size)
    backend.init_cuda_graph_state(4, 4 * 20)
    verified = Verified(made, page_size, generator)
    # While a graph is captured, nothing is known of drafts, and the mask shows everything.
    captured = verified.batch([chain(20)], torch.ones(20 * 600, dtype=torch.bool), padding=3, draft_token=None)
    backend.init_forward_metadata_out_graph(captured, in_capture=True)
    verified.check(backend, captured, [chain(20)])
    steps, pages = backend._steps, backend._steps._work.pages.data_ptr()
    assert steps._room == room_for_drafts(4, 80, SLOTS + page_size + 80, 20)
    for known in 3, 2, 3:
        trees = [random_tree(generator, 20) for _ in range(known)]
        batch = verified.batch(trees, given_as(form, backend, verified, trees), padding=4 - known)
        backend.init_forward_metadata_out_graph(batch)
        assert backend._steps is steps and steps._work.pages.data_ptr() == pages
        verified.check(backend, batch, trees)
        verified.lengths = [length + drawn(generator, 1, 20) for length in verified.lengths]
    # A graph of decoding of the same size is another one.
    lengths = torch.tensor(verified.lengths + [1])
    decoding = SimpleNamespace(
        forward_mode=mode("decode"), batch_size=4, req_pool_indices=torch.tensor([*ROWS, 0]), seq_lens=lengths, seq_lens_cpu=lengths
    )
    backend.init_forward_metadata_out_graph(decoding)
    assert backend._steps is not steps


@pytest.mark.parametrize("interface", ["newer", "older"])
def test_both_interfaces_of_graphs(registry, generator, interface):
    backend, made = make_verifying(16)
    backend.init_cuda_graph_state(4, 4 * 9)
    verified = Verified(made, 16, generator)
    trees = [random_tree(generator, 9) for _ in ROWS]
    batch = verified.batch(trees, verified.masks(trees))
    given = batch.batch_size, batch.req_pool_indices, batch.seq_lens
    if interface == "newer":
        backend.init_forward_metadata_out_graph(batch)
    else:
        backend.init_forward_metadata_replay_cuda_graph(*given, 0, None, batch.forward_mode, batch.spec_info, batch.seq_lens_cpu)
    verified.check(backend, batch, trees)


def test_without_a_mask_drafts_are_a_chain(registry, generator):
    backend, made = make_verifying(16)
    verified, trees = Verified(made, 16, generator), [chain(40)] * 3
    batch = verified.batch(trees, None)
    backend.init_forward_metadata(batch)
    verified.check(backend, batch, trees)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_caches_of_8_bit_floats_with_scales(registry, generator, dtype):
    backend, made = make_verifying(16, dtype)
    verified = Verified(made, 16, generator)
    scales = [(0.5, 2.0), (1.5, 0.25)]
    layers = [
        layer(i, k_scale=torch.tensor(k), v_scale=torch.tensor(v), k_scale_float=k, v_scale_float=v, sliding_window_size=6 * i - 1)
        for i, (k, v) in enumerate(scales)
    ]
    for _ in range(2):
        trees = [random_tree(generator, 25) for _ in ROWS]
        batch = verified.batch(trees, verified.masks(trees))
        backend.init_forward_metadata(batch)
        verified.check(backend, batch, trees, layers)


def test_layers_with_sinks(registry, generator):
    backend, made = make_verifying(16)
    verified, trees = Verified(made, 16, generator), [random_tree(generator, 25) for _ in ROWS]
    batch = verified.batch(trees, verified.masks(trees))
    backend.init_forward_metadata(batch)
    verified.check(backend, batch, trees, sinks=[torch.tensor([1.0, -2.0, 0.5, 3.0]).half(), torch.zeros(4).half()])


def test_what_a_request_shares_is_read_once(registry, generator):
    backend, made = make_verifying(16)
    verified, trees = Verified(made, 16, generator), [random_tree(generator, 12) for _ in ROWS]
    batch = verified.batch(trees, verified.masks(trees))
    backend.init_forward_metadata(batch)
    verified.check(backend, batch, trees)
    for planned in backend._steps._planned.values():
        sharing = planned._batch.sharing()
        assert sharing.request_tokens - sharing.tokens == 64


def test_a_mask_that_is_no_tree_is_named_and_the_step_before_stays(registry, generator):
    backend, made = make_verifying(16)
    verified, trees = Verified(made, 16, generator), [random_tree(generator, 12) for _ in ROWS]
    batch = verified.batch(trees, verified.masks(trees))
    backend.init_forward_metadata(batch)
    verified.check(backend, batch, trees)
    wrong = [tree.clone() for tree in trees]
    wrong[1][5] = False
    with pytest.raises(NotImplementedError, match=r"what query \d+ of request 1 sees is no tree"):
        backend.init_forward_metadata(verified.batch(wrong, verified.masks(wrong)))
    verified.check(backend, batch, trees)


def test_a_mask_that_is_too_short_is_named(registry, generator):
    backend, made = make_verifying(16)
    verified, trees = Verified(made, 16, generator), [random_tree(generator, 12) for _ in ROWS]
    with pytest.raises(ValueError, match="custom_mask has 143 elements and 432 are needed for 3 requests of 12 drafts"):
        backend.init_forward_metadata(verified.batch(trees, torch.ones(143, dtype=torch.bool)))


def speculating(**more):
    given = dict(speculative_algorithm="EAGLE", speculative_num_draft_tokens=8, speculative_draft_attention_backend=None)
    return SimpleNamespace(**{**given, **more})


@pytest.mark.parametrize(
    "name, arguments, more",
    [
        ("speculative_algorithm", {"speculative_algorithm": "DFLASH"}, {}),
        ("speculative_algorithm", {}, {"use_mla_backend": True}),
        ("speculative_draft_attention_backend", {}, {"is_draft_worker": True}),
        ("speculative_num_draft_tokens", {"speculative_num_draft_tokens": 257}, {}),
    ],
)
def test_what_it_cannot_do_is_named(registry, name, arguments, more):
    with pytest.raises(NotImplementedError, match=name):
        make(16, server_args=speculating(**arguments), **more)


def test_a_plan_beside_the_drafting_is_refused(registry):
    backend, _ = make(16, server_args=speculating())
    with pytest.raises(NotImplementedError, match="SGLANG_ENABLE_OVERLAP_PLAN_STREAM"):
        backend.update_verify_buffers_to_fill_after_draft(None, None)


def test_releases_without_masks_of_drafts_alone_hand_over_whole_ones(registry, monkeypatch, generator):
    monkeypatch.delitem(sys.modules, "sglang.srt.layers.attention.verify_mask")
    backend, made = make_verifying(16)
    backend.init_cuda_graph_state(4, 4 * 8)
    assert backend.verify_mask is None
    verified, trees = Verified(made, 16, generator), [random_tree(generator, 8) for _ in ROWS]
    batch = verified.batch(trees, verified.masks(trees))
    backend.init_forward_metadata_out_graph(batch)
    verified.check(backend, batch, trees)


def test_trees_over_pages_are_allowed_where_deft_verifies(registry):
    from sglang.srt.arg_groups import speculative_hook as hook

    deft.sglang.register()
    deft.sglang.register()  # and wraps them once
    given = dict(
        speculative_eagle_topk=4, page_size=16, speculative_attention_mode="prefill", attention_backend="deft", enable_dp_attention=False,
        prefill_attention_backend=None, decode_attention_backend=None,
    )  # fmt: skip
    split = dict(speculative_algorithm="NGRAM", attention_backend=None, prefill_attention_backend="fa3", decode_attention_backend="deft")
    allowed = [
        dict(speculative_algorithm="NGRAM"),
        dict(split, speculative_attention_mode="decode"),
        dict(speculative_draft_attention_backend="triton"),
    ]
    refused = [split, dict(speculative_algorithm="NGRAM", enable_dp_attention=True), dict()]
    for check in hook._handle_ngram, hook._handle_eagle_family:
        for more in allowed:
            check(speculating(**{**given, **more}))
        for more in refused:
            with pytest.raises(ValueError, match="is for other backends"):
                check(speculating(**{**given, **more}))
        with pytest.raises(ValueError, match="is missing"):
            check(speculating(**given, speculative_num_draft_tokens=None))
