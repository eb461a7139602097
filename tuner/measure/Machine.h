#pragma once

#include "compiler/package/KernelSet.h"
#include "runtime/config_cache/DeviceKey.h"
#include "runtime/exec/Inputs.h"
#include "runtime/exec/cpu/CpuKernel.h"
#include "runtime/plan/Plan.h"

#include <memory>
#include <string>
#include <vector>

/// Runs and times candidates in processes that may fail.
namespace deft::measure {

/// Two sets of inputs stay loaded, so switching between them copies nothing.
enum class InputSet {
  Values,   ///< timed, and compared with the oracle
  Counting, ///< distinguishes tokens (reference::Counting)
};
inline constexpr std::size_t kInputSets = 2;

/// The kernels of one candidate, ready to run on the machine's inputs.
class Runner {
public:
  virtual ~Runner() = default;
  /// Blocks (CPU: threads) that run at a time; plans depend on this number.
  virtual int blocks() const = 0;
  virtual support::Result<void> run(const plan::Plan &plan, InputSet set, exec::Outputs &outputs) = 0;
  /// Times `repeats` runs of the values in a row, each on cold caches, as in a decode step: microseconds.
  virtual support::Result<std::vector<double>> time(const plan::Plan &plan, int repeats) = 0;
};

/// A device, in the process that has opened it.
class Machine {
public:
  virtual ~Machine() = default;
  virtual config_cache::DeviceKey key() const = 0;
  /// The driver's own name; empty without a driver.
  virtual std::string driver() const { return {}; }
  /// Sets the inputs of later runners; each adapts the number of queries to its plan.
  virtual support::Result<void> load(exec::Inputs &inputs, InputSet set = InputSet::Values) = 0;
  /// `kernels` null: the machine needs none.
  virtual support::Result<std::unique_ptr<Runner>> open(const package::KernelSet *kernels) = 0;
};

/// This host's processors, `threads` of them. The variant must outlive the machine.
support::Result<std::unique_ptr<Machine>> openCpu(const spec::Variant &variant, exec::CpuKernel kernel,
                                                  int threads);
support::Result<std::unique_ptr<Machine>> openCuda(const spec::Variant &variant);

/// Whether there is a usable GPU. A child process checks, because a process that has used CUDA cannot share
/// it with its children.
bool hasCuda();

} // namespace deft::measure
