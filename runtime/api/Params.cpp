#include "runtime/api/Params.h"

#include "compiler/support/NearestName.h"
#include "runtime/exec/ParamRanges.h"
#include "runtime/exec/Params.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

using namespace deft;
using namespace deft::api;

namespace {

bool isF32(const spec::Param &param) { return param.type == spec::ScalarType::F32; }

/// A parameter that is to get a value.
struct Named {
  const spec::Param &param;
  std::optional<exec::ParamValue> &value;
  int length; ///< 0: as many as a run has tokens or queries

  std::string text() const { return "parameter `" + param.name + "`"; }

  Result<void> checkCount(std::size_t count) const {
    if (length == 0 || count == static_cast<std::size_t>(length)) // of 0 a run looks at it
      return {};
    return usage(text() + " has " + std::to_string(length) + " values, not " + std::to_string(count));
  }
};

Result<Named> find(deft_params &params, const std::string &name) {
  const spec::Variant &variant = params.variant();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < variant.params.size(); ++i) {
    const spec::Param &param = variant.params[i];
    if (param.name == name)
      return Named{param, params.values[i], exec::paramLength(variant, param)};
    names.push_back(param.name);
  }
  return usage(variant.called() + " has no parameter `" + name + "`",
               names.empty() ? "it has no parameters" : support::didYouMean(name, names));
}

Result<exec::ParamValue> sameForAll(const Named &named, double value) {
  if (named.length == 0)
    return usage(named.text() + " has a value for each token or query of a run", "give an array");
  exec::ParamValue given;
  const auto length = static_cast<std::size_t>(named.length);
  if (isF32(named.param)) {
    if (!std::isfinite(static_cast<float>(value)))
      return usage(named.text() + " must be a finite f32, " + std::to_string(value) + " is not");
    given.f32.assign(length, static_cast<float>(value));
    return given;
  }
  using Limits = std::numeric_limits<std::int32_t>;
  // NaN fails the comparisons.
  if (!(value >= Limits::min() && value <= Limits::max()) || std::trunc(value) != value)
    return usage(named.text() + " is an i32, " + std::to_string(value) + " is not");
  given.i32.assign(length, static_cast<std::int32_t>(value));
  return given;
}

template <typename T>
deft_status setArray(deft_params *params, const char *name, const T *values, size_t count,
                     std::vector<T> exec::ParamValue::*member) {
  return call({{"params", params}, {"name", name}}, [&]() -> Result<void> {
    if (auto checked = checkArray("values", values, count); !checked)
      return checked;
    const auto named = find(*params, name);
    if (!named)
      return named.error();
    constexpr bool kIsF32 = std::is_same_v<T, float>;
    if (isF32(named->param) != kIsF32)
      return usage(named->text() + " is " + (kIsF32 ? "i32, not f32" : "f32, not i32"));
    if (auto checked = named->checkCount(count); !checked)
      return checked;
    if constexpr (kIsF32)
      if (const auto at = exec::firstNotFinite(std::span(values, count)))
        return usage(named->text() + " must be finite f32s, value " + std::to_string(*at) + " is " +
                     std::to_string(values[*at]));
    exec::ParamValue value;
    (value.*member).assign(values, values + count);
    named->value = std::move(value);
    return {};
  });
}

} // namespace

deft_params::deft_params(const deft_attention &of) : attention(of.of), values(variant().params.size()) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const spec::Param &param = variant().params[i];
    if (param.defaultValue) // the front end has checked it
      values[i] = *sameForAll({param, values[i], exec::paramLength(variant(), param)}, *param.defaultValue);
  }
}

Result<void> deft_params::checkIsOf(const Attention &other, const char *field) const {
  if (attention.get() == &other)
    return {};
  return wrong(field, "are those of another attention", "make them of the attention that runs");
}

Result<std::vector<const exec::ParamValue *>> deft_params::all() const {
  std::vector<const exec::ParamValue *> given;
  for (const std::optional<exec::ParamValue> &value : values) {
    if (!value) {
      const spec::Param &param = variant().params[given.size()];
      return wrong("params[\"" + param.name + "\"]", "needs a value (" + exec::paramTypeName(param) + ")",
                   "set it, and pass the parameters to the run, on a GPU to its attention");
    }
    given.push_back(&*value);
  }
  return given;
}

Result<std::vector<const exec::ParamValue *>> deft_params::allOnHost() const {
  auto given = all();
  if (!given)
    return given;
  for (std::size_t i = 0; i < given->size(); ++i)
    if ((*given)[i]->device)
      return usage("parameter `" + variant().params[i].name +
                       "` is in a GPU's memory, which the host does not read",
                   "give its values in the host's memory");
  return given;
}

Result<std::vector<abi::ParamSlot>> deft_params::slots() const {
  const auto readable = allOnHost();
  if (!readable)
    return readable.error();
  std::vector<abi::ParamSlot> result(readable->size());
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = exec::slotOf(variant().params[i], *(*readable)[i]);
  return result;
}

plan::Reach deft_params::reach() const {
  std::vector<exec::ParamValue> known;
  known.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) // long arrays are not copied: plans take no bound from them
    known.push_back(variant().params[i].isSizedByRun() ? exec::ParamValue()
                                                       : values[i].value_or(exec::ParamValue()));
  return plan::Reach::of(attention->bounds, exec::rangesOf(variant(), known));
}

deft_status deft_params_make(const deft_attention *attention, deft_params **params) {
  return make({{"attention", attention}}, params,
              [&] { return Result(std::make_unique<deft_params>(*attention)); });
}

deft_status deft_params_copy(const deft_params *params, deft_params **copy) {
  return make({{"params", params}}, copy, [&] { return Result(std::make_unique<deft_params>(*params)); });
}

void deft_params_destroy(deft_params *params) { delete params; }

deft_status deft_params_set(deft_params *params, const char *name, double value) {
  return call({{"params", params}, {"name", name}}, [&]() -> Result<void> {
    const auto named = find(*params, name);
    if (!named)
      return named.error();
    auto given = sameForAll(*named, value);
    if (!given)
      return given.error();
    named->value = std::move(*given);
    return {};
  });
}

deft_status deft_params_set_f32(deft_params *params, const char *name, const float *values, size_t count) {
  return setArray(params, name, values, count, &exec::ParamValue::f32);
}

deft_status deft_params_set_i32(deft_params *params, const char *name, const int32_t *values, size_t count) {
  return setArray(params, name, values, count, &exec::ParamValue::i32);
}

deft_status deft_params_set_device(deft_params *params, const char *name, const void *elements,
                                   size_t count) {
  return call({{"params", params}, {"name", name}, {"elements", elements}}, [&]() -> Result<void> {
    const auto named = find(*params, name);
    if (!named)
      return named.error();
    const spec::Param &param = named->param;
    if (param.shape == spec::Param::Shape::Scalar)
      return usage(named->text() + " is one number, which is passed with each launch",
                   "a number that changes in a GPU's memory is a table of one: `param " + param.name + " : " +
                       (isF32(param) ? "f32" : "i32") + "[1]`, read as `" + param.name + "[0]`");
    constexpr std::uintptr_t kElementBytes = 4; // of an f32 and of an i32
    if (reinterpret_cast<std::uintptr_t>(elements) % kElementBytes != 0)
      return usage(named->text() + " does not begin at a multiple of " + std::to_string(kElementBytes) +
                   " bytes");
    if (auto checked = named->checkCount(count); !checked)
      return checked;
    exec::ParamValue value;
    value.device = elements;
    value.deviceCount = count;
    named->value = std::move(value);
    return {};
  });
}
