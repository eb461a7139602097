#include "runtime/api/GpuCapture.h"

#include <exception>
#include <string>

namespace deft::api {

namespace {

using device::cu::Stream;

/// Waits for what is on the stream with each read.
class StreamReader : public MemoryReader {
public:
  StreamReader(const device::Device &device, Stream stream) : device_(device), stream_(stream) {}

  Result<void> read(const void *from, std::size_t bytes, void *to) const override {
    if (bytes == 0)
      return {};
    const device::Device::Current current(device_);
    const auto address = static_cast<device::cu::DevicePtr>(reinterpret_cast<std::uintptr_t>(from));
    device::cu::Result done = device_.api().memcpyDtoHAsync(to, address, bytes, stream_);
    if (done == device::cu::kSuccess)
      done = device_.api().streamSynchronize(stream_);
    return device_.driver().check("cannot copy what a step reads", done);
  }

private:
  const device::Device &device_;
  Stream stream_;
};

const device::Device &deviceOf(const deft_gpu_plan &plan) { return *plan.attention.gpu.device; }

Result<bool> isCapturing(const deft_gpu_plan &plan, Stream stream) {
  const device::Device::Current current(deviceOf(plan));
  return deviceOf(plan).isCapturing(stream);
}

/// Values as the host knows them, and where the GPU has the arrays.
std::vector<exec::ParamValue> paramsOf(const deft_gpu_attention &attention) {
  const spec::Variant &variant = attention.variant();
  std::vector<exec::ParamValue> values =
      attention.values ? *attention.values : std::vector<exec::ParamValue>();
  values.resize(variant.params.size());
  if (!attention.params)
    return values;
  const exec::CudaParams &onDevice = **attention.params;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (exec::countOf(values[i]) > 0 || variant.params[i].shape == spec::Param::Shape::Scalar)
      continue;
    values[i].device = onDevice.slots()[i].f32Array;
    values[i].deviceCount = onDevice.counts()[i];
  }
  return values;
}

Result<void> writeStep(const deft_gpu_plan &plan, capture::Moment moment, const SeenRun &run, Stream stream,
                       bool readsDevice, std::optional<double> us) {
  const StreamReader reader(deviceOf(plan), stream);
  const auto key = config_cache::DeviceKey::ofGpu(deviceOf(plan).facts());
  auto written = plan.host.captured->write(plan.host, key, moment, run, readsDevice ? &reader : nullptr, us);
  return written ? Result<void>() : written.error();
}

} // namespace

GpuRunCapture::GpuRunCapture(deft_gpu_plan &plan, const deft_gpu_attention &attention,
                             const RunTensors &tensors, capture::RunKind kind,
                             deft_gpu_stream stream) noexcept
    : plan_(plan), attention_(attention), stream_(streamOf(stream)) {
  try {
    if (auto begun = begin(tensors, kind); !begun)
      capture::giveUp(begun.error().message);
  } catch (const std::exception &failed) {
    capture::giveUp(failed.what());
  }
}

Result<void> GpuRunCapture::begin(const RunTensors &tensors, capture::RunKind kind) {
  if (!capture::isOn())
    return {};
  PlanCapture &captured = *plan_.host.captured;
  const auto isInGraph = isCapturing(plan_, stream_);
  if (!isInGraph)
    return isInGraph.error();
  isWritten_ = !*isInGraph && captured.claim(*attention_.attention.of);
  if (!isWritten_ && !*isInGraph)
    return {};
  const int budget = kind == capture::RunKind::Full ? 0
                     : tensors.lists.slots          ? tensors.lists.budget
                                                    : plan_.device->room().budget;
  run_ = seenRun(attention_.attention.of, kind, budget, tensors);
  run_.params = paramsOf(attention_);
  if (*isInGraph) {
    run_.facts.isInGraph = true;
    captured.noteGraph(run_);
    return {};
  }
  readsDevice_ = capture::settings().readsDevice;
  if (!readsDevice_)
    return {};
  const device::Device::Current current(deviceOf(plan_));
  const device::cu::Api &api = deviceOf(plan_).api();
  device::cu::Result done = api.eventCreate(&begin_, 0);
  if (done == device::cu::kSuccess)
    done = api.eventCreate(&end_, 0);
  if (done == device::cu::kSuccess)
    done = api.eventRecord(begin_, stream_);
  return deviceOf(plan_).driver().check("cannot time a step", done);
}

GpuRunCapture::~GpuRunCapture() {
  if (!begin_)
    return;
  const device::Device::Current current(deviceOf(plan_));
  for (const device::cu::Event event : {begin_, end_})
    if (event)
      (void)deviceOf(plan_).api().eventDestroy(event);
}

void GpuRunCapture::finish() noexcept {
  try {
    if (auto ended = isWritten_ ? end() : Result<void>(); !ended)
      capture::giveUp(ended.error().message);
  } catch (const std::exception &failed) {
    capture::giveUp(failed.what());
  }
}

Result<void> GpuRunCapture::end() {
  std::optional<double> us;
  if (end_) {
    const device::Device::Current current(deviceOf(plan_));
    const device::cu::Api &api = deviceOf(plan_).api();
    float milliseconds = 0;
    if (api.eventRecord(end_, stream_) == device::cu::kSuccess &&
        api.eventSynchronize(end_) == device::cu::kSuccess &&
        api.eventElapsedTime(&milliseconds, begin_, end_) == device::cu::kSuccess)
      us = milliseconds * 1e3;
  }
  return writeStep(plan_, capture::Moment::Run, run_, stream_, readsDevice_, us);
}

void captureUpload(deft_gpu_plan &plan, deft_gpu_stream stream) noexcept {
  try {
    const std::optional<SeenRun> run = plan.host.captured->graph();
    if (!run || !plan.host.captured->claim(*run->attention))
      return;
    if (auto written = writeStep(plan, capture::Moment::Upload, *run, streamOf(stream),
                                 capture::settings().readsDevice, std::nullopt);
        !written)
      capture::giveUp(written.error().message);
  } catch (const std::exception &failed) {
    capture::giveUp(failed.what());
  }
}

Result<void> captureReplay(deft_gpu_plan &plan, deft_gpu_stream stream) {
  if (!capture::isOn())
    return usage("no steps are captured", "name a folder for them first");
  const std::optional<SeenRun> run =
      plan.host.captured ? plan.host.captured->graph() : std::optional<SeenRun>();
  if (!run)
    return usage("no graph has captured a run of the plan since steps are captured",
                 "a run that is not in a graph is captured by itself");
  const auto capturing = isCapturing(plan, streamOf(stream));
  if (!capturing)
    return capturing.error();
  if (*capturing)
    return usage("a capture of a step waits for the stream, which is being captured into a graph",
                 "call it between replays");
  return writeStep(plan, capture::Moment::Call, *run, streamOf(stream), true, std::nullopt);
}

} // namespace deft::api
