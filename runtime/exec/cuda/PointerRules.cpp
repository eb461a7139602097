#include "runtime/exec/cuda/PointerRules.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

namespace deft::exec {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

Error usage(std::string message, std::string hint = "") {
  return {ErrorCode::Usage, std::move(message), std::move(hint)};
}

/// What a caller gives as CudaPointers::v.
const char *nameOfV(const spec::Variant &variant) { return variant.tensors.valueInKey ? "k_rope" : "v"; }

/// The first of the pointers that kernels cannot read by 16 bytes.
const char *findUnaligned(const spec::Variant &variant, const CudaPointers &pointers) {
  const auto isUnaligned = [](const void *pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16; };
  return isUnaligned(pointers.q)     ? "q"
         : isUnaligned(pointers.k)   ? "k"
         : isUnaligned(pointers.v)   ? nameOfV(variant)
         : isUnaligned(pointers.out) ? "out"
                                     : nullptr;
}

int packedRow(const spec::Variant &variant, const spec::TensorType &tensor) {
  return variant.queryHeads * tensor.dim;
}

Result<void> checkMultiple(const std::string &what, long long stride, int unit) {
  if (stride % unit == 0)
    return {};
  return usage(what + " is " + std::to_string(stride) + " elements, not a multiple of " +
               std::to_string(unit));
}

Result<void> checkRows(const std::string &name, long long stride, int packed, int unit) {
  if (stride == 0)
    return {};
  if (stride < packed || stride > std::numeric_limits<int>::max())
    return usage("the row stride of " + name + " is " + std::to_string(stride) +
                 " elements, not between the " + std::to_string(packed) + " of a row and " +
                 std::to_string(std::numeric_limits<int>::max()));
  return checkMultiple("the row stride of " + name, stride, unit);
}

Result<void> checkCache(const std::string &name, const abi::CacheLayout &layout, const spec::Variant &variant,
                        long long cachePages) {
  const int pageSize = variant.cache.pageSize, kvHeads = variant.kvHeads, unit = unitOf(variant);
  if (pageSize > 0)
    if (auto page = checkMultiple("the page stride of " + name, layout.pageStride, unit); !page)
      return page;
  if (pageSize != 1)
    if (auto token = checkMultiple("the token stride of " + name, layout.tokenStride, unit); !token)
      return token;
  if (kvHeads > 1)
    if (auto head = checkMultiple("the head stride of " + name, layout.headStride, unit); !head)
      return head;
  if (cachePages == 0)
    return {};
  const bool isPaged = pageSize > 0;
  const long long stride = isPaged ? layout.pageStride : layout.tokenStride;
  const auto last =
      static_cast<double>(cachePages - 1) * static_cast<double>(stride) +
      (isPaged ? static_cast<double>(pageSize - 1) * static_cast<double>(layout.tokenStride) : 0) +
      static_cast<double>(kvHeads - 1) * static_cast<double>(layout.headStride);
  const long long mostElements = (1LL << 32) * unit;
  if (last < static_cast<double>(mostElements))
    return {};
  return usage("the " + std::to_string(cachePages) + (isPaged ? " pages of " : " tokens of ") + name + ", " +
                   std::to_string(stride) + " elements apart, reach beyond the " +
                   std::to_string(mostElements) + " elements that kernels count",
               "use a pointer nearer to them, or split the cache");
}

} // namespace

int unitOf(const spec::Variant &variant) {
  const bool divides = (variant.tensors.k.dim | variant.tensors.v.dim) % abi::kStrideElements == 0;
  return divides ? abi::kStrideElements : abi::kStrideElements / 2;
}

abi::CachePlaces placesOf(const spec::Variant &variant, const abi::CacheLayout &layout) {
  const int unit = unitOf(variant);
  const auto unitsOf = [&](long long stride) { return static_cast<unsigned>(stride / unit); };
  // A latent cache has one KV head, and groups of query heads stand where KV heads do elsewhere.
  const long long headStride = variant.tensors.valueInKey ? 0 : layout.headStride;
  return {unitsOf(layout.pageStride), unitsOf(layout.tokenStride), unitsOf(headStride)};
}

int qStrideOf(const spec::Variant &variant, const CudaPointers &pointers) {
  return pointers.qStride > 0 ? static_cast<int>(pointers.qStride) : packedRow(variant, variant.tensors.q);
}

int outStrideOf(const spec::Variant &variant, const CudaPointers &pointers) {
  return pointers.outStride > 0 ? static_cast<int>(pointers.outStride)
                                : packedRow(variant, variant.tensors.out);
}

Result<void> checkPointers(const spec::Variant &variant, const CudaPointers &pointers) {
  if (const char *unaligned = findUnaligned(variant, pointers))
    return usage(std::string(unaligned) + " does not begin at a multiple of 16 bytes");
  const int unit = unitOf(variant);
  if (auto q = checkRows("q", pointers.qStride, packedRow(variant, variant.tensors.q), unit); !q)
    return q;
  if (auto out = checkRows("out", pointers.outStride, packedRow(variant, variant.tensors.out), unit); !out)
    return out;
  if (auto k = checkCache("k", pointers.cache.k, variant, pointers.cachePages); !k)
    return k;
  return checkCache(nameOfV(variant), pointers.cache.v, variant, pointers.cachePages);
}

} // namespace deft::exec
