#include "tests/gpu/execution/Rig.h"

#include "runtime/api/Gpu.h"
#include "runtime/exec/Params.h"

#include <chrono>

namespace deft::gpu_test {

namespace cu = device::cu;

namespace {

Error toPublic(const support::Error &error) { return {ErrorCode::Internal, error.message, error.hint}; }

/// As those of the checks are: their kernels, tuned or given, are loaded then.
Result<Tree> typicalTree() {
  constexpr int kLeaves = 15;
  Tree tree;
  const auto root = tree.addRoot(700);
  if (!root)
    return root.error();
  for (int i = 0; i < kLeaves; ++i) {
    const auto leaf = tree.addChild(*root, 20 + 30 * i);
    if (!leaf)
      return leaf.error();
    if (const auto query = tree.addQuery(*leaf); !query)
      return query.error();
  }
  return tree;
}

} // namespace

Result<Subject> openSubject(const std::string &name, int index) {
  const auto colon = name.find(':');
  const std::string path = name.substr(0, colon);
  const std::string wanted = colon == std::string::npos ? "" : name.substr(colon + 1);
  auto program = program::Program::fromPackage(path, wanted, "name it behind a colon");
  if (!program)
    return toPublic(program.error());
  auto attention = loadPackage(path, wanted);
  if (!attention)
    return attention.error();
  auto gpu = Gpu::open(index);
  if (!gpu)
    return gpu.error();

  Params params(*attention);
  std::vector<std::string> assignments;
  for (const ParamInfo &info : attention->params())
    if (!info.hasDefault) {
      const double value = info.isF32 ? 0.05 : 4;
      assignments.push_back(info.name + (info.isF32 ? "=0.05" : "=4"));
      if (auto set = params.set(info.name, value); !set)
        return set.error();
    }
  auto values = exec::bindParams(program->variant(), assignments);
  if (!values)
    return toPublic(values.error());
  const auto tree = typicalTree();
  if (!tree)
    return tree.error();
  auto loaded = GpuAttention::load(*gpu, *attention, {.typicalTree = &*tree, .params = &params});
  if (!loaded)
    return loaded.error();
  auto device = gpu->handle()->device;
  return Subject{*gpu, *loaded, std::move(*program), std::move(*values), std::move(device)};
}

bool Findings::require(bool isRight, const std::string &what) {
  if (isRight)
    return true;
  const std::lock_guard lock(mutex_);
  texts_.push_back(what);
  return false;
}

int Findings::count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(texts_.size());
}

std::vector<std::string> Findings::texts() const {
  const std::lock_guard lock(mutex_);
  return texts_;
}

Stream::Stream(std::shared_ptr<device::Device> device) : device_(std::move(device)) {
  const device::Device::Current current(*device_);
  (void)device_->api().streamCreate(&stream_, cu::kStreamNonBlocking);
}

Stream::~Stream() {
  const device::Device::Current current(*device_);
  (void)device_->api().streamDestroy(stream_);
}

bool Stream::wait() const {
  const device::Device::Current current(*device_);
  return device_->api().streamSynchronize(stream_) == cu::kSuccess;
}

Graph::Graph(std::shared_ptr<device::Device> device, const Stream &stream,
             const std::function<bool()> &enqueue)
    : device_(std::move(device)) {
  const device::Device::Current current(*device_);
  const cu::Api &api = device_->api();
  if (api.streamBeginCapture(stream.get(), cu::kCaptureThreadLocal) != cu::kSuccess)
    return;
  const bool isEnqueued = enqueue();
  if (api.streamEndCapture(stream.get(), &graph_) == cu::kSuccess && isEnqueued)
    (void)api.graphInstantiate(&executable_, graph_, 0);
}

Graph::~Graph() {
  const device::Device::Current current(*device_);
  if (executable_)
    (void)device_->api().graphExecDestroy(executable_);
  if (graph_)
    (void)device_->api().graphDestroy(graph_);
}

bool Graph::launch(const Stream &stream) const {
  const device::Device::Current current(*device_);
  return device_->api().graphLaunch(executable_, stream.get()) == cu::kSuccess;
}

double timeUs(const std::function<void()> &call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

} // namespace deft::gpu_test
