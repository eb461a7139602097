"""Tests that say `cuda` run on the CPU."""

from types import SimpleNamespace

import pytest
import torch
from torch.overrides import TorchFunctionMode


def _here(value):
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    if isinstance(value, str) and value.partition(":")[0] == "cuda":
        return "cpu"
    return value


class _Mode(TorchFunctionMode):
    def __torch_function__(self, function, types, arguments=(), more=None):
        more = {key: _here(value) for key, value in (more or {}).items()}
        if function is torch.Tensor.to:
            first = arguments[1] if len(arguments) > 1 else None
            if isinstance(first, int) and not isinstance(first, bool):
                arguments = (arguments[0], "cpu", *arguments[2:])
        elif function is torch.Tensor.cuda:
            return arguments[0]
        return function(*map(_here, arguments), **more)


class OnCpu:
    """A plug-in of pytest."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        torch.cuda.synchronize = lambda *arguments: None
        torch.cuda.memory_reserved = lambda *arguments: 0
        torch.cuda.get_device_properties = lambda *arguments: SimpleNamespace(total_memory=1)
        torch.manual_seed(0)
        with _Mode():
            return (yield)
