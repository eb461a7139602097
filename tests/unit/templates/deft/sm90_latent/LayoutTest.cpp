#include "tests/device/Words.h"

#include "deft/sm90_latent/layout.cuh"
#include "tests/device/DeviceConfig.h"

#include <gtest/gtest.h>
#include <set>

namespace deft::sm90_latent {
namespace {

/// For few rows over bytes.
template <int kColumns> struct OfBytes : test::DeviceConfig {
  using Query = bf16;
  using Key = e4m3;
  using Value = e4m3;
  static constexpr bool kIsLatent = true;
  static constexpr int kQueryHeads = 16, kKvHeads = 1, kRatio = 16;
  static constexpr int kKeyDim = kColumns + 64, kValueDim = kColumns, kPageSize = 64;
  static constexpr int kTileQ = 16, kTileKv = 64, kStages = 4, kWarps = 12;
};

/// The places of all bytes of V's columns are different ones before the columns behind them.
template <int kColumns> void checkPlaces() {
  using L = Layout<Known<OfBytes<kColumns>>>;
  std::set<unsigned> places;
  for (int token = 0; token < 64; ++token)
    for (int piece = 0; piece < kColumns / 16; ++piece)
      places.insert(L::byteOffset(token, piece));
  EXPECT_EQ(places.size(), 64U * kColumns / 16) << kColumns;
  EXPECT_EQ(*places.rbegin() + 16, static_cast<unsigned>(L::kRopeOffset)) << kColumns;
}
TEST(Sm90LatentLayoutTest, BytesHavePlacesOfTheirOwn) {
  checkPlaces<256>();
  checkPlaces<384>();
  checkPlaces<512>();
}

/// Whether each eight lanes of a warp read 16 bytes each from all banks.
template <class At> bool haveNoConflicts(At &&at) {
  for (int first = 0; first < 32; first += 8) {
    std::set<unsigned> banks;
    for (int lane = first; lane < first + 8; ++lane)
      banks.insert(at(lane) / 16 % 8);
    if (banks.size() != 8)
      return false;
  }
  return true;
}

TEST(Sm90LatentLayoutTest, BytesAreReadWithoutConflicts) {
  using L = Layout<Known<OfBytes<512>>>;
  for (int first = 0; first < 64; first += 8)
    for (int piece = 0; piece < 512 / 16; piece += 4)
      EXPECT_TRUE(haveNoConflicts([&](int lane) {
        return L::byteOffset(first + lane / 4, piece + lane % 4);
      })) << "keys: "
          << first << " " << piece;
  for (int first = 0; first < 64; first += 32)
    for (int piece = 0; piece < 512 / 16; ++piece)
      EXPECT_TRUE(haveNoConflicts([&](int lane) { return L::byteOffset(first + lane, piece); }))
          << "values: " << first << " " << piece;
}

TEST(Sm90LatentLayoutTest, ATileKeepsBytesAlone) {
  using L = Layout<Known<OfBytes<512>>>;
  EXPECT_EQ(L::kTileBytes, 64 * (512 + 64));
  EXPECT_LE(smemBytes<OfBytes<512>>(), 227 * 1024);
}

} // namespace
} // namespace deft::sm90_latent
