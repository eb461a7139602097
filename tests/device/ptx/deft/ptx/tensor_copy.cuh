#pragma once

#include "deft/abi.h"
#include "tests/device/Words.h"

namespace deft::test {

/// What a tensor map of the tests points to. Of 16-bit elements; the first dimension is of 64 that are
/// neighbours.
struct CopyBox {
  const std::byte *tensor = nullptr;
  int rank = 0;
  long long size[5]{}, strideBytes[5]{};
  int box[5]{};

  int bytes() const {
    int all = 2;
    for (int d = 0; d < rank; ++d)
      all *= box[d];
    return all;
  }
  abi::TensorMap map() const {
    abi::TensorMap map{};
    map.words[0] = reinterpret_cast<std::uintptr_t>(this);
    return map;
  }
};

} // namespace deft::test

namespace deft::ptx {

inline void mbarrierExpectBytes(unsigned barrier, int bytes) {
  test::Block::now().expectBytes(barrier, bytes);
}

inline bool electOne() {
  test::Block::now().meet("elect");
  return test::Block::lane() == 0;
}

inline void prefetch(const abi::TensorMap &) {}

/// Rows of 128 bytes, swizzled by the address; zeros beyond the tensor.
template <class... Place>
void tensorCopy(unsigned shared, const abi::TensorMap &map, unsigned barrier, Place... place) {
  const auto &box = *reinterpret_cast<const test::CopyBox *>(map.words[0]);
  test::Block &block = test::Block::now();
  if (sizeof...(place) != static_cast<std::size_t>(box.rank) || box.box[0] != 64)
    block.fail("the map has another rank than the copy");
  block.shared(shared, static_cast<unsigned>(box.bytes()));
  const std::array<int, 5> first{place...};
  const auto land = [=, &block] {
    std::array<int, 5> at{};
    for (int row = 0; row * 128 < box.bytes(); ++row) {
      bool isInside = true;
      long long offset = 0;
      for (int d = 1, rest = row; d < box.rank; rest /= box.box[d++]) {
        at[d] = first[d] + rest % box.box[d];
        isInside &= at[d] >= 0 && at[d] < box.size[d];
        offset += at[d] * box.strideBytes[d];
      }
      for (int piece = 0; piece < 8; ++piece) {
        const int column = first[0] + piece * 8;
        const unsigned to = shared + static_cast<unsigned>(row * 128 + piece * 16);
        std::byte *into = block.shared(to ^ (to >> 7 & 7) << 4, 16);
        if (isInside && column + 8 <= box.size[0])
          std::memcpy(into, box.tensor + offset + column * 2, 16);
        else
          std::memset(into, 0, 16);
      }
    }
  };
  block.copyByEngine(land, barrier, box.bytes());
}

} // namespace deft::ptx
