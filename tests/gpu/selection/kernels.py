"""The kernels of selection and sparse attention, compiled by NVRTC and launched through the driver: no build of the project."""

import ctypes
import struct

import torch

HEADS, KV_HEADS, DIM, PAGE = 32, 8, 128, 64
RATIO = HEADS // KV_HEADS
SCALE = 0.088388346

VARIANT = """
struct Params {};
struct Variant {
  using Params = ::Params;
  static constexpr bool kHasMask = false, kHasScore = false, kSigmoid = false;
  static constexpr float kScale = 0.088388346f;
  struct Row {};
  static __device__ __forceinline__ Row row(const Params &, int, int, int, int) { return {}; }
};
"""


def attend_text(entry, family, page, tile_q, tile_kv, stages, warps, extra=""):
    bounds = ", deft::sm90::Layout<Config>::kBlocksAtOnce" if family == "sm90" else ""
    return f"""#include "deft/attend_{family}.cuh"
namespace {{ {VARIANT}
struct Config {{
  using Query = deft::f16; using Key = deft::f16; using Value = deft::f16; using Output = deft::f16;
  static constexpr int kQueryHeads = {HEADS}, kKvHeads = {KV_HEADS}, kRatio = {RATIO};
  static constexpr int kKeyDim = {DIM}, kValueDim = {DIM}, kPageSize = {page};
  static constexpr bool kWithLse = true, kIsDealt = false;
  static constexpr int kTileQ = {tile_q}, kTileKv = {tile_kv}, kStages = {stages}, kWarps = {warps};
  {extra}
}};
}}
__device__ int deft_smem = deft::{family}::smemBytes<Config>();
extern "C" __global__ void __launch_bounds__(32 * Config::kWarps{bounds})
{entry}(const __grid_constant__ deft::abi::AttendArgs args, const __grid_constant__ Params params) {{
  deft::{family}::attend<Config, Variant>(args, params);
}}
"""


def merge_text():
    return f"""#include "deft/merge.cuh"
namespace {{
struct Config {{
  using Query = deft::f16; using Key = deft::f16; using Value = deft::f16; using Output = deft::f16;
  static constexpr int kQueryHeads = {HEADS}, kKvHeads = {KV_HEADS}, kRatio = {RATIO};
  static constexpr int kKeyDim = {DIM}, kValueDim = {DIM};
  static constexpr bool kWithLse = true;
}};
}}
__device__ int deft_smem = 0;
extern "C" __global__ void __launch_bounds__(128) merge(const __grid_constant__ deft::abi::MergeArgs args) {{
  deft::merge<Config, false>(args);
}}
"""


def select_text(entry, blocks, page, cached):
    peers = "deft::select::BlockAlone" if blocks == 1 else f"deft::select::BlockCluster<{blocks}>"
    bounds = "1024" if blocks == 1 else "1024, 2"  # as InstantiateSelect.cpp has them
    return f"""#include "deft/select.cuh"
#include "deft/select/block_alone.cuh"
#include "deft/select/block_cluster.cuh"
namespace {{
struct Config {{
  using Peers = {peers};
  static constexpr int kGroups = {KV_HEADS}, kLists = {KV_HEADS}, kPageSize = {page};
  static constexpr int kThreads = 1024, kCachedKeys = {cached};
}};
}}
__device__ int deft_smem = deft::select::Select<Config>::kSmemBytes;
extern "C" __global__ void __launch_bounds__({bounds}) {entry}(const __grid_constant__ deft::abi::SelectArgs args) {{
  deft::select::Select<Config>::run(args);
}}
"""


class Nvrtc:
    def __init__(self, templates, arch):
        self.templates, self.arch = templates, arch
        names = ["libnvrtc.so.13", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so", "libnvrtc.so.12"]
        for name in names:
            try:
                self.lib = ctypes.CDLL(name)
                break
            except OSError:
                continue
        else:
            raise SystemExit("NVRTC is not found")

    def cubin(self, text):
        lib, program, size = self.lib, ctypes.c_void_p(), ctypes.c_size_t()
        lib.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"k.cu", 0, None, None)
        options = [f"-arch={self.arch}", "-std=c++20", "-I" + self.templates, "--diag-suppress=177", "--ptxas-options=-v"]
        array = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
        status = lib.nvrtcCompileProgram(program, len(options), array)
        lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        lib.nvrtcGetProgramLog(program, log)
        if status != 0:
            raise SystemExit(log.value.decode()[:5000])
        lib.nvrtcGetCUBINSize(program, ctypes.byref(size))
        cubin = ctypes.create_string_buffer(size.value)
        lib.nvrtcGetCUBIN(program, cubin)
        return cubin.raw, log.value.decode()


class Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint), ("pad", ctypes.c_uint), ("value", ctypes.c_uint * 16)]


class LaunchConfig(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
                ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(Attribute)), ("count", ctypes.c_uint)]


CUDA = ctypes.CDLL("libcuda.so.1")


def cu(status, what):
    if status != 0:
        raise SystemExit(f"{what} failed with {status}")


class Kernel:
    def __init__(self, cubin, entry, threads):
        module, self.function, at, size = (ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t())
        cu(CUDA.cuModuleLoadData(ctypes.byref(module), cubin), "cuModuleLoadData")
        cu(CUDA.cuModuleGetFunction(ctypes.byref(self.function), module, entry.encode()), "cuModuleGetFunction")
        cu(CUDA.cuModuleGetGlobal_v2(ctypes.byref(at), ctypes.byref(size), module, b"deft_smem"), "cuModuleGetGlobal")
        smem = ctypes.c_int()
        cu(CUDA.cuMemcpyDtoH_v2(ctypes.byref(smem), at, ctypes.c_size_t(4)), "cuMemcpyDtoH")
        self.smem, self.threads = smem.value, threads
        if self.smem > 48 << 10:
            cu(CUDA.cuFuncSetAttribute(self.function, 8, self.smem), "cuFuncSetAttribute")

    def launch(self, grid, parameters, cluster=1, dependent=False):
        """`parameters`: ctypes buffers."""
        array = (ctypes.c_void_p * len(parameters))(*[ctypes.addressof(p) for p in parameters])
        attributes = (Attribute * 2)()
        count = 0
        if cluster > 1:
            attributes[count].id = 4
            attributes[count].value[0:3] = [cluster, 1, 1]
            count += 1
        if dependent:
            attributes[count].id = 6
            attributes[count].value[0] = 1
            count += 1
        config = LaunchConfig((grid, 1, 1), (self.threads, 1, 1), self.smem,
                              torch.cuda.current_stream().cuda_stream, attributes, count)
        cu(CUDA.cuLaunchKernelEx(ctypes.byref(config), self.function, array, None), "cuLaunchKernelEx")


def buffer(size, fields, align=64):
    """A zeroed struct with {offset: (format, values...)}."""
    raw = ctypes.create_string_buffer(size + align)
    start = -ctypes.addressof(raw) % align
    made = (ctypes.c_char * size).from_buffer(raw, start)
    made.keep = raw
    for offset, (form, *values) in fields.items():
        struct.pack_into("<" + form, made, offset, *values)
    return made


def ints(values):
    return torch.tensor(values, dtype=torch.int32, device="cuda").contiguous()


def tensor_map(tensor, sizes, strides, box):
    made = buffer(128, {})
    rank = len(sizes)
    cu(CUDA.cuTensorMapEncodeTiled(ctypes.byref(made), 6, rank, ctypes.c_void_p(tensor.data_ptr()),
                                   (ctypes.c_uint64 * rank)(*sizes), (ctypes.c_uint64 * (rank - 1))(*strides[1:]),
                                   (ctypes.c_uint32 * rank)(*box), (ctypes.c_uint32 * rank)(*[1] * rank), 0, 3, 2, 0),
       "cuTensorMapEncodeTiled")
    return bytes(made)


def boxes(pool, page):
    """The maps of AttendArgs::kBoxes of a pool [pages, page, KV heads, dim]."""
    token, head = 2 * KV_HEADS * DIM, 2 * DIM
    pages = pool.shape[0]
    tokens = page if page > 1 else pages
    made = b""
    for taken in (16, 32):
        sizes, strides, box = [DIM, KV_HEADS, tokens], [2, head, token], [64, 1, taken]
        if page > 1:
            sizes, strides, box = sizes + [pages], strides + [page * token], box + [1]
        made += tensor_map(pool, sizes, strides, box)
    if page % 64 == 0:
        return made + tensor_map(pool, [64, tokens, 2, KV_HEADS, pages], [2, token, 128, head, page * token],
                                 [64, 64, 2, 1, 1])
    return made + bytes(128)
