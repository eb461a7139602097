#include "runtime/c_api/Boundary.h"
#include "runtime/c_api/Handles.h"

#include <span>

using namespace deft::c;

deft_status deft_params_make(const deft_attention *attention, deft_params **params) {
  return make(__func__, {{"attention", attention}}, params,
              [&] { return deft::Result(deft::Params(attention->attention)); });
}

deft_status deft_params_copy(const deft_params *params, deft_params **copy) {
  return make(__func__, {{"params", params}}, copy, [&] { return deft::Result(params->params); });
}

void deft_params_destroy(deft_params *params) { delete params; }

deft_status deft_params_set(deft_params *params, const char *name, double value) {
  return call(__func__, {{"params", params}, {"name", name}},
              [&] { return params->params.set(name, value); });
}

deft_status deft_params_set_f32(deft_params *params, const char *name, const float *values, size_t count) {
  return call(__func__, {{"params", params}, {"name", name}, {"values", values}},
              [&] { return params->params.set(name, std::span(values, count)); });
}

deft_status deft_params_set_device(deft_params *params, const char *name, const void *elements,
                                   size_t count) {
  return call(__func__, {{"params", params}, {"name", name}, {"elements", elements}},
              [&] { return params->params.setDevice(name, elements, count); });
}

deft_status deft_params_set_i32(deft_params *params, const char *name, const int32_t *values, size_t count) {
  return call(__func__, {{"params", params}, {"name", name}, {"values", values}},
              [&] { return params->params.set(name, std::span(values, count)); });
}
