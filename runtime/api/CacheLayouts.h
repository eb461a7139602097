#pragma once

#include "runtime/exec/Inputs.h"

#include <deft/attention.hpp>

#include <optional>

namespace deft::api {

/// Where K and V lie as a caller says it: V as K where nothing is said of it, or where it is in K's memory.
inline exec::CacheLayouts cacheLayoutsOf(const spec::Variant &variant, const std::optional<CacheStrides> &k,
                                         const std::optional<CacheStrides> &v) {
  const auto layoutOf = [](const CacheStrides &strides) {
    return abi::CacheLayout{strides.page, strides.token, strides.head};
  };
  exec::CacheLayouts layouts = exec::cacheLayoutsOf(variant);
  if (k)
    layouts.k = layouts.v = layoutOf(*k);
  if (v && !variant.tensors.valueInKey)
    layouts.v = layoutOf(*v);
  return layouts;
}

} // namespace deft::api
