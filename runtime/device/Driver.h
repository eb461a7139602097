#pragma once

#include "compiler/support/Result.h"
#include "runtime/device/DriverApi.h"

#include <memory>
#include <string>

namespace deft::device {

/// The hint for machines without a suitable GPU.
inline constexpr char kWithoutGpu[] =
    "the CPU back end needs none (`--backend cpu` of run, plan, compare, bench own, explain and tune)";

/// CUDA's driver library, loaded and initialised. It is never unloaded, because unloading is not supported
/// while its own threads run.
class Driver {
public:
  /// Environment errors say which of three things is missing: the library, a recent enough driver, or a
  /// device.
  static support::Result<std::shared_ptr<const Driver>> load(const std::string &library = "libcuda.so.1");

  const cu::Api &api() const { return api_; }
  int deviceCount() const { return deviceCount_; }
  /// The CUDA version that the driver supports: 13000 is 13.0.
  int version() const { return version_; }

  /// Turns a driver's result into an error: "cannot load kernel `x`: out of memory (CUDA_ERROR_...)".
  support::Error error(const std::string &whatFailed, cu::Result result) const;

  /// Success, or the error of it.
  support::Result<void> check(const std::string &whatFailed, cu::Result result) const {
    return result == cu::kSuccess ? support::Result<void>() : error(whatFailed, result);
  }

private:
  Driver() = default;
  cu::Api api_;
  int deviceCount_ = 0;
  int version_ = 0;
};

} // namespace deft::device
