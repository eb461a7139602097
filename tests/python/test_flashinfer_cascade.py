import pytest

torch = pytest.importorskip("torch")

from deft.flashinfer import MultiLevelCascadeAttentionWrapper
from plain_attention import assert_close, plain

PAGE = 4
WORKSPACE = torch.empty(0)


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(7)


def ints(values):
    return torch.tensor(values, dtype=torch.int32)


class Levels:
    """Each level: the queries of its groups, and the tokens that each group has."""

    def __init__(self, generator, queries, tokens, layout="NHD", dtype=torch.float16):
        self.queries, self.tokens, self.layout = queries, tokens, layout
        self.pages, page = [], 0
        for level in tokens:
            self.pages.append([])
            for count in level:
                own = -(-count // PAGE)
                # Pages in any order: a table is not a range.
                self.pages[-1].append(list(range(page, page + own))[::-1])
                page += own
        shape = (page, 2, PAGE, 2, 32) if layout == "NHD" else (page, 2, 2, PAGE, 32)
        self.cache = torch.randn(shape, generator=generator).to(dtype)
        self.q = torch.randn(queries[-1][-1], 4, 32, generator=generator).to(dtype)

    def plan(self, wrapper, **more):
        indices = [ints([page for group in level for page in group]) for level in self.pages]
        indptr = [ints([0, *map(len, level)]).cumsum(0, dtype=torch.int32) for level in self.pages]
        last = [ints([(count - 1) % PAGE + 1 for count in level]) for level in self.tokens]
        more.setdefault("q_data_type", self.cache.dtype)
        wrapper.plan([ints(level) for level in self.queries], indptr, indices, last, 4, 2, 32, PAGE, **more)

    def _tokens(self, which, level, group):
        cache = self.cache[:, which] if self.layout == "NHD" else self.cache[:, which].transpose(1, 2)
        return cache[self.pages[level][group]].reshape(-1, 2, 32)[: self.tokens[level][group]]

    def right(self, causal=False, **more):
        outs = []
        for query in range(len(self.q)):
            k, v, hidden = [], [], 0
            for level, starts in enumerate(self.queries):
                group = next(g for g in range(len(starts) - 1) if starts[g] <= query < starts[g + 1])
                k.append(self._tokens(0, level, group))
                v.append(self._tokens(1, level, group))
                if causal and level == len(self.queries) - 1:
                    hidden = starts[group + 1] - 1 - query
            k, v = torch.cat(k), torch.cat(v)
            outs.append(plain(self.q[query : query + 1], k, v, [max(len(k) - hidden, 0)], **more)[0])
        return torch.cat(outs)


ONE = [[0, 1, 2, 5]], [[13, 4, 7]]
TWO = [[0, 4], [0, 1, 2, 4]], [[10], [3, 4, 9]]
THREE = [[0, 6], [0, 2, 6], [0, 1, 2, 3, 6]], [[9], [5, 8], [1, 2, 6, 7]]
FOREST = [[0, 3, 5], [0, 1, 2, 3, 4, 5]], [[8, 3], [1, 2, 3, 4, 5]]
CROSSED = [[0, 3, 6], [0, 2, 4, 6], [0, 1, 2, 3, 4, 5, 6]], [[6, 7], [3, 4, 5], [1, 2, 3, 1, 2, 3]]
WITH_NOTHING = [[0, 4], [0, 1, 2, 4]], [[0], [3, 0, 9]]


@pytest.mark.parametrize("queries, tokens", [ONE, TWO, THREE, FOREST, CROSSED, WITH_NOTHING])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("layout", ["NHD", "HND"])
def test_a_query_sees_its_group_of_each_level(generator, queries, tokens, causal, layout):
    levels = Levels(generator, queries, tokens, layout)
    wrapper = MultiLevelCascadeAttentionWrapper(len(tokens), WORKSPACE, layout)
    levels.plan(wrapper, causal=causal)
    assert_close(wrapper.run(levels.q, levels.cache), levels.right(causal))


def test_several_levels_are_the_one_level_of_whole_paths(generator):
    queries, tokens = [[0, 6], [0, 2, 6], [0, 1, 2, 3, 6]], [[8], [4, 12], [1, 2, 6, 7]]
    levels = Levels(generator, queries, tokens)
    whole = Levels(generator, [queries[-1]], [[13, 14, 26, 27]])
    parents = [0, 0, 1, 1]
    whole.cache, whole.q = levels.cache, levels.q
    whole.pages = [[levels.pages[0][0] + levels.pages[1][parents[leaf]] + levels.pages[2][leaf] for leaf in range(4)]]
    outs = []
    for given in (levels, whole):
        wrapper = MultiLevelCascadeAttentionWrapper(len(given.tokens), WORKSPACE)
        given.plan(wrapper, causal=True)
        outs.append(wrapper.run(levels.q, levels.cache))
    assert_close(outs[0], outs[1].double())


def test_caps_scales_pairs_and_the_next_step(generator):
    levels = Levels(generator, *TWO, dtype=torch.bfloat16)
    wrapper = MultiLevelCascadeAttentionWrapper(2, WORKSPACE)
    pair = levels.cache[:, 0], levels.cache[:, 1]
    for tokens in ([10], [3, 4, 9]), ([10], [4, 3, 10]), ([7], [1, 1, 1]):
        levels.tokens = tokens
        levels.pages = [[group[: -(-count // PAGE)] for group, count in zip(*both)] for both in zip(levels.pages, tokens)]
        levels.plan(wrapper, sm_scale=0.3, logits_soft_cap=4.0)
        assert_close(wrapper.forward(levels.q, pair), levels.right(scale=0.3, soft_cap=4.0))


def test_the_tree_has_a_node_for_each_group(generator):
    levels = Levels(generator, *THREE)
    wrapper = MultiLevelCascadeAttentionWrapper(3, WORKSPACE)
    levels.plan(wrapper)
    tree = wrapper._steps._work.tree
    assert len(tree.nodes) == 7 and tree.tokens == 38 and tree.query_count == 6


def test_with_buffers_for_graphs_pages_stay_at_one_address(generator):
    levels = Levels(generator, *TWO)
    buffers = [[torch.zeros(count, dtype=torch.int32) for count in counts] for counts in ([2, 4], [2, 4], [8, 9], [1, 3])]
    wrapper = MultiLevelCascadeAttentionWrapper(2, WORKSPACE, "NHD", True, *buffers)
    assert wrapper.is_cuda_graph_enabled
    addresses = set()
    for _ in range(2):
        levels.plan(wrapper)
        addresses.add(wrapper._steps._work.pages.data_ptr())
        assert_close(wrapper.run(levels.q, levels.cache), levels.right())
    assert len(addresses) == 1
    levels.pages[1][2] = levels.pages[1][2] * 4
    with pytest.raises(ValueError, match="level 1 has 14 pages, its buffer has 9"):
        levels.plan(wrapper)


@pytest.mark.parametrize(
    "name, value",
    [("pos_encoding_mode", "ALIBI"), ("window_left", 3), ("q_data_type", torch.float32), ("kv_data_type", torch.bfloat16)],
)
def test_what_plan_does_not_take_is_named(generator, name, value):
    wrapper = MultiLevelCascadeAttentionWrapper(2, WORKSPACE)
    with pytest.raises(NotImplementedError, match=name):
        Levels(generator, *TWO).plan(wrapper, **{name: value})


def test_levels_that_are_missing_are_named(generator):
    with pytest.raises(ValueError, match="qo_indptr_arr has 2 levels, the wrapper was made for 3"):
        Levels(generator, *TWO).plan(MultiLevelCascadeAttentionWrapper(3, WORKSPACE))


@pytest.mark.parametrize("graphs", [False, True])
@pytest.mark.parametrize(
    "level, change, message",
    [
        (0, {1: [0, 4]}, "level 0: paged_kv_indptr goes from 0 to 4, it must rise from 0 to at most 3, the pages of the level"),
        (1, {1: [0, 1, 2, 6]}, "level 1: paged_kv_indptr goes from 0 to 6, it must rise from 0 to at most 5"),
        (1, {1: [0, 2, 1, 5]}, "level 1: paged_kv_indptr goes from 0 to 5, it must rise"),
        (1, {1: [-1, 1, 2, 5]}, "level 1: paged_kv_indptr goes from -1 to 5"),
        (1, {1: [0, 1, 5]}, "level 1: qo_indptr has 4 entries, paged_kv_indptr has 3"),
        (0, {0: [1, 4]}, r"level 0: qo_indptr is \[1, 4\], it must rise from 0"),
        (1, {0: [0, 2, 1, 4]}, r"level 1: qo_indptr is \[0, 2, 1, 4\], it must rise from 0"),
        (0, {3: [0]}, f"level 0: request 0: 0 tokens in its last page, must be 1 to {PAGE}"),
        (1, {3: [3, 4, PAGE + 1]}, f"level 1: request 2: {PAGE + 1} tokens in its last page, must be 1 to {PAGE}"),
        (1, {3: [3, 4]}, "level 1: indptr has 4 entries, there must be 3 for 2 requests"),
    ],
)
def test_a_level_that_reads_what_is_not_its_own_is_named(generator, graphs, level, change, message):
    levels = Levels(generator, *TWO)
    given = [
        [ints([0, 4]), ints([0, 1, 2, 4])],
        [ints([0, 3]), ints([0, 1, 2, 5])],
        [ints([2, 1, 0]), ints([3, 4, 7, 6, 5])],
        [ints([2]), ints([3, 4, 1])],
    ]
    buffers = [[torch.zeros(count, dtype=torch.int32) for count in counts] for counts in ([2, 4], [2, 4], [8, 9], [1, 3])]
    wrapper = MultiLevelCascadeAttentionWrapper(2, WORKSPACE, "NHD", graphs, *buffers)
    wrapper.plan(*given, 4, 2, 32, PAGE)
    assert_close(wrapper.run(levels.q, levels.cache), levels.right())
    for which, values in change.items():
        given[which][level] = ints(values)
    given[2][0] = ints([0, 0, 0])  # what a plan that fails does not bring where the last one reads
    with pytest.raises(ValueError, match=message):
        wrapper.plan(*given, 4, 2, 32, PAGE)
    assert_close(wrapper.run(levels.q, levels.cache), levels.right())


def test_a_window_that_no_position_can_reach_is_none(generator):
    levels = Levels(generator, *TWO)
    wrapper = MultiLevelCascadeAttentionWrapper(2, WORKSPACE)
    levels.plan(wrapper, window_left=2**31 - 1)
    assert_close(wrapper.run(levels.q, levels.cache), levels.right())


def test_numbers_that_do_not_fit_into_32_bits_are_named():
    wrapper = MultiLevelCascadeAttentionWrapper(1, WORKSPACE)
    good = {"qo_indptr": ints([0, 1]), "paged_kv_indptr": ints([0, 1]), "paged_kv_indices_arr[0]": ints([0]), "paged_kv_last_page_len": ints([1])}
    for name, values in good.items():
        wrong = {**good, name: values.long() + 2**33}
        with pytest.raises(ValueError, match=f"{name.replace('[', '.').replace(']', '.')}.* which does not fit into int32"):
            wrapper.plan(*([one] for one in wrong.values()), 4, 2, 32, PAGE)
