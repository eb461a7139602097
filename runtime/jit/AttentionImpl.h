#pragma once

#include "runtime/exec/cpu/CpuKernel.h"
#include "runtime/jit/Program.h"

#include <deft/attention.hpp>

namespace deft {

struct Attention::Impl {
  jit::Program program;
  exec::CpuKernel cpuKernel;
  std::vector<ParamInfo> params;

  const spec::Variant &variant() const { return program.variant(); }
};

} // namespace deft
