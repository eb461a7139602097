#pragma once

#include "compiler/package/KernelSet.h"
#include "runtime/config_cache/ConfigChooser.h"
#include "runtime/device/Device.h"
#include "runtime/program/Program.h"

#include <memory>
#include <string>
#include <vector>

namespace deft::program {

/// The kernels and configs with which a GPU runs a program.
struct KernelChoice {
  package::KernelSet kernels;
  config_cache::ConfigChooser chooser; ///< of trees' configs; it has already chosen the first tree's
  std::vector<std::string> warnings = {};
  std::vector<config::SparseCut> sparseCuts = {}; ///< tuned ones, for the kernel that reads lists
};

/// Chooses the kernels for trees like `first`. If kernels of a tuned config cannot be made (for example with
/// a package but without NVRTC), it takes the untuned config, whose kernels a package has. But a config that
/// the user named is then an error.
support::Result<KernelChoice> chooseKernels(const Program &program, const device::DeviceFacts &facts,
                                            const std::shared_ptr<const config_cache::ConfigCache> &configs,
                                            const tree::KvTree &first);

} // namespace deft::program
