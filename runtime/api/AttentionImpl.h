#pragma once

#include "compiler/spec/VisibleBounds.h"
#include "runtime/api/ConfigCaches.h"
#include "runtime/exec/cpu/CpuKernel.h"
#include "runtime/program/Program.h"

#include <deft/attention.hpp>

namespace deft {

struct Attention::Impl {
  program::Program program;
  support::Result<exec::CpuKernel> cpuKernel; ///< an error only of a package, which may be meant for GPUs
  std::vector<ParamInfo> params;
  std::optional<SelectionInfo> selects;
  std::shared_ptr<api::ConfigCaches> configs =
      std::make_shared<api::ConfigCaches>(program.variant().select.has_value());

  spec::VisibleBounds bounds = {}; ///< of the mask

  const spec::Variant &variant() const { return program.variant(); }
};

} // namespace deft
