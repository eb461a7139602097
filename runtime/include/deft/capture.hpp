#pragma once

#include <deft/c/capture.h>
#include <deft/result.hpp>

#include <cstdint>
#include <string>

/// Captured steps: small files of a program's decode steps, for `deftc replay` on another machine.
namespace deft {

enum class CaptureWhat {
  Host = DEFT_CAPTURE_HOST,      ///< only the host's values; does not wait
  Device = DEFT_CAPTURE_DEVICE,  ///< a captured step of a GPU waits for its stream and copies page table,
                                 ///< lengths and drafts
  Tensors = DEFT_CAPTURE_TENSORS ///< and q, K and V of the step's tokens
};

struct CaptureOptions {
  std::string folder; ///< for the files; created if it does not exist
  CaptureWhat what = CaptureWhat::Host;
  int mostSteps = 0;          ///< files at most; 0: 256
  std::int64_t mostBytes = 0; ///< of all files together; 0: 2^30
};

/// Captures steps from now on, overriding DEFT_CAPTURE: see deft_set_capture. A plan counts from its next
/// tree on, and no run fails because of a capture. GpuPlan::captureReplay() writes a step of a replayed graph
/// with the GPU's values.
inline Result<void> startCapture(const CaptureOptions &options) {
  deft_capture_options own{};
  own.size = sizeof own;
  own.folder = options.folder.c_str();
  own.what = static_cast<std::int32_t>(options.what);
  own.most_steps = options.mostSteps;
  own.most_bytes = options.mostBytes;
  return detail::done(deft_set_capture(&own));
}

inline void stopCapture() { (void)deft_set_capture(nullptr); }

struct CaptureState {
  std::string folder; ///< of the current or last capture; empty: none
  std::string ended;  ///< why it ended; empty: it continues, or the program ended it
  std::int64_t bytes = 0;
  int steps = 0; ///< that were written
  bool isOn = false;
};

inline CaptureState captureState() {
  const detail::Owned<deft_capture_state, deft_free> own(
      detail::filled<deft_capture_state *>([](deft_capture_state **to) {
        return deft_get_capture(to);
      }).value());
  return {own->folder, own->ended, own->bytes, own->steps, own->is_on != 0};
}

} // namespace deft
