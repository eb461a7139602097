#pragma once

#include "deft/abi.h"

/// The places of rows of q, K and V, in units (see abi::CachePlaces).
namespace deft {

/// Elements of a unit: abi::kStrideElements, or half as many if these do not divide a row. The host's
/// counterpart is exec::unitOf.
template <class Config>
constexpr int kRowUnit =
    (Config::kKeyDim | Config::kValueDim) % abi::kStrideElements == 0 ? abi::kStrideElements
                                                                      : abi::kStrideElements / 2;

/// Whether a kernel finds its tokens in unions of lists (abi::Unions), which contain cache slots, instead of
/// runs. By default, configs have runs.
template <class Config> constexpr bool kReadsUnions = requires { requires Config::kReadsUnions; };

/// The place of a query head's row.
template <class Config>
__device__ __forceinline__ unsigned queryPlace(const abi::AttendArgs &args, int callerIndex, int head) {
  constexpr unsigned kUnit = kRowUnit<Config>;
  return static_cast<unsigned>(callerIndex) * (static_cast<unsigned>(args.qStride) / kUnit) +
         static_cast<unsigned>(head) * (Config::kKeyDim / kUnit);
}

/// The place of a token for a KV head. In a contiguous cache, `page` is the token.
template <class Config>
__device__ __forceinline__ unsigned tokenPlace(const abi::CachePlaces &cache, int kvHead, int page,
                                               int inPage) {
  return static_cast<unsigned>(kvHead) * cache.headStride +
         static_cast<unsigned>(inPage) * cache.tokenStride +
         static_cast<unsigned>(page) * (Config::kPageSize > 0 ? cache.pageStride : cache.tokenStride);
}

/// Whether tokens have the same distances in both caches.
__device__ __forceinline__ bool areAlike(const abi::CachePlaces &a, const abi::CachePlaces &b) {
  return a.pageStride == b.pageStride && a.tokenStride == b.tokenStride && a.headStride == b.headStride;
}

/// The address of the element (of type Element) at a place after `from`.
template <class Config, class Element>
__device__ __forceinline__ const char *atPlace(const char *from, unsigned place) {
  return from + static_cast<unsigned long long>(place) * (kRowUnit<Config> * sizeof(Element));
}

} // namespace deft
