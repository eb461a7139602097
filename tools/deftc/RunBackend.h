#pragma once

#include "compiler/config/Config.h"
#include "runtime/device/Ceilings.h"
#include "runtime/exec/Inputs.h"
#include "runtime/jit/Program.h"
#include "runtime/plan/Plan.h"
#include "tools/deftc/Context.h"

#include <memory>
#include <optional>
#include <string>

namespace deft::cli {

struct RunTimes {
  double medianUs = 0, fastestUs = 0, slowestUs = 0;
  int repeats = 0;
};

/// Where `run` runs: what the command needs of it, in the order in which it is called.
class RunBackend {
public:
  virtual ~RunBackend() = default;

  virtual std::string name() const = 0;   ///< "cpu", "cuda"
  virtual std::string device() const = 0; ///< "2 threads", "NVIDIA H200"
  virtual const config::Config &config() const = 0;
  virtual int blocks() const = 0; ///< that run at a time

  /// Takes the cache and the queries of a step; they stay as they are until the next call.
  virtual support::Result<void> load(const exec::Inputs &inputs) = 0;

  /// One run, timed by `repeats` runs more (0: as many as the backend finds right).
  virtual support::Result<RunTimes> run(const plan::Plan &plan, exec::Outputs &outputs, int repeats) = 0;

  virtual const device::Ceilings *ceilings() const { return nullptr; }
};

support::Result<std::unique_ptr<RunBackend>> openCpu(const jit::Program &program, int threads);

/// Null without a GPU, which is an error where one `isRequired`.
support::Result<std::unique_ptr<RunBackend>> openCuda(const jit::Program &program, Context &context,
                                                      bool isRequired);

} // namespace deft::cli
