"""Our wrappers in the places of FlashInfer's."""

import functools

PLACES = {
    "BatchDecodeWithPagedKVCacheWrapper": ("flashinfer", "flashinfer.decode"),
    "CUDAGraphBatchDecodeWithPagedKVCacheWrapper": ("flashinfer", "flashinfer.decode"),
    "fast_decode_plan": ("flashinfer", "flashinfer.decode"),
    "BatchAttention": ("flashinfer", "flashinfer.attention"),
    "MultiLevelCascadeAttentionWrapper": ("flashinfer", "flashinfer.cascade"),
}


class Used:
    """Which wrappers a test has made."""

    def __init__(self):
        self.names = set()


def replace(device):
    """FlashInfer's other classes keep those that they have from within it."""
    import importlib

    import deft.flashinfer

    used = Used()
    for name, modules in PLACES.items():
        ours = getattr(deft.flashinfer, name)
        if isinstance(ours, type):
            ours = _watched(ours, name, used, device)
        for module in modules:
            setattr(importlib.import_module(module), name, ours)
    # The tests' fixtures compile kernels that are not run.
    importlib.import_module("flashinfer").jit.build_jit_specs = lambda *arguments, **more: None
    return used


def _watched(ours, name, used, device):
    def __init__(self, *arguments, **more):
        used.names.add(name)
        if name == "BatchAttention" and device == "cpu":
            more.setdefault("device", "cpu")
        ours.__init__(self, *arguments, **more)

    return type(name, (ours,), {"__init__": functools.wraps(ours.__init__)(__init__), "__module__": ours.__module__})
