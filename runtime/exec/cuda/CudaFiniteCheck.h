#pragma once

#include "compiler/support/Result.h"
#include "runtime/device/Device.h"
#include "runtime/exec/cuda/CudaPointers.h"
#include "runtime/plan/Plan.h"

namespace deft::exec {

/// Waits for the stream, copies what the plan's run has read and written to the host and looks for what is
/// not finite: FiniteCheck.h. An error names it. For who looks for a fault: it takes time and memory of the
/// host for all that the plan reads. What leaves have gained on the device alone is not looked at.
support::Result<void> checkFinite(const device::Device &device, const spec::Variant &variant,
                                  const plan::Plan &plan, const plan::Reach &reach,
                                  const CudaPointers &pointers, device::cu::Stream stream);

} // namespace deft::exec
