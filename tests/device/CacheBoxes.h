#pragma once

#include "deft/abi.h"
#include "deft/ptx/tensor_copy.cuh"

#include <algorithm>
#include <array>
#include <cstddef>

namespace deft::test {

/// One tensor of a cache, as a driver makes maps of it.
struct BoxedTensor {
  const std::byte *tensor;
  const abi::CacheLayout &cache;
  int columns, bytes;        ///< of a token's row, and of an element
  int page, places, kvHeads; ///< tokens of a page, tokens of the cache, and its heads
  bool isHalved;             ///< a box of a whole tile has half of the blocks of 64 columns
};

/// Boxes of 16 and of 32 tokens, and whole tiles (abi::AttendArgs).
inline void makeBoxes(const BoxedTensor &of, std::array<CopyBox, 3> &boxes, abi::TensorMap (&maps)[3]) {
  const long long tokens = of.page > 1 ? of.page : of.places;
  const int words = of.columns * of.bytes / 2; // of 16 bits
  const int blocks = (words + 63) / 64, blocksTaken = of.isHalved ? (blocks + 1) / 2 : blocks;
  const long long tokenBytes = of.bytes * (of.page == 1 ? of.cache.pageStride : of.cache.tokenStride);
  for (std::size_t box = 0; box < 3; ++box) {
    CopyBox &made = boxes[box];
    made.tensor = of.tensor;
    made.rank = 0;
    const auto dimension = [&](long long size, long long bytes, int taken) {
      made.size[made.rank] = size;
      made.strideBytes[made.rank] = bytes;
      made.box[made.rank++] = taken;
    };
    if (box < 2) {
      dimension(words, 2, 64);
      dimension(of.kvHeads, of.bytes * of.cache.headStride, 1);
      dimension(tokens, tokenBytes, 16 << box);
    } else {
      dimension(std::min(words, 64), 2, 64);
      dimension(tokens, tokenBytes, 64);
      dimension(blocks, 128, blocksTaken);
      dimension(of.kvHeads, of.bytes * of.cache.headStride, 1);
    }
    if (of.page > 1)
      dimension(of.places / of.page, of.bytes * of.cache.pageStride, 1);
    maps[box] = made.map();
  }
}

} // namespace deft::test
