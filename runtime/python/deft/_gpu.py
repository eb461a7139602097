"""GPUs, and an attention's kernels on them."""

from __future__ import annotations

import ctypes
import sys
from ctypes import byref
from pathlib import Path
from typing import Any, Callable

from . import _abi
from ._compiled import Compiled
from ._errors import UsageError
from ._library import Handle, lib, make, sized
from ._params import make_params

_gpus: dict[int, Handle] = {}
_late: list[tuple[Callable[[Any], None], Any]] = []  # what was let go of in a capture
_MOST_KEPT = 64  # values of parameters, of one attention
# Where the registry's wheels of NVRTC keep it, two generations of them.
_NVRTC = ("nvidia/cu13/lib/libnvrtc.so.13", "nvidia/cuda_nvrtc/lib/libnvrtc.so.12")


class GpuHandle(Handle):
    """A handle of memory or kernels on a GPU. Freeing it waits for the GPU, which would break a graph's capture. Python may
    free objects of a cycle at any time, so during a capture the call is postponed."""

    __slots__ = ()

    def __init__(self, value: int, destroy: Any) -> None:
        super().__init__(value, destroy)
        if _late and not _is_capturing():
            _give_back()

    def __del__(self) -> None:
        if getattr(self, "_as_parameter_", None) and _is_capturing():
            _late.append((self._destroy, self._as_parameter_))
        else:
            super().__del__()


def _is_capturing() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def _give_back() -> None:
    while True:
        try:
            destroy, value = _late.pop()
        except IndexError:  # another thread may have given back the last one
            return
        destroy(value)


def _current_gpu() -> int:
    """Returns torch's current GPU for "cuda", because runs take torch's tensors. Without torch it is the first GPU."""
    torch = sys.modules.get("torch")
    return int(torch.cuda.current_device()) if torch is not None and torch.cuda.is_initialized() else 0


def device_index(device: Any) -> int | None:
    """Returns the GPU's number, or None for the host. Accepts 0, "cuda", "cuda:1", and torch's devices."""
    if device is None or isinstance(device, int):
        return device
    name = str(device)
    if name == "cpu":
        return None
    if name == "cuda":
        return _current_gpu()
    kind, _, index = name.partition(":")
    if kind != "cuda" or not index.isdigit():
        raise UsageError(f"there is no device `{name}`", 'it is "cpu", "cuda", "cuda:1" or a number')
    return int(index)


def gpu(index: int) -> Handle:
    opened = _gpus.get(index)
    if opened is None:
        _load_nvrtc()
        made = Handle(make(lib.deft_gpu_open, index), lib.deft_gpu_destroy)
        opened = _gpus.setdefault(index, made)  # another thread may have been first
    return opened


def _load_nvrtc() -> None:
    """Loads NVRTC if its wheel is elsewhere on Python's path. The library looks for the wheel next to this package; it finds a
    library that is already loaded by its name."""
    beside = Path(__file__).resolve().parents[1]
    for folder in sys.path:
        for name in _NVRTC:
            file = Path(folder or ".", name)
            if file.exists():
                if file.resolve() != (beside / name).resolve():
                    try:
                        ctypes.CDLL(str(file))
                    except OSError:
                        continue  # the library's own search may find another
                return


class GpuKernels:
    """An attention's kernels on one GPU, with fixed parameter values."""

    def __init__(self, attention: Compiled, device: int, tree: Any, frozen: tuple[Any, ...], invariant: bool) -> None:
        self._attention = attention
        self._device = device
        params = make_params(attention, frozen, device)
        options = sized(
            _abi.deft_gpu_load_options,
            typical_tree=tree._as_parameter_,
            params=params._as_parameter_ if params else None,
            is_invariant=invariant,
        )
        made = make(lib.deft_gpu_attention_load, gpu(device), attention, byref(options))
        self.loaded: Handle = GpuHandle(made, lib.deft_gpu_attention_destroy)
        self._own = frozen
        self._by_params: dict[tuple[Any, ...], Handle] = {frozen: self.loaded}
        self._captured: dict[tuple[Any, ...], Handle] = {}  # values that graphs read, as long as the plan lives

    def with_params(self, frozen: tuple[Any, ...]) -> Handle:
        loaded = self._by_params.get(frozen)
        if loaded is None:
            params = make_params(self._attention, frozen, self._device)
            made = make(lib.deft_gpu_attention_with_params, self.loaded, params)
            if len(self._by_params) > _MOST_KEPT + len(self._captured):  # one whose values differ at every step
                self._by_params = {self._own: self.loaded, **self._captured}
            loaded = self._by_params[frozen] = GpuHandle(made, lib.deft_gpu_attention_destroy)
        if loaded is not self.loaded and _is_capturing():
            self._captured[frozen] = loaded
        return loaded
