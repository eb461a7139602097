#pragma once

#include <cstddef>

/// The part of CUDA's driver interface that is used here, declared by hand: the library is loaded at run
/// time, so builds need no toolkit, and every tool starts without a driver. Names and values are those of
/// cuda.h; if that file is present, a test compares them.
namespace deft::device::cu {

using Result = int;
using Device = int;
using DevicePtr = unsigned long long;
struct ContextTag;
struct ModuleTag;
struct FunctionTag;
struct StreamTag;
struct EventTag;
struct GraphTag;
struct GraphExecTag;
using Context = ContextTag *;
using Module = ModuleTag *;
using Function = FunctionTag *;
using Stream = StreamTag *;
using Event = EventTag *;
using Graph = GraphTag *;
using GraphExec = GraphExecTag *;

constexpr Result kSuccess = 0;
constexpr Result kOutOfMemory = 2;
constexpr Result kNoDevice = 100;
constexpr Result kNoBinaryForGpu = 209;
constexpr Result kNotReady = 600;
constexpr int kAttributeMultiprocessorCount = 16;
constexpr int kAttributeL2CacheSize = 38;
constexpr int kAttributeComputeMajor = 75;
constexpr int kAttributeComputeMinor = 76;
constexpr int kFunctionMaxDynamicShared = 8;
constexpr int kTensorFloat16 = 6;
constexpr int kTensorBfloat16 = 9;
constexpr int kTensorNoInterleave = 0;
constexpr int kTensorSwizzle128 = 3;
constexpr int kTensorPromote128 = 2;
constexpr int kTensorFillZeros = 0;
constexpr unsigned kStreamDefault = 0;
constexpr unsigned kStreamNonBlocking = 1;
constexpr unsigned kEventDefault = 0;
constexpr unsigned kEventDisableTiming = 2;
constexpr unsigned kHostAllocPortable = 1; ///< page-locked for every context
constexpr unsigned kHostAllocDeviceMap = 2;
constexpr int kCaptureStatusNone = 0;
constexpr int kCaptureThreadLocal = 1;
constexpr int kAllocationPinned = 1;
constexpr int kHandleFile = 1; ///< a file descriptor
constexpr int kLocationDevice = 1;
constexpr int kAccessReadWrite = 3;
constexpr int kGranularityRecommended = 1;

/// CUmemAllocationProp and CUmemAccessDesc.
using Allocation = unsigned long long;
struct MemoryLocation {
  int type = kLocationDevice;
  int id = 0;
};
struct AllocationProperties {
  int type = kAllocationPinned;
  int handleTypes = kHandleFile;
  MemoryLocation location;
  void *windows = nullptr;
  unsigned char flags[8] = {};
};
struct MemoryAccess {
  MemoryLocation location;
  int flags = kAccessReadWrite;
};

/// CUlaunchConfig and its attributes.
struct LaunchAttribute {
  int id = 0;
  int padding = 0;
  int value[16] = {};
};
struct LaunchConfig {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned smemBytes = 0;
  Stream stream = nullptr;
  LaunchAttribute *attributes = nullptr;
  unsigned attributeCount = 0;
};
constexpr int kLaunchClusterDimension = 4; ///< value: blocks in x, y and z
constexpr int kLaunchProgrammaticSerialization = 6;

/// One line a function: member, symbol in the library, parameters.
#define DEFT_DRIVER_FUNCTIONS(X)                                                                             \
  X(init, "cuInit", (unsigned flags))                                                                        \
  X(driverGetVersion, "cuDriverGetVersion", (int *version))                                                  \
  X(getErrorName, "cuGetErrorName", (Result error, const char **name))                                       \
  X(getErrorString, "cuGetErrorString", (Result error, const char **text))                                   \
  X(deviceGetCount, "cuDeviceGetCount", (int *count))                                                        \
  X(deviceGet, "cuDeviceGet", (Device * device, int ordinal))                                                \
  X(deviceGetName, "cuDeviceGetName", (char *name, int length, Device device))                               \
  X(deviceGetAttribute, "cuDeviceGetAttribute", (int *value, int attribute, Device device))                  \
  X(deviceTotalMem, "cuDeviceTotalMem_v2", (std::size_t *bytes, Device device))                              \
  X(primaryCtxRetain, "cuDevicePrimaryCtxRetain", (Context * context, Device device))                        \
  X(primaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (Device device))                                      \
  X(ctxSetCurrent, "cuCtxSetCurrent", (Context context))                                                     \
  X(ctxGetCurrent, "cuCtxGetCurrent", (Context * context))                                                   \
  X(ctxPushCurrent, "cuCtxPushCurrent_v2", (Context context))                                                \
  X(ctxPopCurrent, "cuCtxPopCurrent_v2", (Context * context))                                                \
  X(memAlloc, "cuMemAlloc_v2", (DevicePtr * pointer, std::size_t bytes))                                     \
  X(memFree, "cuMemFree_v2", (DevicePtr pointer))                                                            \
  X(memHostAlloc, "cuMemHostAlloc", (void **pointer, std::size_t bytes, unsigned flags))                     \
  X(memFreeHost, "cuMemFreeHost", (void *pointer))                                                           \
  X(memHostGetDevicePointer, "cuMemHostGetDevicePointer_v2",                                                 \
    (DevicePtr * address, void *pointer, unsigned flags))                                                    \
  X(memcpyHtoDAsync, "cuMemcpyHtoDAsync_v2",                                                                 \
    (DevicePtr to, const void *from, std::size_t bytes, Stream stream))                                      \
  X(memcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void *to, DevicePtr from, std::size_t bytes, Stream stream))   \
  X(memsetD8Async, "cuMemsetD8Async", (DevicePtr to, unsigned char value, std::size_t bytes, Stream stream)) \
  X(memGetAllocationGranularity, "cuMemGetAllocationGranularity",                                            \
    (std::size_t *bytes, const AllocationProperties *of, int option))                                        \
  X(memCreate, "cuMemCreate",                                                                                \
    (Allocation * made, std::size_t bytes, const AllocationProperties *of, unsigned long long flags))        \
  X(memRelease, "cuMemRelease", (Allocation allocation))                                                     \
  X(memExport, "cuMemExportToShareableHandle",                                                               \
    (void *handle, Allocation allocation, int type, unsigned long long flags))                               \
  X(memImport, "cuMemImportFromShareableHandle", (Allocation * opened, void *handle, int type))              \
  X(memAddressReserve, "cuMemAddressReserve",                                                                \
    (DevicePtr * address, std::size_t bytes, std::size_t alignment, DevicePtr wanted,                        \
     unsigned long long flags))                                                                              \
  X(memAddressFree, "cuMemAddressFree", (DevicePtr address, std::size_t bytes))                              \
  X(memMap, "cuMemMap",                                                                                      \
    (DevicePtr address, std::size_t bytes, std::size_t offset, Allocation allocation,                        \
     unsigned long long flags))                                                                              \
  X(memUnmap, "cuMemUnmap", (DevicePtr address, std::size_t bytes))                                          \
  X(memSetAccess, "cuMemSetAccess",                                                                          \
    (DevicePtr address, std::size_t bytes, const MemoryAccess *access, std::size_t count))                   \
  X(moduleLoadData, "cuModuleLoadData", (Module * module, const void *image))                                \
  X(moduleUnload, "cuModuleUnload", (Module module))                                                         \
  X(moduleGetFunction, "cuModuleGetFunction", (Function * function, Module module, const char *name))        \
  X(funcSetAttribute, "cuFuncSetAttribute", (Function function, int attribute, int value))                   \
  X(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor",                                                \
    (int *blocks, Function function, int threads, std::size_t smemBytes))                                    \
  X(launchKernel, "cuLaunchKernel",                                                                          \
    (Function function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY,    \
     unsigned blockZ, unsigned smemBytes, Stream stream, void **params, void **extra))                       \
  X(launchKernelEx, "cuLaunchKernelEx",                                                                      \
    (const LaunchConfig *config, Function function, void **params, void **extra))                            \
  X(tensorMapEncodeTiled, "cuTensorMapEncodeTiled",                                                          \
    (void *map, int type, unsigned rank, void *address, const unsigned long long *sizes,                     \
     const unsigned long long *strides, const unsigned *box, const unsigned *elementStrides, int interleave, \
     int swizzle, int promotion, int fill))                                                                  \
  X(streamCreate, "cuStreamCreate", (Stream * stream, unsigned flags))                                       \
  X(streamDestroy, "cuStreamDestroy_v2", (Stream stream))                                                    \
  X(streamSynchronize, "cuStreamSynchronize", (Stream stream))                                               \
  X(streamIsCapturing, "cuStreamIsCapturing", (Stream stream, int *status))                                  \
  X(streamBeginCapture, "cuStreamBeginCapture_v2", (Stream stream, int mode))                                \
  X(streamEndCapture, "cuStreamEndCapture", (Stream stream, Graph * graph))                                  \
  X(graphInstantiate, "cuGraphInstantiateWithFlags",                                                         \
    (GraphExec * executable, Graph graph, unsigned long long flags))                                         \
  X(graphLaunch, "cuGraphLaunch", (GraphExec executable, Stream stream))                                     \
  X(graphDestroy, "cuGraphDestroy", (Graph graph))                                                           \
  X(graphExecDestroy, "cuGraphExecDestroy", (GraphExec executable))                                          \
  X(eventCreate, "cuEventCreate", (Event * event, unsigned flags))                                           \
  X(eventDestroy, "cuEventDestroy_v2", (Event event))                                                        \
  X(eventRecord, "cuEventRecord", (Event event, Stream stream))                                              \
  X(eventQuery, "cuEventQuery", (Event event))                                                               \
  X(eventSynchronize, "cuEventSynchronize", (Event event))                                                   \
  X(eventElapsedTime, "cuEventElapsedTime", (float *milliseconds, Event start, Event end))

/// The functions of a loaded driver.
struct Api {
// A declarator takes no parentheses around its parameters. NOLINTNEXTLINE(bugprone-macro-parentheses)
#define DEFT_DECLARE(member, symbol, parameters) Result(*member) parameters = nullptr;
  DEFT_DRIVER_FUNCTIONS(DEFT_DECLARE)
#undef DEFT_DECLARE
};

} // namespace deft::device::cu
