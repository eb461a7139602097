#pragma once

#include "compiler/spec/VisibleBounds.h"
#include "runtime/exec/cpu/CpuKernel.h"
#include "runtime/jit/ConfigCaches.h"
#include "runtime/jit/Program.h"

#include <deft/attention.hpp>

namespace deft {

struct Attention::Impl {
  jit::Program program;
  support::Result<exec::CpuKernel> cpuKernel; ///< an error only of a package, which may be meant for GPUs
  std::vector<ParamInfo> params;
  std::shared_ptr<jit::ConfigCaches> configs = std::make_shared<jit::ConfigCaches>();

  spec::VisibleBounds bounds = {}; ///< of the mask

  const spec::Variant &variant() const { return program.variant(); }
};

} // namespace deft
