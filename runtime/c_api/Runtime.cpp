#include "runtime/c_api/HostRun.h"
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
              [&] {
                return runOnHost(attention, plan, inputs, outputs, [&](const auto &in, const auto &out) {
                  return runtime->runtime.run(attention->attention, plan->plan, in, out);
                });
              });
}
