#pragma once

/// Ranges on the time lines of NVIDIA's profilers, for plans, runs and what is compiled. Off unless a program
/// or the environment (DEFT_NVTX=1) asks for them; even then nothing is loaded but by a profiler.
namespace deft::support {

/// Whether this build can make any: NVTX's headers were there.
bool hasNvtx() noexcept;

/// From now on, in all threads. Without NVTX nothing happens.
void setNvtx(bool isOn) noexcept;

bool isNvtxOn() noexcept;

/// A range of this thread, while the object is there. `name` is a literal.
class NvtxRange {
public:
  explicit NvtxRange(const char *name) noexcept;
  ~NvtxRange();
  NvtxRange(const NvtxRange &) = delete;
  NvtxRange &operator=(const NvtxRange &) = delete;

private:
  bool isOpen_;
};

} // namespace deft::support
