#include "runtime/device/DriverApi.h"

#include <cuda.h>

#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

namespace deft::device {
namespace {

static_assert(cu::kSuccess == CUDA_SUCCESS);
static_assert(cu::kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(cu::kNoDevice == CUDA_ERROR_NO_DEVICE);
static_assert(cu::kNoBinaryForGpu == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(cu::kNotReady == CUDA_ERROR_NOT_READY);
static_assert(cu::kAttributeMultiprocessorCount == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(cu::kAttributeL2CacheSize == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
static_assert(cu::kAttributeComputeMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(cu::kAttributeComputeMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(cu::kFunctionMaxDynamicShared == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(cu::kStreamDefault == CU_STREAM_DEFAULT);
static_assert(cu::kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(cu::kEventDefault == CU_EVENT_DEFAULT);
static_assert(cu::kEventDisableTiming == CU_EVENT_DISABLE_TIMING);
static_assert(cu::kHostAllocPortable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(cu::kHostAllocDeviceMap == CU_MEMHOSTALLOC_DEVICEMAP);
static_assert(cu::kCaptureStatusNone == CU_STREAM_CAPTURE_STATUS_NONE);
static_assert(cu::kCaptureThreadLocal == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
static_assert(cu::kAllocationPinned == CU_MEM_ALLOCATION_TYPE_PINNED);
static_assert(cu::kHandleFile == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
static_assert(cu::kLocationDevice == CU_MEM_LOCATION_TYPE_DEVICE);
static_assert(cu::kAccessReadWrite == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
static_assert(cu::kGranularityRecommended == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
static_assert(sizeof(cu::AllocationProperties) == sizeof(CUmemAllocationProp));
static_assert(offsetof(cu::AllocationProperties, location) == offsetof(CUmemAllocationProp, location));
static_assert(sizeof(cu::MemoryAccess) == sizeof(CUmemAccessDesc));
static_assert(sizeof(cu::Allocation) == sizeof(CUmemGenericAllocationHandle));
static_assert(cu::kLaunchProgrammaticSerialization == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
static_assert(sizeof(cu::LaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(sizeof(cu::LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(cu::kTensorFloat16 == CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
static_assert(cu::kTensorBfloat16 == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
static_assert(cu::kTensorNoInterleave == CU_TENSOR_MAP_INTERLEAVE_NONE);
static_assert(cu::kTensorSwizzle128 == CU_TENSOR_MAP_SWIZZLE_128B);
static_assert(cu::kTensorPromote128 == CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
static_assert(cu::kTensorFillZeros == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
static_assert(sizeof(cu::Device) == sizeof(CUdevice));
static_assert(sizeof(cu::DevicePtr) == sizeof(CUdeviceptr));
static_assert(sizeof(cu::Context) == sizeof(CUcontext));

/// The same number of parameters of the same sizes, in the same order.
template <typename A, typename B> struct SameShape : std::false_type {};
template <typename R, typename... A, typename S, typename... B> struct SameShape<R (*)(A...), S (*)(B...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(A) == sizeof...(B))
      return ((sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>) && ...);
    else
      return false;
  }();
};

template <typename Ours, typename Theirs> void expectSame(Ours, Theirs, const char *symbol) {
  EXPECT_TRUE((SameShape<Ours, Theirs>::value)) << symbol;
}

TEST(DriverApiTest, DeclarationsHaveTheShapeOfTheHeader) {
  const cu::Api api;
  // cuda.h maps plain names to the versions that it declares, so both spellings below are the same function.
#define DEFT_SAME(member, name) expectSame(api.member, decltype(&name){}, #name)
  DEFT_SAME(init, cuInit);
  DEFT_SAME(driverGetVersion, cuDriverGetVersion);
  DEFT_SAME(getErrorName, cuGetErrorName);
  DEFT_SAME(getErrorString, cuGetErrorString);
  DEFT_SAME(deviceGetCount, cuDeviceGetCount);
  DEFT_SAME(deviceGet, cuDeviceGet);
  DEFT_SAME(deviceGetName, cuDeviceGetName);
  DEFT_SAME(deviceGetAttribute, cuDeviceGetAttribute);
  DEFT_SAME(deviceTotalMem, cuDeviceTotalMem);
  DEFT_SAME(primaryCtxRetain, cuDevicePrimaryCtxRetain);
  DEFT_SAME(primaryCtxRelease, cuDevicePrimaryCtxRelease);
  DEFT_SAME(ctxSetCurrent, cuCtxSetCurrent);
  DEFT_SAME(ctxGetCurrent, cuCtxGetCurrent);
  DEFT_SAME(ctxPushCurrent, cuCtxPushCurrent);
  DEFT_SAME(ctxPopCurrent, cuCtxPopCurrent);
  DEFT_SAME(memAlloc, cuMemAlloc);
  DEFT_SAME(memFree, cuMemFree);
  DEFT_SAME(memGetAllocationGranularity, cuMemGetAllocationGranularity);
  DEFT_SAME(memCreate, cuMemCreate);
  DEFT_SAME(memRelease, cuMemRelease);
  DEFT_SAME(memExport, cuMemExportToShareableHandle);
  DEFT_SAME(memImport, cuMemImportFromShareableHandle);
  DEFT_SAME(memAddressReserve, cuMemAddressReserve);
  DEFT_SAME(memAddressFree, cuMemAddressFree);
  DEFT_SAME(memMap, cuMemMap);
  DEFT_SAME(memUnmap, cuMemUnmap);
  DEFT_SAME(memSetAccess, cuMemSetAccess);
  DEFT_SAME(memHostAlloc, cuMemHostAlloc);
  DEFT_SAME(memFreeHost, cuMemFreeHost);
  DEFT_SAME(memHostGetDevicePointer, cuMemHostGetDevicePointer);
  DEFT_SAME(memcpyHtoDAsync, cuMemcpyHtoDAsync);
  DEFT_SAME(memcpyDtoHAsync, cuMemcpyDtoHAsync);
  DEFT_SAME(memsetD8Async, cuMemsetD8Async);
  DEFT_SAME(moduleLoadData, cuModuleLoadData);
  DEFT_SAME(moduleUnload, cuModuleUnload);
  DEFT_SAME(moduleGetFunction, cuModuleGetFunction);
  DEFT_SAME(funcSetAttribute, cuFuncSetAttribute);
  DEFT_SAME(occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor);
  DEFT_SAME(launchKernel, cuLaunchKernel);
  DEFT_SAME(launchKernelEx, cuLaunchKernelEx);
  DEFT_SAME(tensorMapEncodeTiled, cuTensorMapEncodeTiled);
  DEFT_SAME(streamCreate, cuStreamCreate);
  DEFT_SAME(streamDestroy, cuStreamDestroy);
  DEFT_SAME(streamSynchronize, cuStreamSynchronize);
  DEFT_SAME(streamIsCapturing, cuStreamIsCapturing);
  DEFT_SAME(streamBeginCapture, cuStreamBeginCapture);
  DEFT_SAME(streamEndCapture, cuStreamEndCapture);
  DEFT_SAME(graphInstantiate, cuGraphInstantiateWithFlags);
  DEFT_SAME(graphLaunch, cuGraphLaunch);
  DEFT_SAME(graphDestroy, cuGraphDestroy);
  DEFT_SAME(graphExecDestroy, cuGraphExecDestroy);
  DEFT_SAME(eventCreate, cuEventCreate);
  DEFT_SAME(eventDestroy, cuEventDestroy);
  DEFT_SAME(eventRecord, cuEventRecord);
  DEFT_SAME(eventQuery, cuEventQuery);
  DEFT_SAME(eventSynchronize, cuEventSynchronize);
  DEFT_SAME(eventElapsedTime, cuEventElapsedTime);
#undef DEFT_SAME
}

} // namespace
} // namespace deft::device
