#pragma once

#include "compiler/spec/Variant.h"
#include "compiler/support/Result.h"
#include "runtime/exec/Inputs.h"
#include "runtime/exec/cpu/CpuKernel.h"
#include "runtime/plan/Plan.h"

namespace deft::exec {

/// Runs a plan on inputs that the caller owns, on `threads` threads (at least one). An item and a KV head are
/// the unit of work; each unit writes places of its own and partials are merged in the plan's order, so the
/// result does not depend on the number of threads. Fails where the kernel was made for another variant.
/// `outputs.lse` may be null.
support::Result<void> runCpu(const CpuKernel &kernel, const spec::Variant &variant, const plan::Plan &plan,
                             const InputView &inputs, const OutputView &outputs, int threads);

/// The same, and sizes `outputs` and fills them with NaN before, so that a row nobody writes is seen.
support::Result<void> runCpu(const CpuKernel &kernel, const spec::Variant &variant, const plan::Plan &plan,
                             const Inputs &inputs, Outputs &outputs, int threads);

} // namespace deft::exec
