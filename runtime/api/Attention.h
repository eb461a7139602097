#pragma once

#include "compiler/spec/VisibleBounds.h"
#include "runtime/api/ConfigCaches.h"
#include "runtime/exec/cpu/CpuKernel.h"
#include "runtime/program/Program.h"

#include <deft/c/attention.h>

#include <memory>

namespace deft::api {

struct Attention {
  program::Program program;
  support::Result<exec::CpuKernel> cpuKernel; ///< an error only for a package, which may be for GPUs
  std::shared_ptr<ConfigCaches> configs =
      std::make_shared<ConfigCaches>(program.variant().select.has_value());
  spec::VisibleBounds bounds = spec::visibleBounds(program.variant()); ///< of the mask

  const spec::Variant &variant() const { return program.variant(); }
};

} // namespace deft::api

/// Parameters, kernels and plans share `of`, and outlive this handle.
struct deft_attention {
  std::shared_ptr<const deft::api::Attention> of;

  const deft::spec::Variant &variant() const { return of->variant(); }
};
