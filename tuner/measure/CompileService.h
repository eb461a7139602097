#pragma once

#include "compiler/codegen/cuda/VariantSource.h"
#include "compiler/target/Target.h"
#include "tuner/measure/Worker.h"

namespace deft::measure {

/// Compiles the kernels of configs, one after the other: a request has `config`, the answer the kernels as
/// packKernels puts them. The arguments must be there for its life.
support::Result<std::unique_ptr<Service>> makeCompileService(const codegen::cuda::VariantSource &source,
                                                             const target::Target &target);

} // namespace deft::measure
