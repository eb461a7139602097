"""Our wrappers in the places of FlashInfer's."""

import functools
import importlib

import pytest

PLACES = {
    "BatchDecodeWithPagedKVCacheWrapper": ("flashinfer", "flashinfer.decode"),
    "CUDAGraphBatchDecodeWithPagedKVCacheWrapper": ("flashinfer", "flashinfer.decode"),
    "fast_decode_plan": ("flashinfer", "flashinfer.decode"),
    "BatchAttention": ("flashinfer", "flashinfer.attention"),
    "BatchMLAPagedAttentionWrapper": ("flashinfer", "flashinfer.mla"),
    "MultiLevelCascadeAttentionWrapper": ("flashinfer", "flashinfer.cascade"),
    "BatchDecodeWithAttentionSinkWrapper": ("flashinfer", "flashinfer.attention"),
    **dict.fromkeys(("merge_state", "merge_states", "merge_state_in_place"), ("flashinfer", "flashinfer.cascade")),
}
# Elsewhere than in tests of prompts these are what ours are compared with.
OF_PROMPTS = {
    "BatchPrefillWithPagedKVCacheWrapper": ("flashinfer", "flashinfer.prefill"),
    "BatchPrefillWithRaggedKVCacheWrapper": ("flashinfer", "flashinfer.prefill"),
    "BatchAttentionWithAttentionSinkWrapper": ("flashinfer", "flashinfer.attention"),
}


def is_of_prompts(item):
    name = item.originalname
    in_file = item.path.name in ("test_batch_prefill.py", "test_batch_prefill_kernels.py", "test_attention_sink.py")
    return in_file or ("prefill" in name and "decode" not in name)


class Used:
    """Which wrappers a test has made, and which functions it has called."""

    def __init__(self):
        self.names = set()


def replace(device):
    """FlashInfer's other classes keep those that they have from within it."""
    import deft.flashinfer

    used = Used()
    for name, modules in PLACES.items():
        ours = getattr(deft.flashinfer, name)
        ours = _watched(ours, name, used, device) if isinstance(ours, type) else _called(ours, name, used)
        for module in modules:
            setattr(importlib.import_module(module), name, ours)
    # The tests' fixtures compile kernels that are not run.
    importlib.import_module("flashinfer").jit.build_jit_specs = lambda *arguments, **more: None
    return used


def _called(ours, name, used):
    @functools.wraps(ours)
    def call(*arguments, **more):
        used.names.add(name)
        return ours(*arguments, **more)

    return call


def _watched(ours, name, used, device):
    def __init__(self, *arguments, **more):
        used.names.add(name)
        if name == "BatchAttention" and device == "cpu":
            more.setdefault("device", "cpu")
        ours.__init__(self, *arguments, **more)

    return type(name, (ours,), {"__init__": functools.wraps(ours.__init__)(__init__), "__module__": ours.__module__})


class Prompts:
    """A plug-in of pytest: in tests of prompts ours stand in the places of FlashInfer's, which are back in the others."""

    def __init__(self, used, device):
        import deft.flashinfer

        self._pairs = {}
        for name, modules in OF_PROMPTS.items():
            theirs = getattr(importlib.import_module(modules[-1]), name)
            self._pairs[name] = theirs, _watched(getattr(deft.flashinfer, name), name, used, device)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item):
        for name, pair in self._pairs.items():
            one = pair[is_of_prompts(item)]
            for module in OF_PROMPTS[name]:
                setattr(importlib.import_module(module), name, one)
            if hasattr(item.module, name):  # imported by name
                setattr(item.module, name, one)
