#pragma once

#include "runtime/api/GpuPlan.h"
#include "runtime/api/StepCapture.h"

#include <optional>

/// Captured steps of plans on GPUs.
namespace deft::api {

/// A run that is about to be put on the stream. Create it if the plan is captured; its errors do not affect
/// the run.
class GpuRunCapture {
public:
  GpuRunCapture(deft_gpu_plan &plan, const deft_gpu_attention &attention, const RunTensors &tensors,
                capture::RunKind kind, deft_gpu_stream stream) noexcept;
  ~GpuRunCapture();
  GpuRunCapture(const GpuRunCapture &) = delete;
  GpuRunCapture &operator=(const GpuRunCapture &) = delete;

  /// The run is on the stream. Waits for it if memory of the device must be read.
  void finish() noexcept;

private:
  Result<void> begin(const RunTensors &tensors, capture::RunKind kind);
  Result<void> end();

  deft_gpu_plan &plan_;
  const deft_gpu_attention &attention_;
  device::cu::Stream stream_;
  SeenRun run_;
  bool isWritten_ = false, readsDevice_ = false;
  device::cu::Event begin_ = nullptr, end_ = nullptr; ///< around the run
};

/// Called after an upload of the plan; it is a step of a graph if one has captured it. Never fails.
void captureUpload(deft_gpu_plan &plan, deft_gpu_stream stream) noexcept;

/// Writes the current step from the device; waits for the stream.
Result<void> captureReplay(deft_gpu_plan &plan, deft_gpu_stream stream);

/// Puts the plan on the stream.
inline Result<void> uploadPlan(deft_gpu_plan &plan, deft_gpu_stream stream) {
  Result<void> uploaded = plan.device->upload(streamOf(stream));
  if (uploaded && plan.host.captured)
    captureUpload(plan, stream);
  return uploaded;
}

} // namespace deft::api
