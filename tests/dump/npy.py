"""Reads the float32 arrays of `deftc run --dump` with nothing but the standard library."""

import array
import ast
import math
from pathlib import Path


class Array:
    """Values in C order; `rows(i, j)` is the last axis at the leading indices i, j."""

    def __init__(self, path):
        data = Path(path).read_bytes()
        if data[:8] != b"\x93NUMPY\x01\x00":
            raise ValueError(f"{path}: no .npy file of version 1.0")
        end = 10 + int.from_bytes(data[8:10], "little")
        header = ast.literal_eval(data[10:end].decode("latin-1"))
        if header["descr"] != "<f4" or header["fortran_order"]:
            raise ValueError(f"{path}: not float32 in C order: {header}")
        if end % 64:
            raise ValueError(f"{path}: the values do not begin at a multiple of 64")
        self.shape = header["shape"]
        self.values = array.array("f")
        self.values.frombytes(data[end:])
        if len(self.values) != math.prod(self.shape):
            raise ValueError(f"{path}: {len(self.values)} values, the shape {self.shape} has another number")

    def row(self, *leading):
        at = 0
        for index, length in zip(leading, self.shape):
            at = at * length + index
        width = math.prod(self.shape[len(leading) :])
        return self.values[at * width : (at + 1) * width]
