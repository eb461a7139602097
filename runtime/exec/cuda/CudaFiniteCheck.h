#pragma once

#include "compiler/support/Result.h"
#include "runtime/device/Device.h"
#include "runtime/exec/cuda/CudaPointers.h"
#include "runtime/plan/Plan.h"

namespace deft::exec {

/// Waits for the stream, copies the inputs and outputs of the plan's run to the host, and looks for NaN and
/// infinities (FiniteCheck.h). For debugging: it takes time, and host memory for all tokens that the plan
/// reads. Tokens that leaves have gained only on the device are not checked.
support::Result<void> checkFinite(const device::Device &device, const spec::Variant &variant,
                                  const plan::Plan &plan, const plan::Reach &reach,
                                  const CudaPointers &pointers, device::cu::Stream stream);

} // namespace deft::exec
