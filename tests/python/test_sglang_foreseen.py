"""Steps of SGLang's graphs are planned before their page tables have come to the host, and are right whatever comes."""

import random

import pytest

torch = pytest.importorskip("torch")

import numpy as np
from deft.sglang import foreseen
from deft.sglang.foreseen import Foreseen, Reading
from deft.sglang.forwards import Forwards
from sglang_fakes import Requests, make, registry  # noqa: F401


NO_FORWARDS = Forwards(None)


@pytest.fixture
def read(monkeypatch):
    """The tables that were read."""
    seen, make = [], Reading.__init__
    monkeypatch.setattr(Reading, "__init__", lambda self, table, memory: (seen.append(table.tolist()), make(self, table, memory))[1])
    return seen


@pytest.fixture
def learned(monkeypatch):
    """The lengths of the steps that were planned with the table that came."""
    seen, learn = [], Foreseen.learn
    monkeypatch.setattr(Foreseen, "learn", lambda self, lengths, *rest: (seen.append(lengths.tolist()), learn(self, lengths, *rest))[1])
    return seen


def begin(page_size, counts=(17, 17, 17)):
    backend, made = make(page_size)
    generator = torch.Generator().manual_seed(29)
    requests = Requests(made, page_size)
    batch = requests.step(list(counts), generator, "extend")
    backend.init_forward_metadata(batch)
    requests.check(backend, batch, generator, backend.forward_extend)
    backend.init_cuda_graph_state(4, 4)
    return backend, requests, generator


def decode(backend, requests, generator, counts=(1, 1, 1), names=None):
    """With the requests' names within a forward of the runner."""
    batch = requests.step(list(counts), generator, "decode")
    if names is None:
        backend.init_forward_metadata_out_graph(batch)
    else:
        batch.rids = names
        requests.made.forward(batch, backend.init_forward_metadata_out_graph)
    requests.check(backend, batch, generator, backend.forward_decode)


@pytest.mark.parametrize("page_size", [1, 8])
def test_requests_that_go_on_are_planned_ahead(registry, learned, page_size):
    backend, requests, generator = begin(page_size)
    for _ in range(20):  # two pages of 8 begin
        decode(backend, requests, generator)
    assert learned == [[18, 18, 18]]


def test_a_request_in_the_place_of_another_one_is_seen_by_its_pages(registry, learned):
    backend, requests, generator = begin(8)
    decode(backend, requests, generator)
    requests.rows = [requests.rows[i] for i in (1, 2, 0)]  # lengths look as if the same ones went on
    decode(backend, requests, generator)
    decode(backend, requests, generator)
    assert learned == [[18, 18, 18], [19, 19, 19]]


def test_one_that_leaves_and_one_that_joins(registry, learned):
    backend, requests, generator = begin(8)
    for counts in (1, 1, 1), (0, 1, 1), (0, 1, 1), (1, 1, 1), (1, 1, 1):
        decode(backend, requests, generator, counts)
    assert learned == [[18, 18, 18], [19, 19], [19, 21, 21]]


def test_random_steps_are_right(registry, learned):
    draw = random.Random(5)
    for _ in range(6):
        backend, requests, generator = begin(draw.choice([1, 8]))
        for _ in range(20):
            event = draw.random()
            if event < 0.15:
                requests.rows = draw.sample(requests.rows, 3)
                requests.lengths = [min(requests.lengths)] * 3
            decode(backend, requests, generator, [1, 1, 1] if event < 0.8 else draw.choice([[0, 1, 1], [1, 0, 1]]))
    assert len(learned) < 90  # of 120 steps


def test_what_cannot_be_planned_ahead_waits_for_the_table(registry, learned, monkeypatch):
    backend, requests, generator = begin(8)
    decode(backend, requests, generator)
    steps = backend._steps
    plan, failed = steps.plan, []

    def fail_once(work, *variants):
        if not failed:
            failed.append(work)
            raise ValueError("no such requests")
        plan(work, *variants)

    monkeypatch.setattr(steps, "plan", fail_once)
    decode(backend, requests, generator)
    assert failed and learned == [[18, 18, 18], [19, 19, 19]]


def new_names(*names):
    """Objects of their own, as each request has."""
    return ["".join([name, "-"]) for name in names]


@pytest.mark.parametrize("page_size", [1, 8])
def test_tables_of_the_same_requests_are_not_read(registry, learned, read, page_size):
    backend, requests, generator = begin(page_size)
    names = new_names("a", "b", "c")
    for _ in range(20):
        decode(backend, requests, generator, names=list(names))
    assert learned == [[18, 18, 18]] and len(read) == 1


def test_a_request_with_the_name_of_one_that_ended_is_another_one(registry, learned, read):
    backend, requests, generator = begin(8)
    decode(backend, requests, generator, names=new_names("a", "b", "c"))
    requests.rows = [requests.rows[i] for i in (1, 2, 0)]
    decode(backend, requests, generator, names=new_names("a", "b", "c"))
    assert learned == [[18, 18, 18], [19, 19, 19]] and len(read) == 2


def test_behind_another_forward_the_table_is_read(registry, learned, read):
    backend, requests, generator = begin(8)
    names = new_names("a", "b", "c")
    for _ in range(3):
        decode(backend, requests, generator, names=names)
    requests.made.forward(requests, lambda batch: None)  # of a prompt, which other pages may come of
    requests.rows = [requests.rows[i] for i in (1, 2, 0)]
    for _ in range(3):
        decode(backend, requests, generator, names=names)
    assert learned == [[18, 18, 18], [21, 21, 21]] and len(read) == 2


def test_a_certain_step_that_cannot_be_planned_reads_the_table(registry, learned, read, monkeypatch):
    backend, requests, generator = begin(8)
    names = new_names("a", "b", "c")
    decode(backend, requests, generator, names=names)
    steps, plan = backend._steps, backend._steps.plan
    failing = [ValueError("no such requests")]
    monkeypatch.setattr(steps, "plan", lambda *given: plan(*given) if not failing else (_ for _ in ()).throw(failing.pop()))
    for _ in range(3):
        decode(backend, requests, generator, names=names)
    assert learned == [[18, 18, 18], [19, 19, 19]] and len(read) == 2


def test_random_steps_with_names_are_right(registry, read):
    draw = random.Random(7)
    for _ in range(6):
        backend, requests, generator = begin(draw.choice([1, 8]))
        names = new_names("a", "b", "c")
        for _ in range(25):
            event = draw.random()
            if event < 0.1:  # others, with the same names and lengths
                requests.rows = draw.sample(requests.rows, 3)
                requests.lengths, names = [min(requests.lengths)] * 3, new_names("a", "b", "c")
            elif event < 0.2:
                requests.made.forward(requests, lambda batch: None)
            counts = [1, 1, 1] if event < 0.85 else draw.choice([[0, 1, 1], [1, 0, 1]])
            active = [name for name, count in zip(names, counts) if count]
            decode(backend, requests, generator, counts, active if draw.random() < 0.95 else None)
    assert len(read) < 110  # of 150 steps


def test_large_tables_are_not_compared(monkeypatch):
    monkeypatch.setattr(foreseen, "MOST_ENTRIES", 5)
    ahead, lengths = Foreseen(8, 3, 12, 100), np.array([17, 9, 1], np.int32)
    assert ahead.learn(lengths, torch.ones((3, 3), dtype=torch.int32), NO_FORWARDS).shape == (3, 3)
    assert ahead.foresee(lengths + 1, NO_FORWARDS) is None


def test_large_tables_of_the_same_requests_are_foreseen(monkeypatch):
    monkeypatch.setattr(foreseen, "MOST_ENTRIES", 5)
    ahead, lengths, names = Foreseen(8, 3, 12, 100), np.array([17, 9, 1], np.int32), new_names("a", "b", "c")
    forwards = Forwards(None)
    forwards.number, forwards.requests = 1, names
    ahead.learn(lengths, torch.ones((3, 3), dtype=torch.int32), forwards)
    for step in range(1, 20):
        forwards.number = 1 + step
        expected = ahead.foresee(lengths + step, forwards)
        assert expected.is_certain and expected.begins_pages == (step in (8, 16))
        ahead.go_on(lengths + step, forwards)


def test_pages_that_begin_are_nobody_else_s():
    ahead, lengths = Foreseen(8, 2, 12, 100), np.array([16, 8], np.int32)
    ahead.learn(lengths, torch.tensor([[1, 2], [1, 0]], dtype=torch.int32), NO_FORWARDS)
    first, second = ahead.foresee(lengths + 1, NO_FORWARDS).table.tolist()
    assert first == [1, 2, 100] and second[:2] != [1, 2]
    assert ahead.is_right(lengths + 1, torch.tensor([[1, 2, 7], [1, 8, 9]], dtype=torch.int32), NO_FORWARDS)
    assert not ahead.is_right(lengths + 2, torch.tensor([[1, 2, 7], [1, 5, 9]], dtype=torch.int32), NO_FORWARDS)
