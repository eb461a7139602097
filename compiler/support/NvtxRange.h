#pragma once

/// Ranges in the timelines of NVIDIA's profilers, for plans, runs and compilations. Off unless a program or
/// the environment (DEFT_NVTX=1) turns them on; even then only a profiler makes NVTX load a library.
namespace deft::support {

/// Whether this build supports ranges, which needs the headers of NVTX.
bool hasNvtx() noexcept;

/// Turns ranges on or off in all threads. Has no effect without NVTX.
void setNvtx(bool isOn) noexcept;

bool isNvtxOn() noexcept;

/// A range of this thread during the lifetime of the object. `name` is a literal.
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
