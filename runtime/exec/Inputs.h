#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/AlignedVector.h"
#include "templates/deft/abi.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace deft::exec {

/// The value of one parameter of a spec. The parameter's type decides which one of the vectors is filled; a
/// scalar has one element.
struct ParamValue {
  std::vector<float> f32;
  std::vector<std::int32_t> i32;
  const void *device = nullptr; ///< for an array in a GPU's memory; both vectors are then empty
  std::size_t deviceCount = 0;  ///< its elements
};

/// The number of elements, in either memory.
inline std::size_t countOf(const ParamValue &value) {
  return value.device ? value.deviceCount : value.f32.size() + value.i32.size();
}

/// The value as kernels on the host take it; an array slot points into `value`.
abi::ParamSlot slotOf(const spec::Param &param, const ParamValue &value);

/// Where the tokens of K and of V lie, counted in elements of Tensors::keyRow and of v. If V is in K's
/// memory, both are K's layout.
struct CacheLayouts {
  abi::CacheLayout k{}, v{};
};

/// The strides of the variant's cache, in elements, with tokens or pages packed without gaps.
CacheLayouts cacheLayoutsOf(const spec::Variant &variant);

/// Elements between the rows of consecutive queries in q or an output; a given stride of 0 means that rows
/// are packed.
inline long long rowStrideOf(long long given, const spec::Variant &variant, const spec::TensorType &tensor) {
  return given > 0 ? given : static_cast<long long>(variant.queryHeads) * tensor.dim;
}

/// The first element of a token's vector for one KV head; `location` is its place in the page table.
inline long long elementOf(const abi::CacheLayout &cache, const int *pageTable, int pageSize, int location,
                           int kvHead) {
  const long long inHead = kvHead * cache.headStride;
  if (pageSize == 0)
    return location * cache.tokenStride + inHead;
  return pageTable[location / pageSize] * cache.pageStride + location % pageSize * cache.tokenStride + inHead;
}

/// The same for the token in a slot of the cache, for the first KV head.
inline long long elementOfSlot(const abi::CacheLayout &cache, int pageSize, int slot) {
  return pageSize == 0 ? slot * cache.tokenStride
                       : slot / pageSize * cache.pageStride + slot % pageSize * cache.tokenStride;
}

/// The slot of a token in the cache, and so its element of an array over tokens (LANGUAGE.md, rule P4).
inline long long cacheSlotOf(const int *pageTable, int pageSize, int location) {
  if (pageSize == 0)
    return location;
  return static_cast<long long>(pageTable[location / pageSize]) * pageSize + location % pageSize;
}

/// The inputs of every backend, in host memory and in the layouts of templates/deft/abi.h. Values are bit
/// patterns of their tensor's dtype.
struct Inputs {
  int queryCount = 0;
  std::vector<std::uint16_t> q; ///< [query, caller's index: qStride][query_heads][dim of q]
  /// The whole pool; `cache` says where a token lies. For an 8-bit dtype each number here holds two elements,
  /// which bitsAt and setBitsAt (Half.h) separate.
  AlignedVector<std::uint16_t> k;
  AlignedVector<std::uint16_t> v; ///< likewise; empty if V is in K's memory
  CacheLayouts cache;
  std::vector<int> pageTable;     ///< physical page of each page of the table; empty when contiguous
  std::vector<ParamValue> params; ///< one for each of Variant::params, in the same order
  long long qStride = 0;          ///< elements between consecutive queries in q; 0: packed

  /// The parameters as kernels on the host take them; array slots point into this object.
  std::vector<abi::ParamSlot> paramSlots(const spec::Variant &variant) const;

  /// False if a host has freed the page because a mask hides it from all queries.
  bool hasPage(int location, int pageSize) const {
    return pageSize == 0 || pageTable[static_cast<std::size_t>(location / pageSize)] >= 0;
  }

  /// First element of a query's vector in q for one query head.
  long long queryAt(const spec::Variant &variant, int query, int head) const {
    return query * rowStrideOf(qStride, variant, variant.tensors.q) + head * variant.tensors.q.dim;
  }

  /// First element of a token's vector in k, and in values(), for one KV head.
  long long keyAt(int location, int pageSize, int kvHead) const {
    return elementOf(cache.k, pageTable.data(), pageSize, location, kvHead);
  }
  long long valueAt(int location, int pageSize, int kvHead) const {
    return elementOf(cache.v, pageTable.data(), pageSize, location, kvHead);
  }
  /// The memory that holds V.
  const AlignedVector<std::uint16_t> &values(const spec::Variant &variant) const {
    return variant.tensors.valueInKey ? k : v;
  }
};

/// Inputs for an executor. They belong to the caller, who keeps them until the run has ended.
struct InputView {
  int queryCount = 0;
  const std::uint16_t *q = nullptr; ///< [query, caller's index: qStride][query_heads][dim of q]
  const void *k = nullptr;
  const void *v = nullptr; ///< equal to k if V is in K's memory
  CacheLayouts cache;
  int pageSize = 0;               ///< 0: contiguous
  const int *pageTable = nullptr; ///< with every page that a run names; unused when contiguous
  const abi::ParamSlot *params = nullptr;
  long long qStride = 0; ///< as in Inputs

  /// `params` are the result of Inputs::paramSlots.
  static InputView of(const Inputs &inputs, const spec::Variant &variant,
                      const std::vector<abi::ParamSlot> &params) {
    return {inputs.queryCount, inputs.q.data(),        inputs.k.data(),         inputs.values(variant).data(),
            inputs.cache,      variant.cache.pageSize, inputs.pageTable.data(), params.data(),
            inputs.qStride};
  }

  /// First element of a token's vector in k, and in v, for one KV head.
  long long keyAt(int location, int kvHead) const {
    return elementOf(cache.k, pageTable, pageSize, location, kvHead);
  }
  long long valueAt(int location, int kvHead) const {
    return elementOf(cache.v, pageTable, pageSize, location, kvHead);
  }
  /// The same for a slot of the cache, for the first KV head.
  long long keyAtSlot(int slot) const { return elementOfSlot(cache.k, pageSize, slot); }
  long long valueAtSlot(int slot) const { return elementOfSlot(cache.v, pageSize, slot); }
  long long slotAt(int location) const { return cacheSlotOf(pageTable, pageSize, location); }
};

/// The memory that an executor writes to; it belongs to the caller.
struct OutputView {
  std::uint16_t *out = nullptr; ///< [query, caller's index: outStride][query_heads][dim of out]
  float *lse = nullptr;         ///< [query, caller's index][query_heads]; null: not wanted
  long long outStride = 0;      ///< elements between consecutive queries in out; 0: packed
};

struct Outputs {
  std::vector<std::uint16_t> out; ///< [query, caller's index][query_heads][dim of out]
  std::vector<float> lse;         ///< [query, caller's index][query_heads]; filled for softmax `with lse`
};

} // namespace deft::exec
