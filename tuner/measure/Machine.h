#pragma once

#include "compiler/package/KernelSet.h"
#include "runtime/config_cache/DeviceKey.h"
#include "runtime/exec/Inputs.h"
#include "runtime/exec/cpu/CpuKernel.h"
#include "runtime/plan/Plan.h"

#include <memory>
#include <string>
#include <vector>

/// Running and timing candidates, in processes that may fail.
namespace deft::measure {

/// Two sets of inputs stay loaded, so that going from one to the other copies nothing.
enum class InputSet {
  Values,   ///< what is timed, and compared with the oracle
  Counting, ///< what tells tokens apart (reference::Counting)
};
inline constexpr std::size_t kInputSets = 2;

/// The kernels of one candidate, ready to run on the machine's inputs.
class Runner {
public:
  virtual ~Runner() = default;
  /// Blocks (CPU: threads) that run at a time: what plans are made for.
  virtual int blocks() const = 0;
  virtual support::Result<void> run(const plan::Plan &plan, InputSet set, exec::Outputs &outputs) = 0;
  /// So many runs in a row of the values, each on cold caches, as a decode step finds them: microseconds.
  virtual support::Result<std::vector<double>> time(const plan::Plan &plan, int repeats) = 0;
};

/// A device, seen from the process that has opened it.
class Machine {
public:
  virtual ~Machine() = default;
  virtual config_cache::DeviceKey key() const = 0;
  /// What the driver calls itself; empty without one.
  virtual std::string driver() const { return {}; }
  /// The inputs of the runners to come, which set its number of queries to that of their plan.
  virtual support::Result<void> load(exec::Inputs &inputs, InputSet set = InputSet::Values) = 0;
  /// `kernels` null: the machine needs none.
  virtual support::Result<std::unique_ptr<Runner>> open(const package::KernelSet *kernels) = 0;
};

/// This host's processors, `threads` of them. The variant must outlive the machine.
support::Result<std::unique_ptr<Machine>> openCpu(const spec::Variant &variant, exec::CpuKernel kernel,
                                                  int threads);
support::Result<std::unique_ptr<Machine>> openCuda(const spec::Variant &variant);

/// Whether there is a GPU that can be used. A child process looks, because one that has used CUDA cannot give
/// it to its children.
bool hasCuda();

} // namespace deft::measure
