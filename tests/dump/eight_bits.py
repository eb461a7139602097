"""8-bit floats for random_runs.py: rows with scales (LANGUAGE.md, rule A11) and products (rule A12), by arithmetic of NumPy."""

import numpy as np


def to_e4m3(values):
    """To the nearest number of e4m3, ties to even, of magnitudes up to 448."""
    exponent = np.maximum(np.frexp(values)[1] - 1, -6)
    return np.ldexp(np.rint(np.ldexp(values, 3 - exponent)), exponent - 3)


def as_bytes(rows, off):
    """Rows of q as products of 8 bits take them, over a power of two a row, and by how much elements may be other numbers."""
    largest = np.abs(rows).max(axis=-1, keepdims=True)
    scale = np.exp2(np.ceil(np.log2(np.maximum(largest, 2.0**-126) / 448)))
    made = scale * to_e4m3(rows / scale)
    others = [np.clip((rows + sign * off) / scale, -448, 448) for sign in (-1, 1)]
    return made, np.where(off > 0, np.max([np.abs(scale * to_e4m3(other) - made) for other in others], axis=0), 0)


def byte_weights_off(weights, reach, lengths):
    """Of each head's sum of values of such `lengths` [token][head]. Three times it is more than what half a unit of e4m3 moves the
    sum, or half its least number, over 2^8, of the largest weight."""
    least = 2.0**-19 * weights.max(axis=1, initial=0)
    return 2.0**-5 * reach + least * np.linalg.norm(lengths, axis=0)


def are_scaled(attention, k, scales):
    """Whether each element is a number of at most four significant bits, times its scale, in float32."""
    of_columns = np.repeat(scales.astype("float32"), attention.scale_columns, axis=-1)
    mantissa, exponent = np.frexp(k.astype("float32") / of_columns)
    number = np.ldexp(np.round(mantissa * 16) / 16, exponent).astype("float32")
    return np.all(np.abs(number * of_columns - k) <= 2.0**-22 * np.abs(k))
