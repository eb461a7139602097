import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

import deft
from deft.hf import LayerKind, LayerPlan, layer_kinds
from hf_models import make_config


def kinds_of(architecture, layers):
    return layer_kinds(make_config(architecture, num_hidden_layers=layers))


def numbers(roles, role):
    return [layer for layer, one in enumerate(roles) if one == role]


def test_two_layers_are_full_the_third_selects_and_the_one_in_the_middle_again():
    roles = LayerPlan().roles(kinds_of("llama", 32))
    assert numbers(roles, "full") == [0, 1]
    assert numbers(roles, "select") == [2, 16]
    assert len(numbers(roles, "sparse")) == 28
    assert LayerPlan().roles(kinds_of("llama", 4)) == ["full", "full", "select", "sparse"]


def test_layers_that_are_named_select():
    roles = LayerPlan(full=1, select=(1, 4)).roles(kinds_of("llama", 6))
    assert roles == ["full", "select", "sparse", "sparse", "select", "sparse"]
    assert LayerPlan(full=0, select=[0]).roles(kinds_of("llama", 2)) == ["select", "sparse"]


def test_layers_with_windows_stay_as_they_are_where_others_see_all():
    assert [kind.window is None for kind in kinds_of("gemma2", 8)] == [False, True] * 4
    roles = LayerPlan(full=2).roles(kinds_of("gemma2", 8))
    assert roles == ["full", "full", "full", "select", "full", "select", "full", "sparse"]
    # Where all have windows they select of what they see.
    assert LayerPlan(full=1, select=(1,)).roles(kinds_of("mistral", 4)) == ["full", "select", "sparse", "sparse"]


def test_the_spec_says_how_tokens_are_selected():
    plan = LayerPlan(budget=12, keep_first=3, keep_last=5, by="query_head")
    kind = LayerKind(query_heads=4, kv_heads=2, head_dim=32, scale=0.25, window=None, softcap=None)
    attention = deft.compile(kind.spec("f16", 16, plan.clause()))
    selection = deft.Selection(attention)
    assert (selection.budget, selection.lists) == (12, 4)
    assert "keep_first = 3; keep_last = 5;" in attention.spec


@pytest.mark.parametrize(
    "fields, said",
    [
        ({"budget": 0}, "budget = 0, it is at least 1"),
        ({"full": -1}, "full = -1, it is at least 0"),
        ({"budget": 67}, "keep_first and keep_last are 68 tokens, the budget is 67"),
        ({"by": "head"}, "by = 'head'"),
        ({"correct_every": 0}, "correct_every = 0 steps, it is at least 1"),
    ],
)
def test_what_makes_no_plan_is_refused(fields, said):
    with pytest.raises(deft.UsageError, match=said):
        LayerPlan(**fields)


@pytest.mark.parametrize(
    "fields, architecture, said",
    [
        ({"full": 6}, "llama", "no layer is left to select: 6 of 6 are full"),
        ({"select": ()}, "llama", "at least one layer"),
        ({"select": (4, 3)}, "llama", "layers rise"),
        ({"select": (2, 6)}, "llama", "layer 6 cannot select: layers 2 to 5 are not full by the plan"),
        ({"select": (1,)}, "llama", "layer 1 cannot select"),
        ({"select": (4,)}, "llama", "layer 2 is to be sparse, and the first that selects is 4"),
        ({"select": (2,)}, "gemma2", "layer 2 sees a window of 24 tokens, others see all"),
    ],
)
def test_a_plan_that_does_not_fit_the_model_is_refused(fields, architecture, said):
    with pytest.raises(deft.UsageError, match=said):
        LayerPlan(**fields).roles(kinds_of(architecture, 6))
