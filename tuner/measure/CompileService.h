#pragma once

#include "compiler/codegen/cuda/VariantSource.h"
#include "compiler/target/Target.h"
#include "tuner/measure/Worker.h"

namespace deft::measure {

/// Compiles the kernels of configs, one after the other. A request has `config`; the answer has the kernels
/// in the form of packKernels. The arguments must outlive the service.
support::Result<std::unique_ptr<Service>> makeCompileService(const codegen::cuda::VariantSource &source,
                                                             const target::Target &target);

} // namespace deft::measure
