import deft
import ml_dtypes
import numpy as np
import pytest


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("source", ["float16", ml_dtypes.bfloat16])
def test_rows_are_divided_by_the_scale_of_their_head(rng, dtype, source):
    cache = rng.standard_normal((5, 16, 2, 64)).astype(source)
    scales = np.array([0.25, 2.0], "float32")
    found = deft.quantize(cache, scales, dtype)
    right = (cache.astype("float32") / scales[:, None]).astype(getattr(ml_dtypes, dtype))
    assert found.dtype == right.dtype and np.array_equal(found.view("uint8"), right.view("uint8"))
    one = deft.quantize(cache.view("uint16") if source != "float16" else cache, 0.5, dtype)
    assert np.array_equal(one.view("uint8"), (cache.astype("float32") / 0.5).astype(one.dtype).view("uint8"))
    each = rng.uniform(0.1, 4, (5, 16, 2)).astype("float32")
    of_tokens = (cache.astype("float32") / each[..., None]).astype(getattr(ml_dtypes, dtype))
    assert np.array_equal(deft.quantize(cache, each, dtype).view("uint8"), of_tokens.view("uint8"))
    bits = np.empty(cache.shape, "uint8")
    assert deft.quantize(cache, scales, dtype, out=bits) is bits and np.array_equal(bits, right.view("uint8"))


def test_what_is_too_large_becomes_the_largest_number():
    rows = np.array([[1e4, -np.inf, np.nan]], "float16")
    found = deft.quantize(rows).astype("float32")
    assert found[0, 0] == 448 and found[0, 1] == -448 and np.isnan(found[0, 2])


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e5m2, np.dtype(ml_dtypes.float8_e5m2), "float8_e5m2", "fp8_e5m2"])
def test_a_dtype_is_a_name_or_what_its_library_has(dtype):
    assert deft.quantize(ROWS, 1.0, dtype).dtype == ml_dtypes.float8_e5m2


def test_rows_of_torch_become_rows_of_torch():
    torch = pytest.importorskip("torch")
    rows = torch.randn(3, 2, 16, dtype=torch.bfloat16)
    found = deft.quantize(rows, torch.tensor([1.0, 4.0]), torch.float8_e5m2)
    right = (rows.float() / torch.tensor([1.0, 4.0])[:, None]).to(torch.float8_e5m2)
    assert found.dtype == torch.float8_e5m2 and torch.equal(found.view(torch.uint8), right.view(torch.uint8))


ROWS = np.zeros((3, 2, 16), "float16")


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"values": ROWS.astype("float32")}, "values is float32, it must be float16 or bfloat16"),
        ({"values": ROWS[..., ::2]}, r"values has strides \[32, 16, 2\], it must be packed"),
        ({"values": ROWS[0, 0]}, r"values has shape \[16\], it must be \[..., kv_heads, dim\]"),
        ({"values": 3}, "values is a int, not an array"),
        ({"dtype": np.float16}, "dtype is <class 'numpy.float16'>, it must be one of float8_e4m3fn, float8_e5m2"),
        ({"dtype": ml_dtypes.float8_e4m3}, "it must be one of float8_e4m3fn, float8_e5m2"),
        ({"out": ROWS.view("uint8").reshape(-1)[96:].reshape(3, 2, 16)}, "to overlaps with from"),
        ({"dtype": "float16"}, "dtype is 'float16', it must be one of float8_e4m3fn, float8_e5m2"),
        ({"scales": [1.0, 2.0, 3.0]}, "3 scales, not 1, 2 or 6"),
        ({"scales": [1.0, 0.0]}, "scale 1 is 0.0.*, not finite and above 0"),
        ({"scales": "x"}, "scales is 'x', it must be a number, a row of one for each KV head, or an array"),
        ({"scales": np.ones((2, 2))}, r"scales has shape \[2, 2\], it must be a number, one for each KV head, or of shape \[3, 2\]"),
        ({"out": np.zeros((3, 2, 8), "uint8")}, r"out is uint8 of shape \[3, 2, 8\], it must be float8_e4m3fn of shape \[3, 2, 16\]"),
        ({"out": np.zeros((3, 2, 16), "float16")}, "out is float16 of shape"),
    ],
)
def test_what_is_wrong_is_named(arguments, message):
    with pytest.raises(deft.UsageError, match=message):
        deft.quantize(**{"values": ROWS, **arguments})
