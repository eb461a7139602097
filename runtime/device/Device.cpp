#include "runtime/device/Device.h"

#include <utility>

namespace deft::device {

using support::Error;
using support::ErrorCode;
using support::Result;

Result<DeviceFacts> lookAt(const Driver &driver, int ordinal) {
  const cu::Api &api = driver.api();
  if (ordinal < 0 || ordinal >= driver.deviceCount())
    return Error{
        ErrorCode::Usage,
        "there is no GPU " + std::to_string(ordinal) + ", only " + std::to_string(driver.deviceCount()), ""};
  cu::Device device = 0;
  if (const cu::Result result = api.deviceGet(&device, ordinal))
    return driver.error("cannot open GPU " + std::to_string(ordinal), result);
  DeviceFacts facts;
  facts.ordinal = ordinal;
  char name[256] = {};
  (void)api.deviceGetName(name, sizeof name - 1, device);
  facts.name = name;
  const auto attribute = [&](int which) {
    int value = 0;
    (void)api.deviceGetAttribute(&value, which, device);
    return value;
  };
  facts.major = attribute(cu::kAttributeComputeMajor);
  facts.minor = attribute(cu::kAttributeComputeMinor);
  facts.multiprocessors = attribute(cu::kAttributeMultiprocessorCount);
  facts.l2Bytes = static_cast<std::size_t>(attribute(cu::kAttributeL2CacheSize));
  (void)api.deviceTotalMem(&facts.memoryBytes, device);
  return facts;
}

Result<void> checkSupported(const DeviceFacts &facts) {
  if (facts.major >= 8)
    return {};
  return Error{ErrorCode::Environment,
               facts.name + " has compute capability " + std::to_string(facts.major) + "." +
                   std::to_string(facts.minor) + ", 8.0 or newer is needed",
               kWithoutGpu};
}

Result<std::shared_ptr<Device>> Device::open(int ordinal) {
  auto driver = Driver::load();
  if (!driver)
    return driver.error();
  return open(std::move(*driver), ordinal);
}

Result<std::shared_ptr<Device>> Device::open(std::shared_ptr<const Driver> driver, int ordinal) {
  auto looked = lookAt(*driver, ordinal);
  if (!looked)
    return looked.error();
  if (auto supported = checkSupported(*looked); !supported)
    return supported.error();
  std::shared_ptr<Device> opened(new Device());
  opened->driver_ = std::move(driver);
  opened->facts_ = std::move(*looked);
  const DeviceFacts &facts = opened->facts_;
  const cu::Api &api = opened->api();
  if (const cu::Result result = api.deviceGet(&opened->device_, ordinal))
    return opened->driver().error("cannot open GPU " + std::to_string(ordinal), result);
  if (const cu::Result result = api.primaryCtxRetain(&opened->context_, opened->device_))
    return opened->driver().error("cannot make a context on " + facts.name, result);
  const Current current(*opened);
  for (cu::Stream *stream : {&opened->stream_, &opened->copies_})
    if (const cu::Result result = api.streamCreate(stream, cu::kStreamNonBlocking))
      return opened->driver().error("cannot make a stream on " + facts.name, result);
  return opened;
}

Device::~Device() {
  if (context_) {
    const Current current(*this);
    for (const cu::Stream stream : {stream_, copies_})
      if (stream)
        (void)api().streamDestroy(stream);
  }
  if (context_)
    (void)api().primaryCtxRelease(device_);
}

// A thread of the runtime API has the primary context current already: then this is one cheap question.
Device::Current::Current(const Device &device) {
  cu::Context now = nullptr;
  const cu::Api &api = device.api();
  if (api.ctxGetCurrent(&now) == cu::kSuccess && now == device.context_)
    return;
  if (api.ctxPushCurrent(device.context_) == cu::kSuccess)
    pushed_ = &api;
}

Device::Current::~Current() {
  cu::Context popped = nullptr;
  if (pushed_)
    (void)pushed_->ctxPopCurrent(&popped);
}

Result<void> Device::synchronize(const std::string &whatRan) const {
  const Current current(*this);
  return driver_->check(whatRan, api().streamSynchronize(stream_));
}

Result<bool> Device::isCapturing(cu::Stream stream) const {
  int status = cu::kCaptureStatusNone;
  if (const cu::Result result = api().streamIsCapturing(stream, &status); result != cu::kSuccess)
    return driver_->error("cannot use the stream", result);
  return status != cu::kCaptureStatusNone;
}

Buffer::~Buffer() {
  if (!address_)
    return;
  const Device::Current current(*device_);
  (void)device_->api().memFree(address_);
}

Buffer::Buffer(Buffer &&other) noexcept
    : device_(std::move(other.device_)), address_(std::exchange(other.address_, 0)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Result<void> Buffer::reserve(std::size_t bytes, const std::string &what) {
  if (bytes <= bytes_)
    return {};
  const Device::Current current(*device_);
  if (address_)
    (void)device_->api().memFree(address_);
  address_ = 0;
  bytes_ = 0;
  const cu::Result result = device_->api().memAlloc(&address_, bytes);
  if (result != cu::kSuccess)
    return device_->driver().error("cannot allocate " + std::to_string(bytes) + " bytes for " + what, result);
  bytes_ = bytes;
  return {};
}

Result<void> Buffer::finish(cu::Result enqueued, const std::string &whatFailed) const {
  const cu::Result result =
      enqueued == cu::kSuccess ? device_->api().streamSynchronize(device_->copies_) : enqueued;
  return device_->driver().check(whatFailed, result);
}

Result<void> Buffer::upload(const void *from, std::size_t bytes, const std::string &what) {
  if (auto reserved = reserve(bytes, what); !reserved || bytes == 0)
    return reserved;
  const Device::Current current(*device_);
  return finish(device_->api().memcpyHtoDAsync(address_, from, bytes, device_->copies_),
                "cannot upload " + what);
}

Result<void> Buffer::fill(unsigned char value, std::size_t bytes) {
  if (bytes == 0)
    return {};
  const Device::Current current(*device_);
  return finish(device_->api().memsetD8Async(address_, value, bytes, device_->copies_), "cannot fill memory");
}

Result<void> Buffer::download(void *to, std::size_t bytes) const {
  if (bytes == 0)
    return {};
  const Device::Current current(*device_);
  return finish(device_->api().memcpyDtoHAsync(to, address_, bytes, device_->copies_),
                "cannot read results back");
}

Result<Kernel> Kernel::load(std::shared_ptr<Device> device, const std::string &image,
                            const std::string &entry, int threads, int smemBytes) {
  Kernel kernel(std::move(device));
  const Device &on = *kernel.device_;
  kernel.entry_ = entry;
  kernel.threads_ = threads;
  kernel.smemBytes_ = smemBytes;
  const Device::Current current(on);
  const cu::Api &api = on.api();
  if (const cu::Result result = api.moduleLoadData(&kernel.module_, image.c_str())) {
    Error error = on.driver().error("cannot load kernel `" + entry + "`", result);
    if (result == cu::kNoBinaryForGpu)
      error.hint = "it was compiled for another architecture than " + on.facts().name + "'s";
    return error;
  }
  if (const cu::Result result = api.moduleGetFunction(&kernel.function_, kernel.module_, entry.c_str()))
    return on.driver().error("no function `" + entry + "` in its cubin", result);
  if (const cu::Result result =
          api.funcSetAttribute(kernel.function_, cu::kFunctionMaxDynamicShared, smemBytes))
    return on.driver().error(
        "kernel `" + entry + "` asks for " + std::to_string(smemBytes) + " bytes of shared memory", result);
  int perMultiprocessor = 0;
  if (const cu::Result result = api.occupancy(&perMultiprocessor, kernel.function_, threads, smemBytes))
    return on.driver().error("cannot ask for the occupancy of kernel `" + entry + "`", result);
  if (perMultiprocessor == 0)
    return Error{ErrorCode::Environment,
                 "kernel `" + entry + "` does not fit a multiprocessor of " + on.facts().name,
                 "a smaller tile or fewer stages would"};
  kernel.blocksAtOnce_ = perMultiprocessor * on.facts().multiprocessors;
  return kernel;
}

Kernel::~Kernel() {
  if (!module_)
    return;
  const Device::Current current(*device_);
  (void)device_->api().moduleUnload(module_);
}

Kernel::Kernel(Kernel &&other) noexcept
    : device_(std::move(other.device_)), entry_(std::move(other.entry_)),
      module_(std::exchange(other.module_, nullptr)), function_(other.function_), threads_(other.threads_),
      smemBytes_(other.smemBytes_), blocksAtOnce_(other.blocksAtOnce_) {}

Result<void> Kernel::launch(unsigned blocks, void **params, cu::Stream stream, int unusedSmem) const {
  if (blocks == 0)
    return {};
  const Device::Current current(*device_);
  return launched(device_->api().launchKernel(function_, blocks, 1, 1, static_cast<unsigned>(threads_), 1, 1,
                                              static_cast<unsigned>(smemBytes_ - unusedSmem), stream, params,
                                              nullptr));
}

Result<void> Kernel::launchDependent(unsigned blocks, void **params, cu::Stream stream) const {
  constexpr int kCapturedSince = 12030; // CUDA version
  if (device_->facts().major < 9 || device_->driver().version() < kCapturedSince)
    return launch(blocks, params, stream);
  cu::LaunchAttribute attribute;
  attribute.id = cu::kLaunchProgrammaticSerialization;
  attribute.value[0] = 1;
  return launchWith(attribute, blocks, params, stream);
}

Result<void> Kernel::launchClusters(unsigned blocks, int cluster, void **params, cu::Stream stream,
                                    int unusedSmem) const {
  if (cluster == 1)
    return launch(blocks, params, stream, unusedSmem);
  cu::LaunchAttribute attribute;
  attribute.id = cu::kLaunchClusterDimension;
  attribute.value[0] = cluster;
  attribute.value[1] = attribute.value[2] = 1;
  return launchWith(attribute, blocks, params, stream, unusedSmem);
}

Result<void> Kernel::launchWith(cu::LaunchAttribute attribute, unsigned blocks, void **params,
                                cu::Stream stream, int unusedSmem) const {
  if (blocks == 0)
    return {};
  const Device::Current current(*device_);
  cu::LaunchConfig config;
  config.grid[0] = blocks;
  config.block[0] = static_cast<unsigned>(threads_);
  config.smemBytes = static_cast<unsigned>(smemBytes_ - unusedSmem);
  config.stream = stream;
  config.attributes = &attribute;
  config.attributeCount = 1;
  return launched(device_->api().launchKernelEx(&config, function_, params, nullptr));
}

Result<void> Kernel::launched(cu::Result result) const {
  if (result == cu::kSuccess) // no text is made for nothing: a server calls this for every layer
    return {};
  return device_->driver().error("cannot launch kernel `" + entry_ + "`", result);
}

} // namespace deft::device
