"""FlashInfer's custom masks that are trees of drafts, and those that are none."""

import dataclasses

import pytest

torch = pytest.importorskip("torch")

import deft._adapters.draft_masks
from deft.flashinfer import BatchAttentionWithAttentionSinkWrapper, BatchPrefillWithPagedKVCacheWrapper, BatchPrefillWithRaggedKVCacheWrapper
from deft.flashinfer._custom_mask import drafts_of
from plain_attention import assert_close
from test_flashinfer_prefill import HEADS, WORKSPACE, Prompts, Ragged, drawn, for_graphs, shown_of

CPU = torch.device("cpu")
RULE = "each query sees the whole context and, of the last q_len tokens, itself and those above it in a tree"


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(23)


def tree_mask(generator, count, length):
    """Of a random tree (or forest) whose drafts stand in any order."""
    order = torch.randperm(count, generator=generator).tolist()
    mask = torch.zeros(count, length, dtype=torch.bool)
    mask[:, : length - count] = True
    for place, draft in enumerate(order):
        parent = order[drawn(generator, -1, place - 1)] if place and drawn(generator, 0, 5) else None
        if parent is not None:
            mask[draft] = mask[parent]
        mask[draft, length - count + draft] = True
    return mask


def masks_of(generator, prompts):
    return [tree_mask(generator, count, length) for count, length in zip(prompts.counts, prompts.lengths)]


def flat(masks):
    return torch.cat([mask.reshape(-1) for mask in masks])


def packed(masks):
    """Each request begins with a byte; bit i % 8 of byte i // 8 is that of element i."""
    rows = []
    for mask in masks:
        bits = torch.zeros(-(-mask.numel() // 8) * 8, dtype=torch.uint8)
        bits[: mask.numel()] = mask.reshape(-1)
        rows.append((bits.view(-1, 8) << torch.arange(8, dtype=torch.uint8)).sum(-1).to(torch.uint8))
    return torch.cat(rows)


def given_as(form, masks):
    if form == "packed":
        return {"packed_custom_mask": packed(masks), "custom_mask": torch.zeros(0, dtype=torch.bool)}
    mask = flat(masks)
    return {"custom_mask": {"bool": mask, "uint8": mask.to(torch.uint8), "longer": torch.cat([mask, mask])}[form]}


@pytest.mark.parametrize("form", ["bool", "uint8", "longer", "packed"])
@pytest.mark.parametrize("page_size, layout, dtype", [(1, "NHD", torch.float16), (16, "HND", torch.bfloat16), (64, "NHD", torch.bfloat16)])
def test_a_tree_of_drafts_behind_each_context(generator, form, page_size, layout, dtype):
    wrapper = BatchPrefillWithPagedKVCacheWrapper(WORKSPACE, layout)
    for most in 200, 9, 1:  # and a step follows a step
        prompts = Prompts.drawn(generator, page_size=page_size, layout=layout, dtype=dtype, most=most)
        masks = masks_of(generator, prompts)
        prompts.plan(wrapper, **given_as(form, masks))
        out, lse = wrapper.run(prompts.q, prompts.cache, return_lse=True)
        right, right_lse = prompts.right(masks)
        assert_close(out, right, lse, right_lse)


@pytest.mark.parametrize("window_left", [0, 3, 60])
def test_windows_are_of_the_places_of_tokens(generator, window_left):
    """As FlashInfer has it: of slots, not of depths."""
    wrapper = BatchPrefillWithPagedKVCacheWrapper(WORKSPACE)
    for shares in True, False:
        prompts = Prompts.drawn(generator, most=70, shares=shares)
        masks = masks_of(generator, prompts)
        more = {"window_left": window_left, "logits_soft_cap": 6.0}
        prompts.plan(wrapper, custom_mask=flat(masks), **more)
        shown = [mask & shown_of(*mask.shape, False, window_left) for mask in masks]
        right, right_lse = prompts.right(shown, soft_cap=6.0)
        out, lse = wrapper.run(prompts.q, prompts.cache, return_lse=True)
        assert_close(out, right, lse, right_lse)
        out = wrapper.forward(prompts.q, prompts.cache, causal=True, **more)  # which a mask does not look at
        assert_close(out, right)


def test_8_bit_caches_and_sinks(generator):
    prompts = Prompts.drawn(generator, most=40)
    masks, sinks = masks_of(generator, prompts), torch.randn(HEADS, generator=generator) * 3
    stored = prompts.cache.to(torch.float8_e4m3fn)
    scaled = stored.half() * torch.tensor([0.5, 2.0]).half()[:, None, None, None]
    right, right_lse = prompts.right(masks, scaled, sinks=sinks)
    for kind, arguments, given in (
        (BatchPrefillWithPagedKVCacheWrapper, (), {"sinks": sinks}),
        (BatchAttentionWithAttentionSinkWrapper, (sinks,), {}),
    ):
        wrapper = kind(WORKSPACE)
        prompts.plan(wrapper, custom_mask=flat(masks), kv_data_type=torch.float8_e4m3fn)
        out, lse = wrapper.run(prompts.q, stored, *arguments, k_scale=0.5, v_scale=2.0, return_lse=True, **given)
        assert_close(out, right, lse, right_lse)


def test_requests_without_queries_or_without_a_context(generator):
    prompts = Prompts.drawn(generator, most=40, shares=False)
    prompts.counts[0], prompts.counts[2] = 0, prompts.lengths[2]
    prompts.q = prompts.queries(generator, sum(prompts.counts), torch.float16)
    wrapper = BatchPrefillWithPagedKVCacheWrapper(WORKSPACE)
    for most in None, 0:
        if most == 0:
            prompts.counts, prompts.q = [0] * 4, prompts.q[:0]
        masks = masks_of(generator, prompts)
        prompts.plan(wrapper, custom_mask=flat(masks))
        out, lse = wrapper.run(prompts.q, prompts.cache, return_lse=True)
        assert out.shape == prompts.q.shape
        if most is None:
            assert_close(out, prompts.right(masks)[0], lse, prompts.right(masks)[1])


def test_what_requests_share_is_read_once(generator):
    prompts = Prompts.drawn(generator, requests=2, shares=False)
    prompts.rows[1][:1] = prompts.rows[0][:1]
    prompts.lengths, prompts.counts, prompts.rows = [30, 40], [4, 6], [row[:3] for row in prompts.rows]
    wrapper = BatchPrefillWithPagedKVCacheWrapper(WORKSPACE)
    prompts.rows[0] = prompts.rows[0][:2]
    prompts.plan(wrapper, custom_mask=flat(masks_of(generator, prompts)))
    (steps,) = wrapper._plans._steps.values()
    (planned,) = steps._planned.values()
    assert planned._batch.sharing().request_tokens - planned._batch.sharing().tokens == 16


def test_steps_with_and_without_a_mask_follow_each_other(generator):
    wrapper = BatchPrefillWithPagedKVCacheWrapper(WORKSPACE)
    prompts = Prompts.drawn(generator, most=30)
    for is_masked in True, False, False, True:
        masks = masks_of(generator, prompts) if is_masked else prompts.shown(True)
        prompts.plan(wrapper, **({"custom_mask": flat(masks)} if is_masked else {"causal": True}))
        assert_close(wrapper.run(prompts.q, prompts.cache), prompts.right(masks)[0])


def test_buffers_for_graphs_are_used_again(generator):
    prompts = Prompts.drawn(generator, most=30, shares=False)
    masks = masks_of(generator, prompts)
    buffers = {"custom_mask_buf": torch.zeros(1 << 16, dtype=torch.uint8), "mask_indptr_buf": torch.zeros(5, dtype=torch.int32)}
    wrapper, _ = for_graphs(4, 200, **buffers)
    for _ in range(3):
        masks = masks_of(generator, prompts)
        prompts.plan(wrapper, custom_mask=flat(masks))
        assert_close(wrapper.run(prompts.q, prompts.cache), prompts.right(masks)[0])
        prompts.lengths = [length + (length % 16 > 0) for length in prompts.lengths]
    with pytest.raises(ValueError, match="custom_mask is None, and the wrapper for CUDA graphs was made with custom_mask_buf"):
        prompts.plan(wrapper)
    with pytest.raises(ValueError, match="custom_mask_buf and mask_indptr_buf must be tensors"):
        prompts.plan(for_graphs(4, 200)[0], custom_mask=flat(masks))


def test_requests_of_padding_are_no_error(generator):
    """As SGLang pads a step for a captured graph: requests of a token and drafts, whose mask shows everything."""
    prompts = Prompts.drawn(generator, most=30, shares=False)
    prompts.lengths[2:], prompts.counts[2:] = [6, 6], [5, 5]
    prompts.rows[2:], prompts.q = [row[:1] for row in prompts.rows[2:]], prompts.queries(generator, sum(prompts.counts[:2]) + 10, torch.float16)
    masks = masks_of(generator, prompts)
    right = prompts.right(masks)[0]
    masks[2:] = [torch.ones_like(mask) for mask in masks[2:]]
    buffers = {"custom_mask_buf": torch.zeros(1), "mask_indptr_buf": torch.zeros(5, dtype=torch.int32)}
    wrapper, _ = for_graphs(4, 200, **buffers)
    prompts.plan(wrapper, custom_mask=flat(masks))
    assert_close(wrapper.run(prompts.q, prompts.cache)[:-10], right[:-10])
    for shown in [masks[3], *masks[1:]], [torch.ones_like(mask) for mask in masks]:  # not at the end alone
        with pytest.raises(NotImplementedError, match="sees is no tree"):
            counts, lengths = zip(*(mask.shape for mask in shown))
            batch = dataclasses.replace(prompts, counts=list(counts), lengths=list(lengths))
            batch.rows = [row * 20 for row in prompts.rows]
            batch.rows = [row[: -(-length // 16)] for row, length in zip(batch.rows, lengths)]
            batch.plan(for_graphs(4, 200, **buffers)[0], custom_mask=flat(shown))
    with pytest.raises(NotImplementedError, match="of request [23] sees is no tree"):
        prompts.plan(BatchPrefillWithPagedKVCacheWrapper(WORKSPACE), custom_mask=flat(masks))


@pytest.mark.parametrize("form", ["bool", "packed"])
def test_ragged_trees(generator, form):
    wrapper = BatchPrefillWithRaggedKVCacheWrapper(WORKSPACE)
    for _ in range(2):
        ragged = Ragged(generator)
        masks = [tree_mask(generator, count, length) for count, length in zip(ragged.counts, ragged.lengths)]
        ragged.plan(wrapper, **given_as(form, masks))
        out, lse = ragged.run(wrapper, return_lse=True)
        right, right_lse = ragged.right(masks)
        assert_close(out, right, lse, right_lse)


def hide_of_the_context(masks):
    masks[2][1, 3] = False


def show_what_comes_after(masks):
    masks[1][:] = True


def hide_themselves(masks):
    masks[0][2, -masks[0].shape[0] + 2] = False


@pytest.mark.parametrize("form", ["bool", "packed"])
@pytest.mark.parametrize(
    "change, message",
    [
        (hide_of_the_context, "query 1 of request 2 does not see token 3"),
        (show_what_comes_after, "what query [0-9]+ of request 1 sees is no tree"),
        (hide_themselves, "what query [0-9]+ of request 0 sees is no tree"),
    ],
)
def test_masks_that_are_no_trees_are_named_and_change_nothing(generator, form, change, message):
    prompts = Prompts.drawn(generator, most=30, shares=False)
    prompts.lengths, prompts.counts = [max(length, 40) for length in prompts.lengths], [5, 3, 9, 4]
    prompts.rows = [[*range(20 * row, 20 * row - (-length // 16))] for row, length in enumerate(prompts.lengths)]
    prompts.cache = torch.randn((80, 2, 16, 2, 64), generator=generator).half()
    prompts.q = prompts.queries(generator, sum(prompts.counts), torch.float16)
    wrapper = BatchPrefillWithPagedKVCacheWrapper(WORKSPACE)
    before = masks_of(generator, prompts)
    prompts.plan(wrapper, custom_mask=flat(before))
    masks = masks_of(generator, prompts)
    change(masks)
    with pytest.raises(NotImplementedError, match=f"custom_mask='Tensor' is not supported here: {message}: {RULE}"):
        prompts.plan(wrapper, **given_as(form, masks))
    assert_close(wrapper.run(prompts.q, prompts.cache), prompts.right(before)[0])


def test_sizes_that_do_not_fit_are_named(generator):
    prompts = Prompts.drawn(generator, most=30)
    masks = masks_of(generator, prompts)
    wrapper = BatchPrefillWithPagedKVCacheWrapper(WORKSPACE)
    needed = sum(mask.numel() for mask in masks)
    with pytest.raises(ValueError, match=f"custom_mask has {needed - 1} elements and {needed} are needed"):
        prompts.plan(wrapper, custom_mask=flat(masks)[:-1])
    with pytest.raises(ValueError, match="packed_custom_mask has [0-9]+ bytes, in which each request begins with one, and"):
        prompts.plan(wrapper, packed_custom_mask=packed(masks)[:-1])
    with pytest.raises(ValueError, match="packed_custom_mask is torch.bool, it must be torch.uint8"):
        prompts.plan(wrapper, packed_custom_mask=flat(masks))
    with pytest.raises(NotImplementedError, match="with disable_split_kv or fixed_split_size"):
        prompts.plan(wrapper, custom_mask=flat(masks), disable_split_kv=True)


@pytest.mark.parametrize(
    "counts, lengths, message",
    [
        ([1, 257], [1, 300], "request 1 has 257 queries, with a mask at most 256"),
        ([5, 1], [4, 1], "request 0 has 5 queries and 4 tokens"),
    ],
)
def test_requests_that_no_tree_of_drafts_has_are_named(counts, lengths, message):
    with pytest.raises(NotImplementedError, match=message):
        drafts_of(torch.ones(0, dtype=torch.bool), None, torch.tensor(counts), torch.tensor(lengths), CPU)


@pytest.mark.parametrize("form", ["bool", "packed"])
@pytest.mark.parametrize("most_sums", [1 << 24, 0])
def test_every_token_of_a_context_is_looked_at(monkeypatch, generator, form, most_sums):
    """One that is hidden at a time, in contexts around the sizes of the blocks that are looked at together."""
    monkeypatch.setattr(deft._adapters.draft_masks, "_MOST_SUMS", most_sums)
    counts = [3, 1, 2]
    for context in 1, 7, 8, 9, 63, 64, 65, 130, 700:
        lengths = [context + count for count in counts]
        masks = [tree_mask(generator, count, length) for count, length in zip(counts, lengths)]
        sizes = torch.tensor(counts), torch.tensor(lengths)
        pair = lambda: (None, packed(masks)) if form == "packed" else (flat(masks), None)
        drafts = drafts_of(*pair(), *sizes, CPU)
        for request, mask in enumerate(masks):
            for query, row in enumerate(mask):
                seen = [place for place in range(counts[request]) if drafts.bits[request, query, 0] >> place & 1]
                assert seen == row[context:].nonzero().flatten().tolist()
        for token in {0, 1, context // 2, max(context - 2, 0), context - 1}:
            for request, query in (0, 0), (0, 2), (1, 0), (2, 1):
                if token < context:
                    masks[request][query, token] = False
                    with pytest.raises(NotImplementedError, match=f"query {query} of request {request} does not see token {token}:"):
                        drafts_of(*pair(), *sizes, CPU)
                    masks[request][query, token] = True
