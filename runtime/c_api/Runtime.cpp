#include "runtime/c_api/Handles.h"
#include "runtime/c_api/RunTensors.h"
#include "runtime/c_api/Sized.h"

using namespace deft::c;

deft_status deft_runtime_make(const deft_runtime_options *options, deft_runtime **runtime) {
  return make(__func__, {}, runtime, [&]() -> deft::Result<deft::Runtime> {
    const auto known = readSized("deft_runtime_options", options);
    if (!known)
      return known.error();
    return deft::Runtime::create({.threads = known->threads});
  });
}

void deft_runtime_destroy(deft_runtime *runtime) { delete runtime; }

int32_t deft_runtime_threads(const deft_runtime *runtime) {
  return ask(__func__, {"runtime", runtime}, 0, [&] { return runtime->runtime.threads(); });
}

deft_status deft_runtime_run(const deft_runtime *runtime, const deft_attention *attention,
                             const deft_plan *plan, const deft_inputs *inputs, const deft_outputs *outputs) {
  return call(__func__,
              {{"runtime", runtime},
               {"attention", attention},
               {"plan", plan},
               {"inputs", inputs},
               {"outputs", outputs}},
              [&]() -> deft::Result<void> {
                const auto tensors =
                    checkTensors(attention->attention, plan->plan.queryCount(), {}, inputs, outputs);
                if (!tensors)
                  return tensors.error();
                return runtime->runtime.run(
                    attention->attention, plan->plan,
                    {.q = tensors->q,
                     .k = tensors->k,
                     .v = tensors->v,
                     .pageTable = tensors->pageTable,
                     .strides = tensors->strides,
                     .params = paramsOf(tensors->params),
                     .cachePages = tensors->cachePages,
                     .vStrides = tensors->vStrides,
                     .qStride = tensors->qStride},
                    {.out = tensors->out, .lse = tensors->lse, .outStride = tensors->outStride});
              });
}
