#include "runtime/c_api/Handles.h"
#include "runtime/c_api/Sized.h"

using namespace deft::c;

deft_status deft_gpu_attention_load(const deft_gpu *gpu, const deft_attention *attention,
                                    const deft_gpu_load_options *options, deft_gpu_attention **loaded) {
  return make(__func__, {{"gpu", gpu}, {"attention", attention}}, loaded,
              [&]() -> deft::Result<deft::GpuAttention> {
                const auto known = readSized("deft_gpu_load_options", options);
                if (!known)
                  return known.error();
                return deft::GpuAttention::load(
                    gpu->gpu, attention->attention,
                    {.typicalTree = known->typical_tree ? known->typical_tree->seen : nullptr,
                     .params = paramsOf(known->params),
                     .invariant = known->is_invariant != 0});
              });
}

deft_status deft_gpu_attention_with_params(const deft_gpu_attention *attention, const deft_params *params,
                                           deft_gpu_attention **other) {
  return make(__func__, {{"attention", attention}, {"params", params}}, other,
              [&] { return attention->loaded.withParams(params->params); });
}

void deft_gpu_attention_destroy(deft_gpu_attention *attention) { delete attention; }

const deft_attention *deft_gpu_attention_get_attention(const deft_gpu_attention *attention) {
  return ask<const deft_attention *>(__func__, {"attention", attention}, nullptr,
                                     [&] { return &attention->attention; });
}

const deft_gpu *deft_gpu_attention_get_gpu(const deft_gpu_attention *attention) {
  return ask<const deft_gpu *>(__func__, {"attention", attention}, nullptr, [&] { return &attention->gpu; });
}
