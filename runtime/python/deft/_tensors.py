"""Arrays of whoever made them, as the C ABI takes tensors: a pointer, a type, a shape, strides, a device. Nothing is
copied. None of the libraries that make arrays is imported here."""

from __future__ import annotations

import ctypes
import sys
from ctypes import POINTER, Structure, addressof, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p, py_object
from typing import Any, Callable, NamedTuple, Sequence

from . import _abi, _jax
from ._arguments import row_of
from ._errors import UsageError
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
# As ml_dtypes has them.
_NOT_NUMPYS = {DTYPE_NAMES[code]: code for code in (_abi.DEFT_BF16, _abi.DEFT_F8_E4M3, _abi.DEFT_F8_E5M2)}




def dtype_word(dtype: Any) -> str:
    """The name of a dtype, without its library's: of a text, of a class as ml_dtypes has, or of torch's or NumPy's objects."""
    return str(getattr(dtype, "__name__", dtype)).rpartition(".")[2]


class View(NamedTuple):
    """What an array is, without its elements."""

    data: int
    dtype: int  # DLPack's code * 256 + bits
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # in elements; None: packed
    device_type: int  # in DLPack's numbers
    device: int
    owner: Any = None  # to be kept until the call is over


def _code_of_kind(kind: str, bits: int) -> int:
    return {"i": 0, "u": 1, "f": 2, "V": 3, "c": 5, "b": 6}.get(kind, 3) << 8 | bits


def _code_of_numpy(dtype: Any) -> int:
    if dtype.name in _NOT_NUMPYS:
        return _NOT_NUMPYS[dtype.name]
    if not dtype.isnative:
        raise UsageError(f"an array is of dtype {dtype.str}, whose bytes stand in another order than this machine's")
    return _code_of_kind(dtype.kind, 8 * dtype.itemsize)


_numpy_codes: dict[Any, int] = {}


def _elements(strides: Sequence[int], item: int) -> tuple[int, ...]:
    if any(stride % item for stride in strides):
        raise UsageError(f"an array has strides of {tuple(strides)} bytes, which are no multiples of its elements' {item}")
    return tuple(stride // item for stride in strides)


def _of_interface(interface: Any, code: int, item: int, device_type: int, device: int) -> View:
    strides = interface.get("strides")
    if strides is not None:
        strides = _elements(strides, item)
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


def _check_means_its_elements(tensor: Any) -> None:
    """What torch notes beside the elements, a run would leave out."""
    if tensor.is_neg():
        raise UsageError("a tensor is the negative of its elements, to torch alone", "hand over tensor.resolve_neg()")
    if tensor.requires_grad and sys.modules["torch"].is_grad_enabled():
        raise UsageError("a tensor requires grad, and attention has no backward here", "use torch.no_grad(), or tensor.detach()")


def _of_torch(tensor: Any) -> View:
    if tensor.requires_grad or tensor.is_neg():
        _check_means_its_elements(tensor)
    if not _torch_codes:
        torch = sys.modules["torch"]
        for name, code in (
            ("float16", _abi.DEFT_F16),
            ("bfloat16", _abi.DEFT_BF16),
            ("float32", _abi.DEFT_F32),
            ("float64", 0x0240),
            ("int8", 0x0008),
            ("int16", 0x0010),
            ("int32", _abi.DEFT_I32),
            ("int64", 0x0040),
            ("float8_e4m3fn", _abi.DEFT_F8_E4M3),
            ("float8_e5m2", _abi.DEFT_F8_E5M2),
            ("uint8", UINT8),
            ("uint16", UINT16),
            ("uint32", UINT32),
            ("bool", BOOL),
        ):
            if hasattr(torch, name):
                _torch_codes[getattr(torch, name)] = code
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


def _of_jax(array: Any) -> View:
    _jax.check_is_computed(array)
    return _of_dlpack(array)


def _of_masked(array: Any) -> View:
    """What is masked, a run would read like all else."""
    if sys.modules["numpy"].ma.is_masked(array):
        raise UsageError("an array is masked, and its mask would be left out", "hand over array.data, or array.filled(0)")
    return _of_numpy(array)


_readers: dict[type, Callable[[Any], View]] = {}


def _reader(array: Any) -> Callable[[Any], View] | None:
    if hasattr(array, "data_ptr") and type(array).__module__.partition(".")[0] == "torch" or _is_torch(array):
        return _of_torch
    if _jax.is_jax(array):
        return _of_jax
    if hasattr(array, "__array_interface__") and hasattr(array, "dtype"):
        return _of_masked if _is_masked_array(array) else _of_numpy
    if hasattr(array, "__cuda_array_interface__") and hasattr(array, "dtype"):
        return _of_cupy
    if hasattr(array, "__dlpack__"):
        return _of_dlpack
    return None


def _is_torch(array: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def _is_masked_array(array: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(array, numpy.ma.MaskedArray)


def maker_of(array: Any) -> str:
    """"torch", "numpy", or "" for all others; of an array that was viewed."""
    return {_of_torch: "torch", _of_numpy: "numpy", _of_masked: "numpy"}.get(_readers[type(array)], "")


def view(name: str, array: Any, stream: int = 0) -> View:
    """What `array` is; an error names it. `stream`: of the GPU that will read it, for arrays whose maker asks."""
    reader = _readers.get(type(array))
    if reader is None:
        reader = _reader(array)
        if reader is None:
            raise UsageError(
                f"{name} is a {type(array).__name__}, not an array",
                "NumPy, torch, CuPy, jax and whatever has __dlpack__ will do",
            )
        _readers[type(array)] = reader
    try:
        return _of_dlpack(array, stream) if reader is _of_dlpack else reader(array)
    except UsageError as error:
        raise UsageError(f"{name}: {error.message}", error.hint) from None


class Slot:
    """A deft_tensor that is filled again and again; for one call at a time."""

    __slots__ = ("address", "_tensor", "_shape", "_strides", "_key")

    def __init__(self) -> None:
        self._shape = (c_int64 * MOST_DIMENSIONS)()
        self._strides = (c_int64 * MOST_DIMENSIONS)()
        self._tensor = sized(_abi.deft_tensor, shape=addressof(self._shape))
        self._key: Any = None
        self.address = addressof(self._tensor)

    def fill(self, data: int, dtype: int, shape: tuple[int, ...], strides: Any, device_type: int, device: int) -> int:
        tensor = self._tensor
        tensor.data = data
        key = (dtype, shape, strides, device_type, device)
        if key != self._key:
            if len(shape) > MOST_DIMENSIONS:
                raise UsageError(f"an array has {len(shape)} dimensions, at most {MOST_DIMENSIONS} are taken")
            self._shape[: len(shape)] = shape
            if strides is not None:
                self._strides[: len(strides)] = strides
            tensor.strides = None if strides is None else addressof(self._strides)
            tensor.dtype = dtype
            tensor.ndim = len(shape)
            tensor.device_type = device_type
            tensor.device_id = device
            self._key = key
        return self.address


def is_read_only(array: Any) -> bool:
    flags = getattr(array, "flags", None)
    return getattr(flags, "writeable", True) is False or _jax.is_jax(array)


def make_like(array: Any, shape: tuple[int, ...], dtype: int) -> Any:
    """A new array of the maker of `array`, on its device, of a type of the C ABI. Its elements are not set."""
    reader = _readers.get(type(array))
    if reader is _of_torch:
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, DTYPE_NAMES[dtype]), device=array.device)
    if reader in (_of_numpy, _of_masked):
        return sys.modules["numpy"].empty(shape, _numpy_dtype(dtype, array))
    if reader is _of_jax:
        return _jax.make(array, shape, DTYPE_NAMES[dtype])
    module = sys.modules.get(type(array).__module__.partition(".")[0])
    if reader is _of_cupy and hasattr(module, "empty"):
        return module.empty(shape, _numpy_dtype(dtype, array))
    raise UsageError(f"there is no way to make an array like a {type(array).__name__}", "give the arrays to write to: out=, lse=")


def _numpy_dtype(dtype: int, like: Any) -> Any:
    """What NumPy has not, by ml_dtypes if that is there, else its bits; bfloat16 as `like` has it, where it has."""
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


def stream_of(array: Any, device: int) -> int:
    """The stream on which whoever made the array computes now."""
    reader = _readers.get(type(array))
    if reader is _of_torch:
        return int(sys.modules["torch"].cuda.current_stream(device).cuda_stream)
    if reader is _of_cupy:
        cupy = sys.modules.get("cupy")
        return int(cupy.cuda.get_current_stream().ptr) if cupy else 0
    return 0


class Ints(NamedTuple):
    """Numbers of 32 bits in the host's memory."""

    address: int
    count: int
    owner: Any


def ints(name: str, values: Any) -> Ints:
    """A list of numbers, or an array of int32 on the host, packed, as it is."""
    if isinstance(values, (list, tuple, range)):
        array = row_of(name, values)
        return Ints(addressof(array), len(values), array)
    seen = view(name, values)
    if seen.dtype != _abi.DEFT_I32:
        raise UsageError(f"{name} is {dtype_text(seen.dtype)}, it must be int32")
    if seen.device_type != _abi.DEFT_DEVICE_CPU:
        raise UsageError(f"{name} is on a GPU, it is read on the host", "hand over a copy: .cpu()")
    if len(seen.shape) != 1 or not is_packed(seen):
        raise UsageError(f"{name} has shape {list(seen.shape)} and strides {strides_text(seen)}, it must be one packed row")
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
