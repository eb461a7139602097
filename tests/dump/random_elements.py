"""Hooks of elements for random_runs.py: what `query`, `key` and `output` make of rows, each drawn once as a text of the
language and once as a NumPy function.

Such a function takes rows [..., dim] and `at`, whose values have the rows' shape but for the last axis, or none. It computes in
the rows' own precision.
"""

import math

import numpy as np


def partner(rows, are_neighbours):
    """Of each element: its neighbour, or that half a row away."""
    dim = rows.shape[-1]
    places = np.arange(dim)
    return rows[..., places ^ 1 if are_neighbours else (places + dim // 2) % dim]


def turned(rng, dim):
    """A rotation of neighbours or of halves by the row's position."""
    are_neighbours, base = rng.random() < 0.5, math.log2(rng.choice([100.0, 10000.0, 500000.0]))
    half, places = dim // 2, np.arange(dim)
    place, of_place = ("floor_div(dim, 2)", places // 2) if are_neighbours else (f"dim % {half}", places % half)
    is_first, other = ("dim % 2 == 0", "x_pair") if are_neighbours else (f"dim < {half}", "x_half")
    of_first = places % 2 == 0 if are_neighbours else places < half
    angle = f"pos * exp2(-{base!r} * ({place}) / {half})"

    def made(rows, at):
        real = rows.dtype.type
        angles = np.asarray(at["pos"])[..., None].astype(real) * np.exp2(real(-base) * of_place.astype(real) / real(half))
        others = partner(rows, are_neighbours)
        return rows * np.cos(angles) + np.where(of_first, -others, others) * np.sin(angles)

    return f"x * cos({angle}) + ({is_first} ? -{other} : {other}) * sin({angle})", made


def mixed(rng):
    a, b, c = (rng.choice([-1.0, 0.25, 0.5]) for _ in range(3))

    def made(rows, at):
        real = rows.dtype.type
        return real(a) * rows + real(b) * partner(rows, False) + real(c) * partner(rows, True)

    return f"{a} * x + {b} * x_half + {c} * x_pair", made


class Hooks:
    """What an attention has of them, and the parameters that they read, by name."""

    def __init__(self, rng, dim, value_dim, may_make_keys):
        self.dim, self.value_dim, self.params = dim, value_dim, {}
        self.query_text, self.query = self.of_rows(rng, "head") if rng.random() < 0.35 else (None, None)
        self.key_text, self.key = self.of_rows(rng, "kv_head") if may_make_keys and rng.random() < 0.3 else (None, None)
        self.output_text, self.output = self.of_output(rng) if rng.random() < 0.3 else (None, None)

    def param(self, kind):
        name = f"e{len(self.params)}"
        self.params[name] = kind
        return name

    def normed(self):
        weight = self.param(f"f32[{self.dim}]")

        def made(rows, at):
            real = rows.dtype.type
            rms = np.sqrt(np.mean(rows * rows, axis=-1, keepdims=True))
            return rows / np.sqrt(rms * rms + real(1e-6)) * at[weight].astype(real)

        return f"x * rsqrt(x_rms * x_rms + 0.000001) * {weight}[dim]", made

    def of_rows(self, rng, head):
        """Of q, or of K: a row made anew, times what its place or its head says."""
        roll = rng.random()
        text, base = turned(rng, self.dim) if roll < 0.5 else self.normed() if roll < 0.75 else mixed(rng)
        roll = rng.random()
        if roll < 0.5:
            return text, base
        if roll < 0.75:
            name = self.param("f32[query_heads]" if head == "head" else "f32[kv_heads]")
            return f"({text}) * {name}[{head}]", lambda rows, at: base(rows, at) * at[name][at[head]][..., None].astype(rows.dtype)

        def warmer(rows, at):
            real = rows.dtype.type
            steps = np.floor_divide(np.maximum(np.asarray(at["pos"]), 0), 16)[..., None].astype(real)
            return base(rows, at) * (real(1) + real(0.1) * np.log(real(1) + steps))

        return f"({text}) * (1 + 0.1 * log(1 + floor_div(max(pos, 0), 16)))", warmer

    def of_output(self, rng):
        """Of rows that are done. Linear in x, by which a checker knows what becomes of an error."""
        if rng.random() < 0.5:
            name = self.param(f"f32[{self.value_dim}]")
            return f"x * sigmoid({name}[dim]) - 0.5", lambda rows, at: rows / (1 + np.exp(-at[name])) - 0.5
        name = self.param("f32[query_heads]")
        return f"x * {name}[head] + 0.125 * (dim % 3)", lambda rows, at: (
            rows * at[name][at["head"]][..., None] + 0.125 * (np.arange(self.value_dim) % 3)
        )


def rounded(values, dtype):
    """To the nearest number of 16 bits, to nearest even."""
    if dtype == "f16":
        return values.astype(np.float16).astype(np.float64)
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(np.float64)


def made_rows(hook, rows, at, dtype):
    """Rows as q.k takes them, and by how much each element may be another number, since f32 arithmetic may round it the other way."""
    if hook is None:
        return rows, np.zeros_like(rows)
    exact = hook(rows, at)
    f32_off = np.abs(hook(rows.astype(np.float32), at) - exact)
    largest = np.maximum(np.abs(rows), np.abs(exact)).max(axis=-1, keepdims=True, initial=0)
    off = np.maximum(2.0**-16 * largest, 4 * f32_off.max(axis=-1, keepdims=True, initial=0))
    made = rounded(exact, dtype)
    return made, np.maximum(np.abs(rounded(exact - off, dtype) - made), np.abs(rounded(exact + off, dtype) - made))
