#pragma once

#include "runtime/c_api/Handles.h"
#include "runtime/c_api/RunTensors.h"

/// A run on the host: what a caller hands over becomes what the C++ API takes.
namespace deft::c {

/// Checks the tensors and calls `run(inputs, outputs)`.
template <class Run>
Result<void> runOnHost(const deft_attention *attention, const deft_plan *plan, const deft_inputs *inputs,
                       const deft_outputs *outputs, const Run &run) {
  const auto tensors = checkTensors(attention->attention, plan->plan.queryCount(), {}, inputs, outputs);
  if (!tensors)
    return tensors.error();
  return run(Inputs{.q = tensors->q,
                    .k = tensors->k,
                    .v = tensors->v,
                    .pageTable = tensors->pageTable,
                    .strides = tensors->strides,
                    .params = paramsOf(tensors->params),
                    .cachePages = tensors->cachePages,
                    .vStrides = tensors->vStrides,
                    .qStride = tensors->qStride,
                    .checksFinite = tensors->checksFinite},
             Outputs{.out = tensors->out, .lse = tensors->lse, .outStride = tensors->outStride});
}

} // namespace deft::c
