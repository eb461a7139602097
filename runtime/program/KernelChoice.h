#pragma once

#include "compiler/package/KernelSet.h"
#include "runtime/config_cache/ConfigChooser.h"
#include "runtime/device/Device.h"
#include "runtime/program/Program.h"

#include <memory>
#include <string>
#include <vector>

namespace deft::program {

/// What a GPU runs a program by.
struct KernelChoice {
  package::KernelSet kernels;
  config_cache::ConfigChooser chooser; ///< of trees' configs; the first tree has got its one
  std::vector<std::string> warnings = {};
  std::vector<config::SparseCut> sparseCuts = {}; ///< that were tuned for the kernel that reads lists
};

/// The kernels of the config for trees like `first`. Where those of a tuned one cannot be made (no NVRTC
/// beside a package, say) it is given up for the untuned one, whose kernels a package has; one that the user
/// named is not.
support::Result<KernelChoice> chooseKernels(const Program &program, const device::DeviceFacts &facts,
                                            const std::shared_ptr<const config_cache::ConfigCache> &configs,
                                            const tree::KvTree &first);

} // namespace deft::program
