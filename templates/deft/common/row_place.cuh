#pragma once

#include "deft/abi.h"

/// Where rows of q, K and V begin, in units (see abi::CachePlaces).
namespace deft {

/// Elements of a unit: abi::kStrideElements, or half as many where these do not divide a row. The host's twin
/// is exec::unitOf.
template <class Config>
constexpr int kRowUnit =
    (Config::kKeyDim | Config::kValueDim) % abi::kStrideElements == 0 ? abi::kStrideElements
                                                                      : abi::kStrideElements / 2;

/// Whether a kernel finds its tokens in unions of lists (abi::Unions), which name slots of the cache, in
/// place of runs. Configs that say nothing of it have runs.
template <class Config> constexpr bool kReadsUnions = requires { requires Config::kReadsUnions; };

/// Of a query and a query head.
template <class Config>
__device__ __forceinline__ unsigned queryPlace(const abi::AttendArgs &args, int callerIndex, int head) {
  constexpr unsigned kUnit = kRowUnit<Config>;
  return static_cast<unsigned>(callerIndex) * (static_cast<unsigned>(args.qStride) / kUnit) +
         static_cast<unsigned>(head) * (Config::kKeyDim / kUnit);
}

/// Of a token and a KV head. In a contiguous cache, `page` is the token.
template <class Config>
__device__ __forceinline__ unsigned tokenPlace(const abi::CachePlaces &cache, int kvHead, int page,
                                               int inPage) {
  return static_cast<unsigned>(kvHead) * cache.headStride +
         static_cast<unsigned>(inPage) * cache.tokenStride +
         static_cast<unsigned>(page) * (Config::kPageSize > 0 ? cache.pageStride : cache.tokenStride);
}

/// Whether a token is as far from the first one of both.
__device__ __forceinline__ bool areAlike(const abi::CachePlaces &a, const abi::CachePlaces &b) {
  return a.pageStride == b.pageStride && a.tokenStride == b.tokenStride && a.headStride == b.headStride;
}

/// The byte of a tensor's elements of type Element that is so far behind `from`.
template <class Config, class Element>
__device__ __forceinline__ const char *atPlace(const char *from, unsigned place) {
  return from + static_cast<unsigned long long>(place) * (kRowUnit<Config> * sizeof(Element));
}

} // namespace deft
