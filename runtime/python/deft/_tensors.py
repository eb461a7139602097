"""Views any library's arrays as tensors of the C ABI: a pointer, a type, a shape, strides, a device. Nothing is copied, and no
array library is imported here."""

from __future__ import annotations

import ctypes
import sys
from array import array as PlainArray
from ctypes import POINTER, Structure, addressof, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p, py_object
from typing import Any, Callable, NamedTuple

from . import _abi, _ops
from ._arguments import row_of
from ._errors import UsageError, wrong
from ._library import sized

MOST_DIMENSIONS = 8
UINT8, UINT16, UINT32, BOOL = 0x0108, 0x0110, _abi.DEFT_U32, 0x0608
DTYPE_NAMES = {
    _abi.DEFT_F16: "float16",
    _abi.DEFT_BF16: "bfloat16",
    _abi.DEFT_F32: "float32",
    _abi.DEFT_I32: "int32",
    _abi.DEFT_F8_E4M3: "float8_e4m3fn",
    _abi.DEFT_F8_E5M2: "float8_e5m2",
}
_CODES = {
    **{name: code for code, name in DTYPE_NAMES.items()},
    **{"float64": 0x0240, "int8": 0x0008, "int16": 0x0010, "int64": 0x0040},
    **{"uint8": UINT8, "uint16": UINT16, "uint32": UINT32, "bool": BOOL},
}
EIGHT_BIT = {code: name for code, name in DTYPE_NAMES.items() if name in _ops.EIGHT_BIT_DTYPES.values()}
# As ml_dtypes has them.
_NOT_NUMPYS = {name: code for code, name in {_abi.DEFT_BF16: "bfloat16", **EIGHT_BIT}.items()}


def dtype_word(dtype: Any) -> str:
    """Returns the name of a dtype without its library's name. Accepts a text, a class of ml_dtypes, or a dtype of torch or
    NumPy."""
    return str(getattr(dtype, "__name__", dtype)).rpartition(".")[2]


class View(NamedTuple):
    """The description of an array, without its elements."""

    data: int
    dtype: int  # DLPack's code * 256 + bits
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # in elements; None: packed
    device_type: int  # in DLPack's numbers
    device: int
    owner: Any = None  # to be kept until the call is over

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Lets numpy.asarray read the array without a copy."""
        kind, bits = divmod(self.dtype, 256)
        if self.device_type != _abi.DEFT_DEVICE_CPU or kind > 2:
            raise AttributeError("NumPy reads whole numbers and IEEE floats in the host's memory")
        strides = None if self.strides is None else tuple(stride * bits // 8 for stride in self.strides)
        return {"version": 3, "typestr": f"<{'iuf'[kind]}{bits // 8}", "shape": self.shape, "data": (self.data, True), "strides": strides}


def _code_of_numpy(dtype: Any) -> int:
    if dtype.name in _NOT_NUMPYS:
        return _NOT_NUMPYS[dtype.name]
    if not dtype.isnative:
        raise UsageError(f"an array is of dtype {dtype.str}, whose bytes are not in this machine's order")
    return {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}.get(dtype.kind, 3) << 8 | 8 * dtype.itemsize


_numpy_codes: dict[Any, int] = {}


def _of_interface(interface: Any, code: int, item: int, device_type: int, device: int) -> View:
    strides = interface.get("strides")
    if strides is not None:
        if any(map(item.__rmod__, strides)):
            raise UsageError(f"an array has strides of {tuple(strides)} bytes, which are no multiples of its elements' {item}")
        strides = tuple(map(item.__rfloordiv__, strides))
    return View(interface["data"][0], code, interface["shape"], strides, device_type, device)


def _of_numpy(array: Any) -> View:
    dtype = array.dtype
    code = _numpy_codes.get(dtype)
    if code is None:
        code = _numpy_codes[dtype] = _code_of_numpy(dtype)
    return _of_interface(array.__array_interface__, code, dtype.itemsize, _abi.DEFT_DEVICE_CPU, 0)


def _of_cupy(array: Any) -> View:
    dtype = array.dtype
    device = getattr(getattr(array, "device", None), "id", 0)
    return _of_interface(
        array.__cuda_array_interface__, _code_of_numpy(dtype), dtype.itemsize, _abi.DEFT_DEVICE_CUDA, device
    )


_torch_codes: dict[Any, int] = {}
_TORCH_DEVICES = {"cpu": _abi.DEFT_DEVICE_CPU, "cuda": _abi.DEFT_DEVICE_CUDA}


def _of_torch(tensor: Any) -> View:
    # What torch notes beside the elements, a run would leave out.
    if tensor.is_neg():
        raise UsageError("a tensor is negated lazily by torch", "pass tensor.resolve_neg()")
    if tensor.requires_grad and sys.modules["torch"].is_grad_enabled():
        raise UsageError("a tensor requires grad, and attention has no backward here", "use torch.no_grad(), or tensor.detach()")
    if not _torch_codes:
        torch = sys.modules["torch"]
        _torch_codes.update({getattr(torch, name): code for name, code in _CODES.items() if hasattr(torch, name)})
    device = tensor.device
    kind = _TORCH_DEVICES.get(device.type)
    if kind is None:
        raise UsageError(f"a tensor is on {device}, deft runs on cpu and cuda")
    if tensor.layout is not sys.modules["torch"].strided:
        raise UsageError(f"a tensor has the layout {tensor.layout}, it must be strided")
    strides = None if tensor.is_contiguous() else tensor.stride()
    code = _torch_codes.get(tensor.dtype, 0x0300)
    return View(tensor.data_ptr(), code, tuple(tensor.shape), strides, kind, device.index or 0)


class _DLTensor(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = c_void_p
_capsule_pointer.argtypes = [py_object, c_char_p]


def _of_dlpack(array: Any, stream: int = 0) -> View:
    on_gpu = array.__dlpack_device__()[0] == _abi.DEFT_DEVICE_CUDA
    # The producer makes the stream wait for the array. 1 is the legacy default stream, on which such an array's run is put.
    capsule = array.__dlpack__(stream=stream or 1) if on_gpu else array.__dlpack__()
    tensor = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else None
    data = (tensor.data or 0) + tensor.byte_offset
    return View(data, tensor.code << 8 | tensor.bits, shape, strides, tensor.device_type, tensor.device_id, capsule)


# jax's arrays come in by DLPack. As they never change, what a run writes is an array of its own.


def _is_jax(array: Any) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(array, jax.Array)


def _make_by_jax(array: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """Makes a new array on the device of `array`. The caller writes it before any other code sees it."""
    jax = sys.modules["jax"]
    if array.device.platform != "cpu":
        # Nothing would tell jax to wait for a stream that is not its own.
        raise UsageError(
            f"q is jax's on {array.device}, a result of jax's is made on processors only",
            "share q with torch (torch.from_dlpack), or give out= of torch's",
        )
    # Memory of jax's: from_dlpack would copy another's that does not begin at a multiple of 64 bytes.
    return jax.numpy.empty(shape, dtype, device=array.device).block_until_ready()


def _of_jax(array: Any) -> View:
    if isinstance(array, sys.modules["jax"].core.Tracer):
        raise UsageError("an array is traced by jax, but a run needs computed arrays", "call it outside jax.jit, or by jax.pure_callback")
    array.block_until_ready()  # jax computes behind the caller's back on processors, too
    return _of_dlpack(array)


def _of_masked(array: Any) -> View:
    """Refuses an array with masked elements, because a run would read these like all others."""
    if sys.modules["numpy"].ma.is_masked(array):
        raise UsageError("an array is masked, and its mask would be left out", "pass array.data, or array.filled(0)")
    return _of_numpy(array)


_readers: dict[type, Callable[[Any], View]] = {}


def _reader(array: Any) -> Callable[[Any], View] | None:
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(array, torch.Tensor):
        return _of_torch
    if _is_jax(array):
        return _of_jax
    if hasattr(array, "__array_interface__") and hasattr(array, "dtype"):
        return _of_masked if numpy is not None and isinstance(array, numpy.ma.MaskedArray) else _of_numpy
    if hasattr(array, "__cuda_array_interface__") and hasattr(array, "dtype"):
        return _of_cupy
    if hasattr(array, "__dlpack__"):
        return _of_dlpack
    return None


def maker_of(array: Any) -> str:
    """Returns "torch", "numpy", or "" for all other libraries, for an array that was viewed."""
    return {_of_torch: "torch", _of_numpy: "numpy", _of_masked: "numpy"}.get(_readers[type(array)], "")


def view(name: str, array: Any, stream: int = 0) -> View:
    """Describes `array`; errors use `name`. `stream` is the reading stream of the GPU, for arrays that must synchronise with
    it."""
    reader = _readers.get(type(array))
    if reader is None:
        reader = _reader(array)
        if reader is None:
            known = "pass an array of NumPy, torch, CuPy, jax or anything with __dlpack__"
            raise wrong(name, f"is a {type(array).__name__}, not an array", known)
        _readers[type(array)] = reader
    try:
        return _of_dlpack(array, stream) if reader is _of_dlpack else reader(array)
    except UsageError as error:
        raise UsageError(f"{name}: {error.message}", error.hint, name) from None


def int32_view(name: str, array: Any, stream: int = 0) -> View:
    seen = view(name, array, stream)
    if seen.dtype != _abi.DEFT_I32:
        raise wrong(name, f"is {dtype_text(seen.dtype)}, it must be int32")
    return seen


def expect_on_host(name: str, seen: View, must: str, hint: str = "") -> None:
    if seen.device_type != _abi.DEFT_DEVICE_CPU:
        raise wrong(name, f"is on a GPU, it {must}", hint)


def expect_writable(name: str, array: Any) -> None:
    if array is not None and (getattr(getattr(array, "flags", None), "writeable", True) is False or _is_jax(array)):
        raise wrong(name, "may not be written to")


class Slot:
    """A deft_tensor that is filled again and again; only one call at a time may use it."""

    __slots__ = ("address", "_tensor", "_shape", "_strides", "_key")

    def __init__(self) -> None:
        self._shape = (c_int64 * MOST_DIMENSIONS)()
        self._strides = (c_int64 * MOST_DIMENSIONS)()
        self._tensor = sized(_abi.deft_tensor, shape=addressof(self._shape))
        self._key: Any = None
        self.address = addressof(self._tensor)

    def fill(self, seen: View) -> int:
        tensor = self._tensor
        tensor.data = seen.data
        if seen[1:6] != self._key:
            _, tensor.dtype, shape, strides, tensor.device_type, tensor.device_id, _ = seen
            if len(shape) > MOST_DIMENSIONS:
                raise UsageError(f"an array has {len(shape)} dimensions, at most {MOST_DIMENSIONS} are taken")
            tensor.ndim = len(shape)
            self._shape[: len(shape)] = shape
            tensor.strides = None if strides is None else addressof(self._strides)
            if strides is not None:
                self._strides[: len(strides)] = strides
            self._key = seen[1:6]
        return self.address


def make_like(array: Any, shape: tuple[int, ...], dtype: int) -> Any:
    """Makes a new array with the library and on the device of `array`, in a type of the C ABI. Its elements are not set."""
    reader = _readers.get(type(array))
    if dtype not in DTYPE_NAMES:  # that of an array that the library is about to refuse
        dtype = _abi.DEFT_F32
    if reader is _of_torch:
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, DTYPE_NAMES[dtype]), device=array.device)
    if reader in (_of_numpy, _of_masked):
        return sys.modules["numpy"].empty(shape, _numpy_dtype(dtype, array))
    if reader is _of_jax:
        return _make_by_jax(array, shape, DTYPE_NAMES[dtype])
    module = sys.modules.get(type(array).__module__.partition(".")[0])
    if reader is _of_cupy and hasattr(module, "empty"):
        return module.empty(shape, _numpy_dtype(dtype, array))
    raise UsageError(f"there is no way to make an array like a {type(array).__name__}", "give the arrays to write to: out=, lse=")


def _numpy_dtype(dtype: int, like: Any) -> Any:
    """Returns NumPy's dtype. For a type that NumPy lacks it is that of ml_dtypes if installed, else an unsigned integer of as
    many bits. For bfloat16 it is the dtype of `like`, if that one holds bfloat16."""
    name = DTYPE_NAMES[dtype]
    if name not in _NOT_NUMPYS:
        return name
    if dtype == _abi.DEFT_BF16 and _code_of_numpy(like.dtype) in (_abi.DEFT_BF16, UINT16):
        return like.dtype
    try:
        import ml_dtypes
    except ImportError:
        return f"uint{dtype & 0xFF}"
    return getattr(ml_dtypes, name)


def converted(name: str, array: Any, dtype: int, stream: int) -> Any:
    """Converts an array of torch or NumPy to another type of the C ABI; on a GPU in stream order."""
    maker = maker_of(array)
    if maker == "numpy":
        return array.astype(_numpy_dtype(dtype, array))
    if maker != "torch":
        kind = f"{dtype_text(view(name, array).dtype)} of a {type(array).__name__}"
        raise wrong(name, f"is {kind}, arrays of NumPy and torch are converted", f"pass {DTYPE_NAMES[dtype]}")
    torch = sys.modules["torch"]
    wanted = getattr(torch, DTYPE_NAMES[dtype])
    if not array.is_cuda or stream == stream_of(array, array.device.index or 0):
        return array.to(wanted)
    with torch.cuda.stream(torch.cuda.ExternalStream(stream, device=array.device)):
        return array.to(wanted)


def current_stream(device: int) -> int:
    """Returns torch's current stream, without making a stream object if torch has used CUDA: each step and each layer's run
    calls this."""
    torch = sys.modules["torch"]
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if raw is not None and torch.cuda.is_initialized():
        return int(raw(device))
    return int(torch.cuda.current_stream(device).cuda_stream)


def stream_or_current(stream: int | None, device: int) -> int:
    torch = sys.modules.get("torch")
    if stream is None and torch is not None and torch.cuda.is_initialized():
        return current_stream(device)
    return stream or 0


def stream_of(array: Any, device: int) -> int:
    """Returns the current stream of the array's library."""
    reader = _readers.get(type(array))
    if reader is _of_torch:
        return current_stream(device)
    if reader is _of_cupy:
        cupy = sys.modules.get("cupy")
        return int(cupy.cuda.get_current_stream().ptr) if cupy else 0
    return 0


class Ints(NamedTuple):
    """An array of 32-bit numbers in host memory."""

    address: int
    count: int
    owner: Any


def ints(name: str, values: Any) -> Ints:
    """Converts a list of numbers to an array; uses a packed int32 array on the host as it is."""
    if type(values) is PlainArray and values.typecode == "i":
        return Ints(*values.buffer_info(), values)
    if isinstance(values, (list, tuple, range)):
        array = row_of(name, values)
        return Ints(addressof(array), len(values), array)
    seen = int32_view(name, values)
    expect_on_host(name, seen, "is read on the host", "pass a copy: .cpu()")
    if len(seen.shape) != 1 or not is_packed(seen):
        raise wrong(name, f"has shape {list(seen.shape)} and strides {strides_text(seen)}, it must be one packed row")
    return Ints(seen.data, seen.shape[0], (values, seen.owner))


def is_packed(seen: View) -> bool:
    if seen.strides is None:
        return True
    expected = 1
    for size, stride in zip(reversed(seen.shape), reversed(seen.strides)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def strides_text(seen: View) -> str:
    return "packed" if seen.strides is None else str(list(seen.strides))


def dtype_text(code: int) -> str:
    known = DTYPE_NAMES.get(code)
    if known:
        return known
    kind = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}.get(code >> 8)
    return f"{kind}{code & 0xFF}" if kind and kind != "bool" else kind or "of a type that DLPack does not know"
