"""When what lies on a GPU is given back."""

from ctypes import c_void_p, cast

import pytest

from deft import _gpu
from deft._gpu import GpuHandle
from deft._library import lib


class Given(list):
    """The function of the library that gives a plan back, which notes what it is called with instead."""

    parameters = lib.deft_gpu_plan_destroy.parameters

    def __call__(self, plan):
        self.append(cast(plan, c_void_p).value)


@pytest.fixture
def capturing(monkeypatch):
    """Whether a graph is being captured now."""
    state = {"now": False}
    monkeypatch.setattr(_gpu, "_is_capturing", lambda: state["now"])
    monkeypatch.setattr(_gpu, "_late", [])
    return state


def test_it_is_given_back_with_its_last_user(capturing):
    given = Given()
    handle = GpuHandle(7, given)
    del handle
    assert given == [7]


def test_in_a_capture_it_is_put_off_until_the_next_one_is_made_behind_it(capturing):
    given = Given()
    handles = [GpuHandle(value, given) for value in (1, 2)]
    capturing["now"] = True
    handles.clear()
    inside = GpuHandle(3, given)
    assert given == []
    capturing["now"] = False
    behind = GpuHandle(4, given)
    assert sorted(given) == [1, 2]
    del inside, behind
    assert sorted(given) == [1, 2, 3, 4]
