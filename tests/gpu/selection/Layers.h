#pragma once

#include "runtime/exec/Inputs.h"
#include "runtime/exec/Selection.h"
#include "runtime/plan/Plan.h"
#include "runtime/program/Program.h"

#include <memory>
#include <string>
#include <vector>

namespace deft::gpu_test {

/// The three attentions of a spec that selects, on one device. Before each run all that it must write is NaN.
class Layers {
public:
  virtual ~Layers() = default;
  virtual int blocks() const = 0;
  virtual support::Result<void> load(const exec::Inputs &inputs) = 0;
  virtual support::Result<void> full(const plan::Plan &plan, exec::Outputs &outputs) = 0;
  /// Where lists are a caller's, they are drawn by lot, the same for the same plan and inputs.
  virtual support::Result<void> selecting(const plan::Plan &plan, exec::Outputs &outputs,
                                          exec::Selection &selection) = 0;
  /// Over the lists that selecting() gave last.
  virtual support::Result<void> sparse(const exec::Selection &selection, exec::Outputs &outputs) = 0;
};

struct Subject {
  const spec::Variant &variant;
  config::Config config;
  int budget;
};

/// Where they run; makes the layers of a variant.
class Device {
public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  virtual config::DeviceKind kind() const = 0;
  /// Under which a variant is tried.
  virtual support::Result<std::vector<config::Config>> configs(const program::Program &program) const = 0;
  /// From any thread.
  virtual support::Result<void> compile(const program::Program &program, const config::Config &config) = 0;
  virtual support::Result<std::unique_ptr<Layers>> open(const program::Program &program,
                                                        const Subject &subject) = 0;
};

support::Result<std::unique_ptr<Device>> openGpu();
/// One thread of the host's processor, to try the cases themselves.
std::unique_ptr<Device> openCpu();

} // namespace deft::gpu_test
