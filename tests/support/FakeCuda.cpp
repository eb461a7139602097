#include "tests/support/FakeCuda.h"

#include "runtime/device/DriverApi.h"
#include "runtime/exec/MergeStates.h"
#include "runtime/plan/PlaceDrafts.h"
#include "tests/support/FakeKernels.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

namespace deft::fake_cuda {
namespace {

namespace cu = device::cu;
using cu::Result;

constexpr int kDevices = 3;
constexpr Result kInvalidValue = 1, kNotFound = 500;

/// One for the library: that is what a driver is.
struct State {
  std::mutex mutex;
  std::vector<Call> calls;
  std::map<std::string, int> failures;
  std::map<void *, std::size_t> memory;
  std::map<void *, std::string> functions;
  std::map<void *, std::vector<std::function<void()>>> captures; ///< by stream; under way
  std::map<void *, std::vector<std::function<void()>>> graphs;
  std::optional<Variant> variant;
  bool eventsAreDone = true;
  std::set<void *> recordedEvents;
  int contexts[kDevices] = {};
  std::atomic<std::size_t> handles = 0;
};

State &state() {
  static State state;
  return state;
}

thread_local std::vector<cu::Context> current;

cu::Context top() { return current.empty() ? nullptr : current.back(); }

/// What a call of the function is to return.
Result resultOf(const State &all, const std::string &function) {
  const auto failure = all.failures.find(function);
  return failure == all.failures.end() ? cu::kSuccess : failure->second;
}

template <typename Handle> Handle newHandle() {
  return reinterpret_cast<Handle>(0x1000 + 16 * ++state().handles);
}

Result allocate(const char *name, void **pointer, std::size_t bytes) {
  if (const Result failed = note({.name = name, .bytes = bytes}))
    return failed;
  *pointer = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(*pointer, 0xcd, bytes);
  const std::lock_guard lock(state().mutex);
  state().memory[*pointer] = bytes;
  return cu::kSuccess;
}

Result release(const char *name, void *pointer) {
  if (const Result failed = note({.name = name}))
    return failed;
  const std::lock_guard lock(state().mutex);
  if (state().memory.erase(pointer) == 0)
    return kInvalidValue;
  std::free(pointer);
  return cu::kSuccess;
}

/// "32,8,128,16,bf16,0.088", and groups and lists behind it where it selects.
Variant variantOfEnvironment() {
  Variant variant;
  const char *text = std::getenv("DEFT_FAKE_CUDA_VARIANT");
  char dtype[5] = {};
  if (text && std::sscanf(text, "%d,%d,%d,%d,%4[^,],%f,%d,%d,%d", &variant.queryHeads, &variant.kvHeads,
                          &variant.headDim, &variant.pageSize, dtype, &variant.scale, &variant.worthGroups,
                          &variant.lists, &variant.latentDim) >= 6)
    variant.isBf16 = std::strcmp(dtype, "bf16") == 0;
  return variant;
}

Variant variantNow() {
  const std::lock_guard lock(state().mutex);
  if (!state().variant)
    state().variant = variantOfEnvironment();
  return *state().variant;
}

template <typename Args> Args readArgs(void **params) {
  Args args;
  std::memcpy(&args, params[0], sizeof args);
  return args;
}

/// As the kernel's name ends: f32, f16 or bf16.
deft::exec::StateType typeOf(const std::string &kernel) {
  return kernel.ends_with("_f32")   ? deft::exec::StateType::F32
         : kernel.ends_with("_f16") ? deft::exec::StateType::F16
                                    : deft::exec::StateType::BF16;
}

/// Of a graph, with all that it holds.
Result forget(void *graph) {
  std::vector<std::function<void()>> held; // let go outside of the lock
  const std::lock_guard lock(state().mutex);
  if (const auto found = state().graphs.find(graph); found != state().graphs.end()) {
    held = std::move(found->second);
    state().graphs.erase(found);
  }
  return cu::kSuccess;
}

template <typename T> T *pointerOf(cu::DevicePtr address) { return reinterpret_cast<T *>(address); }

} // namespace

int note(Call call) {
  State &all = state();
  const std::lock_guard lock(all.mutex);
  call.context = top();
  const Result result = resultOf(all, call.name);
  all.calls.push_back(std::move(call));
  return result;
}

void enqueue(const void *stream, std::function<void()> work) {
  {
    const std::lock_guard lock(state().mutex);
    if (const auto capture = state().captures.find(const_cast<void *>(stream));
        capture != state().captures.end()) {
      capture->second.push_back(std::move(work));
      return;
    }
  }
  work();
}

std::vector<Call> takeCalls() {
  const std::lock_guard lock(state().mutex);
  return std::exchange(state().calls, {});
}

void setVariant(const Variant &variant) {
  const std::lock_guard lock(state().mutex);
  state().variant = variant;
}

void failAt(const std::string &function, int error) {
  const std::lock_guard lock(state().mutex);
  if (error == 0)
    state().failures.erase(function);
  else
    state().failures[function] = error;
}

void setEventsDone(bool areDone) {
  const std::lock_guard lock(state().mutex);
  state().eventsAreDone = areDone;
}

std::size_t allocatedBytes() {
  const std::lock_guard lock(state().mutex);
  std::size_t bytes = 0;
  for (const auto &[pointer, size] : state().memory)
    bytes += size;
  return bytes;
}

} // namespace deft::fake_cuda

using namespace deft::fake_cuda;
namespace cu = deft::device::cu;

extern "C" {

/// Tests are run where CUDA_VISIBLE_DEVICES hides the machine's GPUs, too, so it is another variable that
/// hides these.
int cuInit(unsigned) { return std::getenv("DEFT_FAKE_CUDA_HIDDEN") ? cu::kNoDevice : cu::kSuccess; }
/// NVRTC asks for it where it finds a driver, and takes no for an answer.
int cuGetExportTable(const void **, const void *) { return kNotFound; }
int cuDriverGetVersion(int *version) {
  *version = 13000;
  return cu::kSuccess;
}
int cuGetErrorName(int error, const char **name) {
  *name = error == cu::kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
  return cu::kSuccess;
}
int cuGetErrorString(int error, const char **text) {
  *text = error == cu::kOutOfMemory ? "out of memory" : "made to fail";
  return cu::kSuccess;
}
int cuDeviceGetCount(int *count) {
  *count = kDevices;
  return cu::kSuccess;
}
int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return cu::kSuccess;
}
int cuDeviceGetName(char *name, int length, int device) {
  const char *const names[] = {"Fake Hopper", "Fake Ampere", "Fake Turing"};
  std::strncpy(name, names[device], static_cast<std::size_t>(length));
  return cu::kSuccess;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  const int major[] = {9, 8, 7}, minor[] = {0, 0, 5};
  *value = attribute == cu::kAttributeComputeMajor          ? major[device]
           : attribute == cu::kAttributeComputeMinor        ? minor[device]
           : attribute == cu::kAttributeMultiprocessorCount ? 132
                                                            : 50 << 20;
  return cu::kSuccess;
}
int cuDeviceTotalMem_v2(std::size_t *bytes, int) {
  *bytes = std::size_t{80} << 30;
  return cu::kSuccess;
}
int cuDevicePrimaryCtxRetain(cu::Context *context, int device) {
  *context = reinterpret_cast<cu::Context>(&state().contexts[device]);
  return note({.name = "cuDevicePrimaryCtxRetain"});
}
int cuDevicePrimaryCtxRelease_v2(int) { return note({.name = "cuDevicePrimaryCtxRelease"}); }
int cuCtxSetCurrent(cu::Context context) {
  current.assign(1, context);
  return cu::kSuccess;
}
int cuCtxGetCurrent(cu::Context *context) {
  *context = top();
  return cu::kSuccess;
}
int cuCtxPushCurrent_v2(cu::Context context) {
  current.push_back(context);
  return cu::kSuccess;
}
int cuCtxPopCurrent_v2(cu::Context *context) {
  *context = top();
  current.pop_back();
  return cu::kSuccess;
}
int cuMemAlloc_v2(cu::DevicePtr *pointer, std::size_t bytes) {
  return allocate("cuMemAlloc", reinterpret_cast<void **>(pointer), bytes);
}
int cuMemFree_v2(cu::DevicePtr pointer) { return release("cuMemFree", pointerOf<void>(pointer)); }
int cuMemHostAlloc(void **pointer, std::size_t bytes, unsigned) {
  return allocate("cuMemHostAlloc", pointer, bytes);
}
int cuMemFreeHost(void *pointer) { return release("cuMemFreeHost", pointer); }
int cuMemHostGetDevicePointer_v2(cu::DevicePtr *address, void *pointer, unsigned) {
  const std::lock_guard lock(state().mutex);
  *address = reinterpret_cast<cu::DevicePtr>(pointer);
  return resultOf(state(), "cuMemHostGetDevicePointer");
}
int cuMemcpyHtoDAsync_v2(cu::DevicePtr to, const void *from, std::size_t bytes, cu::Stream stream) {
  std::memcpy(pointerOf<void>(to), from, bytes);
  return note({.name = "cuMemcpyHtoDAsync", .stream = stream, .bytes = bytes});
}
int cuMemcpyDtoHAsync_v2(void *to, cu::DevicePtr from, std::size_t bytes, cu::Stream stream) {
  std::memcpy(to, pointerOf<void>(from), bytes);
  return note({.name = "cuMemcpyDtoHAsync", .stream = stream, .bytes = bytes});
}
int cuTensorMapEncodeTiled(void *map, int, unsigned rank, void *address, const unsigned long long *sizes,
                           const unsigned long long *, const unsigned *box, const unsigned *, int, int, int,
                           int) {
  if (const Result failed = note({.name = "cuTensorMapEncodeTiled"}))
    return failed;
  TensorMap made{address, rank, {}, {}};
  std::copy_n(sizes, rank, made.sizes);
  std::copy_n(box, rank, made.box);
  std::memcpy(map, &made, sizeof made);
  return cu::kSuccess;
}
int cuMemsetD8Async(cu::DevicePtr to, unsigned char value, std::size_t bytes, cu::Stream stream) {
  std::memset(pointerOf<void>(to), value, bytes);
  return note({.name = "cuMemsetD8Async", .stream = stream, .bytes = bytes});
}
int cuModuleLoadData(cu::Module *module, const void *) {
  *module = newHandle<cu::Module>();
  return note({.name = "cuModuleLoadData"});
}
int cuModuleUnload(cu::Module) { return note({.name = "cuModuleUnload"}); }
int cuModuleGetFunction(cu::Function *function, cu::Module, const char *name) {
  const std::lock_guard lock(state().mutex);
  *function = newHandle<cu::Function>();
  state().functions[*function] = name;
  return cu::kSuccess;
}
int cuFuncSetAttribute(cu::Function, int, int) { return cu::kSuccess; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, cu::Function, int, std::size_t) {
  *blocks = 1;
  return cu::kSuccess;
}
int cuLaunchKernelEx(const cu::LaunchConfig *config, cu::Function function, void **params, void **) {
  const unsigned gridX = config->grid[0];
  const cu::Stream stream = config->stream;
  Call call{.name = "cuLaunchKernel", .stream = stream, .blocks = gridX, .smemBytes = config->smemBytes};
  for (unsigned i = 0; i < config->attributeCount; ++i) {
    const cu::LaunchAttribute &attribute = config->attributes[i];
    if (attribute.id == cu::kLaunchClusterDimension)
      call.cluster = attribute.value[0];
    if (attribute.id == cu::kLaunchProgrammaticSerialization)
      call.isDependent = attribute.value[0] != 0;
  }
  {
    const std::lock_guard lock(state().mutex);
    call.kernel = state().functions[function];
  }
  std::function<void()> work;
  const auto takeArgs = [&](const auto &args) {
    const auto *bytes = reinterpret_cast<const std::byte *>(&args);
    call.args.assign(bytes, bytes + sizeof args);
  };
  if (call.kernel == "deft_write_pages") {
    const WritePagesArgs args{*static_cast<int **>(params[0]), *static_cast<const int (**)[2]>(params[1]),
                              *static_cast<unsigned *>(params[2])};
    takeArgs(args);
    work = [args] { writePages(args); };
  } else if (call.kernel == "deft_grow_plan") {
    const auto args = readArgs<deft::abi::GrowArgs>(params);
    takeArgs(args);
    work = [args] { growPlan(args); };
  } else if (call.kernel.starts_with("deft_merge_states_")) {
    const auto args = readArgs<deft::abi::StatesArgs>(params);
    takeArgs(args);
    work = [args, type = typeOf(call.kernel)] { deft::exec::mergeStates(args, type); };
  } else if (call.kernel.starts_with("deft_merge_peers_")) {
    const auto args = readArgs<deft::abi::PeersArgs>(params);
    takeArgs(args);
    work = [args, type = typeOf(call.kernel)] { mergePeers(args, type); };
  } else if (call.kernel.starts_with("deft_pack_slices_")) {
    const auto args = readArgs<deft::abi::SlicesArgs>(params);
    takeArgs(args);
    work = [args, type = typeOf(call.kernel)] { packSlices(args, type); };
  } else if (call.kernel.starts_with("deft_merge_slices_")) {
    const auto args = readArgs<deft::abi::SlicesArgs>(params);
    takeArgs(args);
    work = [args, type = typeOf(call.kernel)] { mergeSlices(args, type); };
  } else if (call.kernel == "deft_check_pages") {
    const auto args = readArgs<deft::abi::PageCheckArgs>(params);
    takeArgs(args);
    work = [args] { checkPages(args); };
  } else if (call.kernel == "deft_check_lists") {
    const auto args = readArgs<deft::abi::ListCheckArgs>(params);
    takeArgs(args);
    work = [args, gridX] { checkLists(args, gridX); };
  } else if (call.kernel == "deft_draft_plan") {
    const auto args = readArgs<deft::abi::DraftArgs>(params);
    takeArgs(args);
    work = [args] { deft::plan::placeDrafts(args); };
  } else if (call.kernel.starts_with("probe_") || call.kernel == "deft_evict_l2") {
    work = [] {}; // these only take time
  } else if (call.kernel.ends_with("_select")) {
    const auto args = readArgs<deft::abi::SelectArgs>(params);
    takeArgs(args);
    const unsigned lists = gridX / static_cast<unsigned>(call.cluster);
    work = [args, lists] { select(variantNow(), args, lists); };
  } else if (call.kernel.ends_with("_unite")) {
    const auto args = readArgs<deft::abi::UniteArgs>(params);
    takeArgs(args);
    work = [args, gridX] { unite(variantNow(), args, gridX); };
  } else if (call.kernel.ends_with("_queries")) {
    const auto args = readArgs<deft::abi::QueryArgs>(params);
    takeArgs(args);
    work = [args, gridX] { makeQueries(variantNow(), args, gridX); };
  } else if (call.kernel.ends_with("_merge")) {
    const auto args = readArgs<deft::abi::MergeArgs>(params);
    takeArgs(args);
    work = [args, gridX] { merge(variantNow(), args, gridX); };
  } else {
    const auto args = readArgs<deft::abi::AttendArgs>(params);
    takeArgs(args);
    const Layer layer = call.kernel.ends_with("_selecting") ? Layer::Selecting
                        : call.kernel.ends_with("_sparse")  ? Layer::Sparse
                        : call.kernel.ends_with("_united")  ? Layer::United
                                                            : Layer::Full;
    work = [args, gridX, layer] { attend(variantNow(), args, gridX, layer); };
  }
  if (const Result failed = note(std::move(call)))
    return failed;
  enqueue(stream, std::move(work));
  return cu::kSuccess;
}
int cuLaunchKernel(cu::Function function, unsigned gridX, unsigned, unsigned, unsigned, unsigned, unsigned,
                   unsigned, cu::Stream stream, void **params, void **extra) {
  cu::LaunchConfig config;
  config.grid[0] = gridX;
  config.stream = stream;
  return cuLaunchKernelEx(&config, function, params, extra);
}
int cuStreamCreate(cu::Stream *stream, unsigned) {
  const std::lock_guard lock(state().mutex);
  *stream = newHandle<cu::Stream>();
  return cu::kSuccess;
}
int cuStreamDestroy_v2(cu::Stream) { return cu::kSuccess; }
int cuStreamSynchronize(cu::Stream stream) { return note({.name = "cuStreamSynchronize", .stream = stream}); }
int cuStreamIsCapturing(cu::Stream stream, int *status) {
  const std::lock_guard lock(state().mutex);
  *status = state().captures.contains(stream);
  return cu::kSuccess;
}
int cuStreamBeginCapture_v2(cu::Stream stream, int) {
  const std::lock_guard lock(state().mutex);
  state().captures[stream];
  return cu::kSuccess;
}
int cuStreamEndCapture(cu::Stream stream, cu::Graph *graph) {
  const std::lock_guard lock(state().mutex);
  *graph = newHandle<cu::Graph>();
  state().graphs[*graph] = std::move(state().captures[stream]);
  state().captures.erase(stream);
  return cu::kSuccess;
}
int cuGraphInstantiateWithFlags(cu::GraphExec *executable, cu::Graph graph, unsigned long long) {
  const std::lock_guard lock(state().mutex);
  *executable = newHandle<cu::GraphExec>();
  state().graphs[*executable] = state().graphs[graph];
  return cu::kSuccess;
}
int cuGraphLaunch(cu::GraphExec executable, cu::Stream stream) {
  if (const Result failed = note({.name = "cuGraphLaunch", .stream = stream}))
    return failed;
  std::vector<std::function<void()>> works;
  {
    const std::lock_guard lock(state().mutex);
    works = state().graphs[executable];
  }
  for (const auto &work : works)
    work();
  return cu::kSuccess;
}
int cuGraphDestroy(cu::Graph graph) { return forget(graph); }
int cuGraphExecDestroy(cu::GraphExec executable) { return forget(executable); }
int cuEventCreate(cu::Event *event, unsigned) {
  const std::lock_guard lock(state().mutex);
  *event = newHandle<cu::Event>();
  return cu::kSuccess;
}
int cuEventDestroy_v2(cu::Event) { return cu::kSuccess; }
int cuEventRecord(cu::Event event, cu::Stream stream) {
  {
    const std::lock_guard lock(state().mutex);
    state().recordedEvents.insert(event);
  }
  return note({.name = "cuEventRecord", .stream = stream});
}
int cuEventQuery(cu::Event event) {
  const std::lock_guard lock(state().mutex);
  const bool isDone = state().eventsAreDone || !state().recordedEvents.contains(event);
  return isDone ? cu::kSuccess : cu::kNotReady;
}
int cuEventSynchronize(cu::Event) { return note({.name = "cuEventSynchronize"}); }
int cuEventElapsedTime(float *milliseconds, cu::Event, cu::Event) {
  *milliseconds = 1;
  return cu::kSuccess;
}

} // extern "C"
