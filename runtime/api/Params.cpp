#include "runtime/api/ParamsImpl.h"

#include "compiler/support/NearestName.h"
#include "runtime/api/AttentionImpl.h"
#include "runtime/api/Convert.h"
#include "runtime/exec/ParamRanges.h"
#include "runtime/exec/Params.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace deft {

using api::usage;

namespace {

Result<std::size_t> indexOf(const Params::Impl &impl, std::string_view name) {
  std::vector<std::string> names;
  for (const ParamInfo &info : impl.attention.params())
    names.push_back(info.name);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name)
      return i;
  return usage("`" + impl.attention.name() + "` has no parameter `" + std::string(name) + "`",
               names.empty() ? "it has none at all" : support::didYouMean(std::string(name), names));
}

Result<void> checkCount(const ParamInfo &info, std::size_t count) {
  const bool isSizedByRun = info.isArray && info.length == 0; // a run looks at it
  if (!isSizedByRun && count != static_cast<std::size_t>(info.length))
    return usage("parameter `" + info.name + "` has " + std::to_string(info.length) + " values, not " +
                 std::to_string(count));
  return {};
}

template <typename T>
Result<void> setArray(Params::Impl &impl, std::string_view name, std::span<const T> values, bool isF32,
                      std::vector<T> exec::ParamValue::*member) {
  return api::guarded([&]() -> Result<void> {
    const auto index = indexOf(impl, name);
    if (!index)
      return index.error();
    const ParamInfo &info = impl.attention.params()[*index];
    if (info.isF32 != isF32)
      return usage("parameter `" + info.name + "` is " + (info.isF32 ? "f32" : "i32") + ", not " +
                   (isF32 ? "f32" : "i32"));
    if (auto checked = checkCount(info, values.size()); !checked)
      return checked;
    if constexpr (std::is_same_v<T, float>)
      if (const auto at = exec::firstNotFinite(values))
        return usage("parameter `" + info.name + "` must be finite f32s, value " + std::to_string(*at) +
                     " is " + std::to_string(values[*at]));
    exec::ParamValue value;
    (value.*member).assign(values.begin(), values.end());
    impl.values[*index] = std::move(value);
    return {};
  });
}

} // namespace

Params::Params(const Attention &attention) : impl_(std::make_unique<Impl>(attention)) {
  for (const spec::Param &param : attention.impl().variant().params)
    if (const auto &value = param.defaultValue)
      (void)set(param.name, *value); // the front end has checked it
}

Params::Params(const Params &other) : impl_(std::make_unique<Impl>(*other.impl_)) {}
Params::Params(Params &&) noexcept = default;
Params &Params::operator=(const Params &other) { return *this = Params(other); }
Params &Params::operator=(Params &&) noexcept = default;
Params::~Params() = default;

Result<void> Params::set(std::string_view name, double value) {
  return api::guarded([&]() -> Result<void> {
    const auto index = indexOf(*impl_, name);
    if (!index)
      return index.error();
    const ParamInfo &info = impl_->attention.params()[*index];
    const auto length = static_cast<std::size_t>(info.length);
    if (length == 0)
      return usage("parameter `" + info.name + "` has as many values as a run has tokens or queries",
                   "give an array");
    exec::ParamValue given;
    if (info.isF32) {
      if (!std::isfinite(static_cast<float>(value)))
        return usage("parameter `" + info.name + "` must be a finite f32, " + std::to_string(value) +
                     " is not");
      given.f32.assign(length, static_cast<float>(value));
    } else {
      using Limits = std::numeric_limits<std::int32_t>;
      // NaN fails the comparisons.
      if (!(value >= Limits::min() && value <= Limits::max()) || std::trunc(value) != value)
        return usage("parameter `" + info.name + "` is an i32, " + std::to_string(value) + " is not");
      given.i32.assign(length, static_cast<std::int32_t>(value));
    }
    impl_->values[*index] = std::move(given);
    return {};
  });
}

Result<void> Params::set(std::string_view name, std::span<const float> values) {
  return setArray(*impl_, name, values, true, &exec::ParamValue::f32);
}

Result<void> Params::set(std::string_view name, std::span<const std::int32_t> values) {
  return setArray(*impl_, name, values, false, &exec::ParamValue::i32);
}

Result<std::vector<const exec::ParamValue *>> Params::Impl::all() const {
  std::vector<const exec::ParamValue *> given;
  for (const std::optional<exec::ParamValue> &value : values) {
    if (!value) {
      const spec::Param &param = attention.impl().variant().params[given.size()];
      return usage("parameter `" + param.name + "` (" + exec::paramTypeName(param) + ") needs a value",
                   "give it with Params::set and hand the Params in with Inputs::params, of a GPU's "
                   "attention where it is loaded or with GpuAttention::withParams");
    }
    given.push_back(&*value);
  }
  return given;
}

Result<void> Params::setDevice(std::string_view name, const void *elements, std::size_t count) {
  return api::guarded([&]() -> Result<void> {
    const auto index = indexOf(*impl_, name);
    if (!index)
      return index.error();
    const ParamInfo &info = impl_->attention.params()[*index];
    if (!info.isArray)
      return usage("parameter `" + info.name + "` is one number, which goes with each launch",
                   "a number that changes in a GPU's memory is a table of one: `param " + info.name + " : " +
                       (info.isF32 ? "f32" : "i32") + "[1]`, read as `" + info.name + "[0]`");
    if (!elements)
      return usage("parameter `" + info.name + "` is at no address");
    constexpr std::uintptr_t kElementBytes = 4; // of an f32 and of an i32
    if (reinterpret_cast<std::uintptr_t>(elements) % kElementBytes != 0)
      return usage("parameter `" + info.name + "` does not begin at a multiple of " +
                   std::to_string(kElementBytes) + " bytes");
    if (auto checked = checkCount(info, count); !checked)
      return checked;
    exec::ParamValue value;
    value.device = elements;
    value.deviceCount = count;
    impl_->values[*index] = std::move(value);
    return {};
  });
}

plan::Reach Params::Impl::reach() const {
  std::vector<exec::ParamValue> known;
  known.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) // long arrays, of which no bound is made, are not copied
    known.push_back(attention.impl().variant().params[i].isSizedByRun()
                        ? exec::ParamValue()
                        : values[i].value_or(exec::ParamValue()));
  return plan::Reach::of(attention.impl().bounds, exec::rangesOf(attention.impl().variant(), known));
}

Result<std::vector<const exec::ParamValue *>> Params::Impl::allOnHost() const {
  auto given = all();
  if (!given)
    return given;
  for (std::size_t i = 0; i < given->size(); ++i)
    if ((*given)[i]->device)
      return usage("parameter `" + attention.params()[i].name +
                       "` is in a GPU's memory, which the host does not read",
                   "give its values with Params::set");
  return given;
}

Result<std::vector<abi::ParamSlot>> Params::Impl::slots() const {
  const auto readable = allOnHost();
  if (!readable)
    return readable.error();
  std::vector<abi::ParamSlot> result(readable->size());
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = exec::slotOf(attention.impl().variant().params[i], *(*readable)[i]);
  return result;
}

} // namespace deft
