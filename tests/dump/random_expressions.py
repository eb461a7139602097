"""Expressions for random_runs.py: masks, scores, sinks and factors of V, each drawn once as a text of the language and once as a
NumPy function."""

import numpy as np

# By a run; and what indexes them.
SIZED = {"i32[tokens]": "token", "f32[tokens]": "token", "i32[queries]": "query", "f32[tokens, kv_heads]": "token, kv_head"}
OF_VALUES = ("f32", "f32[kv_heads]", "f32[tokens]", "f32[tokens, kv_heads]")  # what a factor of V may read
TABLE = 24  # elements of one
INTS = ("q_pos", "kv_pos", "head", "kv_head", "depth", "query")


class Maker:
    """Draws expressions; each is a pair of a text and a function of the values at (query, token, head)."""

    def __init__(self, rng, params):
        self.rng, self.params = rng, params

    def int_leaf(self):
        roll = self.rng.random()
        sized = [kind for kind in SIZED if kind.startswith("i32")]
        scalars = [name for name, kind in self.params.items() if kind in ("i32", "i32[kv_heads]", *sized)]
        if roll < 0.25:
            value = self.rng.choice([0, 1, 2, 3, 5, 8, 16, 31, 64, 100])
            return str(value), lambda at: np.int32(value)
        if roll < 0.4 and scalars:
            name = self.rng.choice(scalars)
            if self.params[name] == "i32":
                return name, lambda at: at[name]
            if self.params[name] in SIZED:  # wrong_rows has those of the tokens, or of the query
                return f"{name}[{SIZED[self.params[name]]}]", lambda at: at[name]
            return f"{name}[kv_head]", lambda at: at[name][at["kv_head"]]
        name = self.rng.choice(INTS if roll > 0.8 else ("q_pos", "kv_pos"))
        return name, lambda at: at[name]

    def int(self, deep):
        if deep == 0 or self.rng.random() < 0.3:
            return self.int_leaf()
        roll = self.rng.random()
        (a, f), (b, g) = self.int(deep - 1), self.int(deep - 1)
        if roll < 0.6:
            op = self.rng.choice("+-")
            return f"({a} {op} {b})", (lambda at: f(at) + g(at)) if op == "+" else (lambda at: f(at) - g(at))
        if roll < 0.72:
            divisor = self.rng.choice([2, 3, 7, 16, 64])
            return f"({a} - {a} % {divisor})", lambda at: f(at) - np.fmod(f(at), np.int32(divisor))
        if roll < 0.76:
            divisor = self.rng.choice([2, 5, 16])
            return f"floor_div({a}, {divisor})", lambda at: np.floor_divide(f(at), np.int32(divisor))
        if roll < 0.82:
            return f"abs({a})", lambda at: np.abs(f(at))
        word = self.rng.choice(["min", "max"])
        pick = np.minimum if word == "min" else np.maximum
        return f"{word}({a}, {b})", lambda at: pick(f(at), g(at))

    def relation(self, deep):
        roll = self.rng.random()
        if roll < 0.3:  # a window, as models have it
            fixed = self.rng.choice([1, 7, 16, 40, 128])
            width, f = self.int_leaf() if self.rng.random() < 0.4 else (str(fixed), lambda at: np.int32(fixed))
            return f"(q_pos - kv_pos < {width})", lambda at: at["q_pos"] - at["kv_pos"] < f(at)
        if roll < 0.4:  # a sink
            count = self.rng.choice([1, 4, 17])
            return f"(kv_pos < {count})", lambda at: at["kv_pos"] < count
        (a, f), (b, g) = self.int(deep), self.int(deep)
        op = self.rng.choice(["<", "<=", ">", ">=", "==", "!="] if self.rng.random() < 0.4 else ["<", "<=", ">", ">="])
        compare = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal}[op]
        return f"({a} {op} {b})", lambda at: compare(f(at), g(at))

    def bool(self, deep):
        roll = self.rng.random()
        if deep == 0 or roll < 0.35:
            return self.relation(min(deep, 2))
        (a, f), (b, g) = self.bool(deep - 1), self.bool(deep - 1)
        if roll < 0.6:
            return f"({a} && {b})", lambda at: np.logical_and(f(at), g(at))
        if roll < 0.85:
            return f"({a} || {b})", lambda at: np.logical_or(f(at), g(at))
        if roll < 0.93:
            return f"!{a}", lambda at: np.logical_not(f(at))
        c, h = self.relation(1)
        return f"({c} ? {a} : {b})", lambda at: np.where(h(at), f(at), g(at))

    def float_leaf(self):
        roll = self.rng.random()
        arrays = [name for name, kind in self.params.items() if kind.startswith("f32")]
        if roll < 0.4:
            value = self.rng.choice([0.0, 0.125, 0.5, 1.0, 1.5, 4.0])
            return f"{value}", lambda at: value
        if roll < 0.7 and arrays:
            name = self.rng.choice(arrays)
            kind = self.params[name]
            if kind == "f32":
                return name, lambda at: at[name]
            if kind in SIZED:
                return f"{name}[{SIZED[kind]}]", lambda at: at[name]
            if kind == f"f32[{TABLE}]":
                a, f = self.int(2)
                return f"{name}[{a}]", lambda at: at[name][np.clip(f(at), 0, TABLE - 1)]
            index = "head" if kind == "f32[query_heads]" else "kv_head"
            return f"{name}[{index}]", lambda at: at[name][at[index]]
        a, f = self.int(1)
        return f"sigmoid(0.01 * {a})", lambda at: 1 / (1 + np.exp(-0.01 * f(at)))

    def score(self, deep):
        roll = self.rng.random()
        if deep == 0 or roll < 0.25:
            return ("s", lambda at: at["s"]) if self.rng.random() < 0.85 else self.float_leaf()
        a, f = self.score(deep - 1)
        b, g = self.float_leaf()
        if roll < 0.45:
            op = self.rng.choice("+-")
            return f"({a} {op} {b})", (lambda at: f(at) + g(at)) if op == "+" else (lambda at: f(at) - g(at))
        if roll < 0.6:
            return f"({a} * {b})", lambda at: f(at) * g(at)
        if roll < 0.75:
            cap = self.rng.choice([0.5, 2.0, 30.0])
            return f"({cap} * tanh({a} / {cap}))", lambda at: cap * np.tanh(f(at) / cap)
        if roll < 0.85:
            c, h = self.relation(1)
            return f"({c} ? {a} : {b})", lambda at: np.where(h(at), f(at), g(at))
        if roll < 0.93:
            c, h = self.bool(1)
            return f"({c} ? {a} : -inf)", lambda at: np.where(h(at), f(at), -np.inf)
        slope = self.rng.choice([0.01, 0.1])
        return f"({a} - {slope} * abs(q_pos - kv_pos))", lambda at: f(at) - slope * np.abs(at["q_pos"] - at["kv_pos"])

    def factor(self):
        """Of a token's V."""
        arrays = [name for name, kind in self.params.items() if kind in OF_VALUES]
        if not arrays:
            return "(1 + 0.5 * (kv_pos % 3) - depth)", lambda at: 1 + 0.5 * np.fmod(at["kv_pos"], 3) - at["depth"]
        name = self.rng.choice(arrays)
        kind = self.params[name]
        if kind == "f32[kv_heads]":
            return f"{name}[kv_head]", lambda at: at[name][at["kv_head"]]
        return name if kind == "f32" else f"{name}[{SIZED[kind]}]", lambda at: at[name]

    def sink(self):
        """Of a head: a logit that the denominator alone sees."""
        arrays = [name for name, kind in self.params.items() if kind in ("f32", "f32[query_heads]")]
        if not arrays:
            return "0.25 * head - 1.0", lambda at: 0.25 * at["head"] - 1.0
        name = self.rng.choice(arrays)
        if self.params[name] == "f32":
            return f"4 * {name}", lambda at: 4 * at[name] + 0 * at["head"]
        return f"4 * {name}[head]", lambda at: 4 * at[name][at["head"]]
