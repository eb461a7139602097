import pytest

pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("torch", reason="torch is not installed")

import deft
from deft.hf import LayerKind, layer_kinds
from hf_models import ARCHITECTURES, WINDOW, make_config


def test_each_layer_has_the_window_and_scale_that_its_config_says():
    plain = LayerKind(query_heads=4, kv_heads=2, head_dim=32, scale=32**-0.5, window=None, softcap=None)
    windowed = plain._replace(window=WINDOW)
    expected = {
        "llama": [plain] * 4,
        "mistral": [windowed] * 4,
        "mistral_without_window": [plain] * 4,
        "qwen2": [plain] * 4,
        "qwen2_with_windows": [plain._replace(window=one) for one in (None, None, WINDOW, WINDOW)],
        "qwen3": [plain] * 4,
        "gemma2": [plain._replace(scale=48**-0.5, softcap=5.0, window=one) for one in (WINDOW, None) * 2],
        "gemma3": [plain._replace(scale=40**-0.5, window=one) for one in (WINDOW, None) * 2],
    }
    assert expected.keys() == ARCHITECTURES.keys()
    for architecture, kinds in expected.items():
        assert layer_kinds(make_config(architecture)) == kinds, architecture


def test_a_head_has_its_part_of_the_hidden_size_where_nothing_else_is_said():
    import transformers

    config = transformers.Qwen2Config(hidden_size=64, num_attention_heads=4, num_key_value_heads=2, num_hidden_layers=1)
    [kind] = layer_kinds(config)
    assert (kind.head_dim, kind.scale) == (16, 0.25)


def test_a_kind_is_a_spec_that_compiles():
    kind = LayerKind(query_heads=6, kv_heads=2, head_dim=48, scale=1e-5, window=7, softcap=30.0)
    attention = deft.compile(kind.spec("f16", page_size=32))
    assert (attention.query_heads, attention.kv_heads, attention.head_dim) == (6, 2, 48)
    assert (attention.dtype, attention.output_dtype, attention.page_size) == ("float16", "float16", 32)
    assert attention.name == "window"


def test_a_config_of_another_type_is_refused():
    import transformers

    with pytest.raises(deft.UsageError, match="models of type `gpt2`"):
        layer_kinds(transformers.GPT2Config())


def test_attention_in_both_directions_is_refused():
    config = make_config("gemma3")
    config.use_bidirectional_attention = True
    with pytest.raises(deft.UsageError, match="use_bidirectional_attention"):
        layer_kinds(config)
