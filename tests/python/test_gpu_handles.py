"""When what lies on a GPU is given back."""

import pytest

from deft import _gpu
from deft._gpu import GpuHandle


@pytest.fixture
def capturing(monkeypatch):
    """Whether a graph is being captured now."""
    state = {"now": False}
    monkeypatch.setattr(_gpu, "_is_capturing", lambda: state["now"])
    monkeypatch.setattr(_gpu, "_late", [])
    return state


def test_it_is_given_back_with_its_last_user(capturing):
    given = []
    handle = GpuHandle(7, given.append)
    del handle
    assert given == [7]


def test_in_a_capture_it_is_put_off_until_the_next_one_is_made_behind_it(capturing):
    given = []
    handles = [GpuHandle(value, given.append) for value in (1, 2)]
    capturing["now"] = True
    handles.clear()
    inside = GpuHandle(3, given.append)
    assert given == []
    capturing["now"] = False
    behind = GpuHandle(4, given.append)
    assert sorted(given) == [1, 2]
    del inside, behind
    assert sorted(given) == [1, 2, 3, 4]
