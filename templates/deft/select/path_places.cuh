#pragma once

#include "deft/select_abi.h"

namespace deft::select {

/// Finds the place and the depth of the token at a position of a query's path. It keeps the last stretch that
/// it found. If positions rise, most of them lie in that stretch.
template <class Config> class PathPlaces {
public:
  __device__ __forceinline__ PathPlaces(const abi::Selected &selected, int query)
      : stretches_(selected.stretches + selected.stretchBegin[query]), pageTable_(selected.pageTable),
        count_(selected.stretchBegin[query + 1] - selected.stretchBegin[query]) {
    if (count_ > 0)
      at_ = stretches_[0];
  }

  /// The position after the path's last token.
  __device__ __forceinline__ int length() const {
    return count_ > 0 ? stretches_[count_ - 1].position + stretches_[count_ - 1].tokens : 0;
  }

  /// The place of a token of the path, in the form of Selected::places.
  __device__ __forceinline__ int placeOf(int position) {
    seek(position);
    const int location = at_.location + (position - at_.position);
    if constexpr (Config::kPageSize > 0) {
      const unsigned token = static_cast<unsigned>(location);
      return pageTable_[token / Config::kPageSize] * Config::kPageSize +
             static_cast<int>(token % Config::kPageSize);
    } else {
      return location;
    }
  }
  __device__ __forceinline__ int depthOf(int position) {
    seek(position);
    return at_.depth;
  }

private:
  __device__ __forceinline__ void seek(int position) {
    if (position - at_.position < at_.tokens)
      return;
    int low = 0, high = count_ - 1; // the last stretch that begins at or before the position
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (stretches_[middle].position <= position)
        low = middle;
      else
        high = middle - 1;
    }
    at_ = stretches_[low];
  }

  const abi::PathStretch *stretches_;
  const int *pageTable_;
  int count_;
  abi::PathStretch at_{};
};

} // namespace deft::select
