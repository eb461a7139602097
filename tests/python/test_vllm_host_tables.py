"""What vLLM's model runners tell of their block tables, by stand-ins that move pages as they do."""

import logging
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from deft.vllm import host_tables
from deft.vllm.host_tables import listen, on_host

PAGE = 16
SECOND, FIRST = "vllm.v1.worker.gpu.", "vllm.v1.worker.block_table"


def make_classes():
    """Of the second model runner: pages of requests, of which a step gathers its own."""

    class BlockTables:
        def __init__(self, requests, pages, split=1):
            self.blocks_per_kv_block = [split]
            self.whole = torch.zeros(requests, pages, dtype=torch.int32)
            self.input_block_tables = [torch.zeros(requests, pages, dtype=torch.int32)]
            self.num_blocks = SimpleNamespace(np=np.zeros((1, requests), np.int32))

        def append_block_ids(self, req_index, new_block_ids, overwrite):
            split = self.blocks_per_kv_block[0]
            pages = [block * split + part for block in new_block_ids[0] for part in range(split)]
            start = 0 if overwrite else int(self.num_blocks.np[0, req_index])
            self.whole[req_index, start : start + len(pages)] = torch.tensor(pages, dtype=torch.int32)
            self.num_blocks.np[0, req_index] = start + len(pages)

        def gather_block_tables(self, idx_mapping, num_reqs_padded, out=None, out_ptrs=None):
            (target,) = self.input_block_tables if out is None else out
            for row in range(num_reqs_padded):
                if row >= len(idx_mapping):
                    target[row] = 0
                    continue
                pages = self.num_blocks.np[0, idx_mapping[row]]  # those behind stay what they were
                target[row, :pages] = self.whole[idx_mapping[row], :pages]
            return (target[:num_reqs_padded],)

        def get_dummy_block_tables(self, num_reqs):
            return (self.input_block_tables[0][:num_reqs],)

    class GPUModelRunner:
        def __init__(self, tables):
            self.block_tables = tables

        def prepare_attn(self, input_batch):
            return self.block_tables.gather_block_tables(input_batch.idx_mapping, num_reqs_padded=input_batch.padded)

    return BlockTables, GPUModelRunner


def make_later_classes():
    """As of 0.33: blocks are the caches', and what lies below a window becomes the null block where it is gathered."""
    earlier, runner = make_classes()

    class BlockTables(earlier):
        def __init__(self, requests, pages, reach=0):
            super().__init__(requests, pages)
            self._sliding_window_reach = [reach]
            del self.blocks_per_kv_block

        def append_block_ids(self, req_index, new_block_ids, overwrite):
            start = 0 if overwrite else int(self.num_blocks.np[0, req_index])
            end = start + len(new_block_ids[0])
            self.whole[req_index, start:end] = torch.tensor(new_block_ids[0], dtype=torch.int32)
            self.num_blocks.np[0, req_index] = end

        def gather_block_tables(self, idx_mapping, num_reqs_padded, out=None, out_ptrs=None, num_computed_tokens=None):
            (table,) = super().gather_block_tables(idx_mapping, num_reqs_padded, out, out_ptrs)
            if num_computed_tokens is not None and self._sliding_window_reach[0]:
                table[: len(idx_mapping), 0] = 0
            return (table,)

    class GPUModelRunner(runner):
        def prepare_attn(self, input_batch):
            return self.block_tables.gather_block_tables(
                input_batch.idx_mapping, num_reqs_padded=input_batch.padded, num_computed_tokens=torch.zeros(8)
            )

    return BlockTables, GPUModelRunner


@pytest.fixture
def install(monkeypatch):
    monkeypatch.setattr(host_tables, "_by_pointer", {})

    places = {"tables": SECOND + "block_table", "runner": SECOND + "model_runner", "first": FIRST}

    def install(**modules):
        for name, contents in modules.items():
            module = ModuleType(name)
            vars(module).update(contents)
            monkeypatch.setitem(sys.modules, places[name], module)

    return install


@pytest.fixture
def runner(install):
    tables, runner = make_classes()
    install(tables={"BlockTables": tables}, runner={"GPUModelRunner": runner})
    listen()
    listen()  # once is enough
    return lambda *shape, **more: runner(tables(*shape, **more))


def batch(*requests, padded=0):
    order = np.array(requests, np.int32)
    return SimpleNamespace(idx_mapping=torch.from_numpy(order.copy()), idx_mapping_np=order, padded=len(requests) + padded)


def tokens_of(*pages):
    """Lengths of so many pages, of which each last one has room."""
    return np.array(pages) * PAGE - 3


def test_a_step_of_any_requests_is_known_without_a_look_at_the_table(runner, monkeypatch):
    made = runner(8, 6)
    tables = made.block_tables
    generator = np.random.default_rng(3)
    lengths = {}
    for step in range(40):
        request = int(generator.integers(8))
        pages = generator.integers(100, size=generator.integers(3)).tolist()
        is_new = request not in lengths or lengths[request] + len(pages) > 6
        tables.append_block_ids(request, (pages,), overwrite=is_new)
        lengths[request] = len(pages) + (0 if is_new else lengths[request])
        order = generator.permutation(list(lengths))
        (table,) = made.prepare_attn(batch(*order, padded=8 - len(order)))
        if step == 10:  # by then it is believed
            monkeypatch.setattr(torch.Tensor, "cpu", lambda tensor: pytest.fail("it waits for the GPU"))
        known = on_host(table[: len(order)], tokens_of(*(lengths[request] for request in order)), PAGE).entries
        assert known.strides == tuple(known.itemsize * step for step in table.stride())
        for row, request in enumerate(order):
            assert known[row, : lengths[request]].tolist() == table[row, : lengths[request]].tolist()


def test_steps_of_some_requests_have_their_pages_and_ids(runner):
    """Some steps are without a request that gets pages meanwhile, of others nobody knows whose they are, and requests end."""
    made = runner(6, 8)
    tables, generator, lengths, seen = made.block_tables, np.random.default_rng(7), {}, {}
    for step in range(300):
        for request in generator.permutation(6)[: generator.integers(4)].tolist():
            pages = generator.integers(100, size=generator.integers(3)).tolist()
            is_new = request not in lengths or lengths[request] + len(pages) > 8
            tables.append_block_ids(request, (pages,), overwrite=is_new)
            lengths[request] = len(pages) + (0 if is_new else lengths[request])
        order = generator.permutation(list(lengths))[: generator.integers(1, 7)] if step % 3 or not seen else order
        if step % 17 == 16:
            tables.gather_block_tables(torch.tensor(order), num_reqs_padded=6)
        (table,) = made.prepare_attn(batch(*order, padded=6 - len(order)))
        known = on_host(table, tokens_of(*(lengths[request] for request in order)), PAGE)
        assert len({*known.ids.tolist()}) == len(order)
        for row, (request, number) in enumerate(zip(order.tolist(), known.ids.tolist())):
            pages = known.entries[row, : lengths[request]].tolist()
            assert pages == tables.whole[request, : lengths[request]].tolist()
            assert pages[: len(seen.get(number, []))] == seen.get(number, [])
            seen[number] = pages


def test_pages_of_the_kernels_may_be_parts_of_the_caches(runner):
    made = runner(2, 6, split=2)
    made.block_tables.append_block_ids(1, ([4, 2],), overwrite=True)
    (table,) = made.prepare_attn(batch(1))
    assert on_host(table[:1, :4], tokens_of(4), PAGE).entries.tolist() == [[8, 9, 4, 5]]


def test_tables_of_padding_and_of_drafts_are_not_known(runner):
    made = runner(4, 6)
    made.block_tables.append_block_ids(2, ([7],), overwrite=True)
    (table,) = made.prepare_attn(batch(2))
    assert on_host(table[:1], tokens_of(1), PAGE) is not None
    made.block_tables.get_dummy_block_tables(2)
    assert on_host(table[:1], tokens_of(1), PAGE) is None
    made.block_tables.gather_block_tables(torch.tensor([2]), num_reqs_padded=1)  # nobody has said whose these are
    assert on_host(table[:1], tokens_of(1), PAGE) is None
    other = torch.zeros(4, 6, dtype=torch.int32)
    made.prepare_attn(batch(2))
    made.block_tables.gather_block_tables(torch.tensor([2]), 1, out=(other,), out_ptrs=None)
    assert on_host(other[:1], tokens_of(1), PAGE) is None and on_host(table[:1], tokens_of(1), PAGE) is not None


def test_a_table_that_is_written_to_behind_its_back_is_not_believed(runner, caplog):
    made = runner(4, 6)
    made.block_tables.append_block_ids(0, ([5, 6],), overwrite=True)
    (table,) = made.prepare_attn(batch(0))
    table[0, 1] = 9
    with caplog.at_level(logging.WARNING):
        assert on_host(table[:1, :2], tokens_of(2), PAGE) is None
    assert "differ from the host's copy" in caplog.text
    made.prepare_attn(batch(0))
    assert on_host(table[:1, :2], tokens_of(2), PAGE) is None


def test_tables_of_later_releases_are_known_but_for_those_of_windows(install):
    tables, runner = make_later_classes()
    install(tables={"BlockTables": tables}, runner={"GPUModelRunner": runner})
    listen()
    for reach in (0, 32):
        made = runner(tables(4, 6, reach))
        made.block_tables.append_block_ids(2, ([7, 8, 9],), overwrite=True)
        (table,) = made.prepare_attn(batch(2))
        known = on_host(table[:1, :3], tokens_of(3), PAGE)
        if reach:
            assert known is None and table[0, :3].tolist() == [0, 8, 9]
        else:
            assert known.entries.tolist() == [[7, 8, 9]]


def test_tables_that_are_older_than_the_listener_are_not_known(install):
    tables, runner = make_classes()
    made = runner(tables(4, 6))
    install(tables={"BlockTables": tables}, runner={"GPUModelRunner": runner})
    listen()
    made.block_tables.append_block_ids(0, ([5],), overwrite=True)
    (table,) = made.prepare_attn(batch(0))
    assert on_host(table[:1], tokens_of(1), PAGE) is None


def test_methods_of_another_release_are_left_alone(install, caplog):
    tables, runner = make_classes()
    tables.append_block_ids = lambda self, request, blocks: None
    before = tables.append_block_ids
    install(tables={"BlockTables": tables}, runner={"GPUModelRunner": runner})
    with caplog.at_level(logging.INFO):
        listen()
    assert tables.append_block_ids is before and "append_block_ids has other arguments" in caplog.text


@pytest.fixture
def first_runners_table(install):
    class BlockTable:
        def __init__(self):
            self.block_table = SimpleNamespace(gpu=torch.zeros(4, 6, dtype=torch.int32), cpu=torch.zeros(4, 6, dtype=torch.int32))

        def get_device_tensor(self, num_reqs):
            return self.block_table.gpu[:num_reqs]

    install(first={"BlockTable": BlockTable})
    listen()
    return BlockTable()


def test_a_table_that_lies_where_a_former_engine_had_one_is_known(first_runners_table):
    place = first_runners_table.block_table.gpu.data_ptr()
    host_tables._by_pointer[place] = host_tables._Table(torch.zeros(4, 6, dtype=torch.int32), np.ones((4, 6), np.int32), None)
    table = first_runners_table.get_device_tensor(3)
    assert on_host(table[:3, :3], tokens_of(3, 3, 3), PAGE) is not None


def test_the_first_model_runner_has_its_tables_on_the_host(first_runners_table):
    made = first_runners_table
    for pages in ([1, 2, 3], [4, 5, 6]):
        made.block_table.cpu[2, :3] = torch.tensor(pages, dtype=torch.int32)
        made.block_table.gpu.copy_(made.block_table.cpu)
        table = made.get_device_tensor(3)
        assert on_host(table[:3, :3], tokens_of(3, 3, 3), PAGE).entries[2].tolist() == pages
