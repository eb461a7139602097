#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/device/Device.h"

#include <cstddef>
#include <span>
#include <vector>

/// Measures the limits of a GPU. Rows of a benchmark are compared with them. Compared with limits recorded
/// elsewhere, they give the scale between two machines of the same model.
namespace deft::bench {

/// A cold read of a buffer, launch included.
struct ReadTime {
  double mib = 0;
  double loadsUs = 0; ///< by 16-byte loads
  double bulkUs = 0;  ///< by bulk copies into shared memory; 0: none, or faster than memory, so not cold

  double bestUs() const { return bulkUs > 0 && bulkUs < loadsUs ? bulkUs : loadsUs; }
};

struct MatrixRate { ///< TFLOP/s
  double f16 = 0, bf16 = 0;
  double of(spec::DType dtype) const { return dtype == spec::DType::BF16 ? bf16 : f16; }
};

struct MeasuredCeilings {
  double launchUs = 0;         ///< an empty kernel in a graph
  std::vector<ReadTime> reads; ///< of kReadSizesMib
  MatrixRate units;            ///< tensor cores only, without loads of operands
};

constexpr int kReadSizesMib[] = {1, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

/// Measures ceilings on one device. Needs NVRTC.
class CeilingProbe {
public:
  static support::Result<CeilingProbe> open(std::shared_ptr<device::Device> device);

  support::Result<MeasuredCeilings> measure(int repeats);

  /// Measures a cold read of `bytes` bytes.
  support::Result<ReadTime> read(std::size_t bytes, int repeats);

private:
  struct Kernels;
  explicit CeilingProbe(std::shared_ptr<device::Device> device);
  support::Result<void> reserve(std::size_t bytes);
  support::Result<double> loadsUs(std::size_t bytes, int repeats);
  support::Result<double> bulkUs(std::size_t bytes, int repeats);
  support::Result<double> unitsTFlops(spec::DType dtype, int repeats);

  std::shared_ptr<device::Device> device_;
  std::shared_ptr<Kernels> kernels_;
  device::Buffer buffer_;
  std::size_t filledBytes_ = 0;
  double largestReadGBs_ = 0; ///< of the largest loads so far: no cold read can be faster
};

} // namespace deft::bench
