#include "tests/device/Words.h"

#include "deft/ptx/block.cuh"
#include "deft/ptx/ldmatrix.cuh"
#include "deft/sm90/byte_conversion.cuh"
#include "deft/sm90/eight_bit_products.cuh"
#include "deft/sm90/warp_queries.cuh"
#include "tests/device/Conflicts.h"
#include "tests/device/DeviceConfig.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace deft::sm90 {
namespace {

template <int kDim, class Base, int kStagesOf = Base::kStages> struct Config : Base {
  static constexpr int kKeyDim = kDim, kValueDim = kDim, kStages = kStagesOf;
};

template <int kOfKeys, int kOfValues, class Base, int kStagesOf>
struct Unlike : Config<kOfKeys, Base, kStagesOf> {
  static constexpr int kValueDim = kOfValues;
};

template <class Base> struct Bytes : Base {
  using Key = e4m3;
  using Value = e4m3;
};

/// And products of them.
template <class Base> struct Multiplied : Bytes<Base> {
  static constexpr bool kByteProducts = true;
};

template <class C> void checkTile() {
  using L = Layout<C>;
  std::set<unsigned> places;
  for (int row = 0; row < 64; ++row)
    for (int column = 0; column < L::kKeyColumns; ++column) {
      const unsigned offset = L::offset(row, column);
      EXPECT_EQ(offset % 16, 0u);
      EXPECT_LE(offset + 16, static_cast<unsigned>(L::kKeyTileBytes));
      EXPECT_TRUE(places.insert(offset).second) << C::kKeyDim << ": " << row << " " << column;
    }
  test::conflicts = 0;
  EXPECT_EQ(
      test::runBlock({.sharedBytes = L::kKeyTileBytes},
                     [&] {
                       const unsigned base = ptx::sharedAddress(ptx::dynamicShared<1024>());
                       const int lane = static_cast<int>(threadIdx.x);
                       unsigned r[4];
                       for (int row = 0; row < 64; row += 16)
                         for (int column = 0; column < L::kKeyColumns; column += 2) {
                           ptx::ldmatrix4(
                               r, base + L::offset(row + lane % 8 + lane / 16 * 8, column + lane / 8 % 2));
                           ptx::ldmatrix4Transposed(r, base + L::offset(row + lane % 16, column + lane / 16));
                         }
                     }),
      "");
  EXPECT_EQ(test::conflicts, 0) << C::kKeyDim;
}

TEST(LayoutTest, TilesAreReadWithoutConflicts) {
  checkTile<Config<32, test::WideConfig>>();
  checkTile<Config<48, test::WideConfig>>();
  checkTile<Config<64, test::WideConfig>>();
  checkTile<Config<80, test::WideConfig>>();
  checkTile<Config<96, test::WideConfig>>();
  checkTile<Config<112, test::WideConfig>>();
  checkTile<Config<128, test::WideConfig>>();
  checkTile<Config<192, test::WideConfig, 2>>();
  checkTile<Config<256, test::WideConfig, 2>>();
}

/// What a tile of elements is known by.
float known(int token, int column) { return static_cast<float>((token * 31 + column * 7) % 257 - 128); }

/// Tiles as copies leave them are what wgmma reads by the descriptors that kernels make: K as columns of the
/// product, V as rows of it, 16 at a time.
template <class C> void checkDescriptors() {
  using L = Layout<C>;
  EXPECT_EQ(test::runBlock({.sharedBytes = L::kKeyTileBytes},
                           [&] {
                             char *shared = ptx::dynamicShared<1024>();
                             const unsigned base = ptx::sharedAddress(shared);
                             const int lane = static_cast<int>(threadIdx.x);
                             for (int token = lane; token < 64; token += 32)
                               for (int column = 0; column < C::kKeyDim; ++column)
                                 *reinterpret_cast<std::uint16_t *>(shared + L::offset(token, column / 8) +
                                                                    column % 8 * 2) =
                                     exec::f16FromFloat(known(token, column));
                             __syncwarp();
                             const unsigned long long keys = descriptor(base, 16);
                             for (int k = 0; k < C::kKeyDim / 16; ++k)
                               for (int token = lane; token < 64; token += 32)
                                 for (int depth = 0; depth < 16; ++depth)
                                   ASSERT_EQ(ptx::elementOf<f16>(keys + stepOf<C>(k), token, depth),
                                             known(token, k * 16 + depth))
                                       << C::kKeyDim << " " << k << " " << token << " " << depth;
                             const unsigned long long values = descriptor(base, L::kBlockBytes);
                             for (int g = 0; g < 4; ++g)
                               for (int depth = 0; depth < 16; ++depth)
                                 for (int column = lane; column < C::kKeyDim; column += 32)
                                   ASSERT_EQ(ptx::elementOf<f16>(values + g * 16 * 128 / 16, depth, column),
                                             known(g * 16 + depth, column))
                                       << C::kKeyDim << " " << g << " " << depth << " " << column;
                           }),
            "");
}

TEST(LayoutTest, DescriptorsNameWhatTheMatrixUnitsWant) {
  checkDescriptors<Config<32, test::WideConfig>>();
  checkDescriptors<Config<48, test::WideConfig>>();
  checkDescriptors<Config<64, test::WideConfig>>();
  checkDescriptors<Config<80, test::LightConfig>>();
  checkDescriptors<Config<128, test::WideConfig>>();
  checkDescriptors<Config<192, test::WideConfig, 2>>();
}

struct Section {
  unsigned begin, end;
};

/// All that the ring names lies in the block's memory, apart from each other, and tiles at multiples of the
/// swizzle. Buffers of results may lie where the one tile's values do; products of bytes have no other keys
/// than stages hold.
template <class C> void checkRing() {
  using L = Layout<C>;
  std::vector<char> memory(L::kBytes);
  const Ring<Factored<C>> ring{1024, memory.data()};
  const auto inMemory = [&](const void *at) {
    return 1024 + static_cast<unsigned>(static_cast<const char *>(at) - memory.data());
  };
  std::vector<Section> sections;
  const auto addTiles = [&](int stage) {
    const int keyBytes = kMultipliesBytes<C> ? 0 : L::kKeyTileBytes;
    for (const auto &[tile, bytes] :
         {std::pair(ring.keys(stage), keyBytes), std::pair(ring.values(stage), L::kValueTileBytes)}) {
      EXPECT_EQ(tile % L::kAlignment, 0u);
      if (bytes > 0)
        sections.push_back({tile, tile + bytes});
    }
  };
  for (int stage = 0; stage < C::kStages; ++stage) {
    if (stage < L::kTiles)
      addTiles(stage);
    if constexpr (L::kHoldsBytes)
      for (unsigned bytes : {ring.staged(stage), ring.staged(stage) + L::kStagedValueOffset}) {
        EXPECT_EQ(bytes % L::kAlignment, 0u);
        sections.push_back({bytes, bytes + L::kStagedKeyBytes});
      }
    else
      EXPECT_EQ(ring.staged(stage), ring.keys(stage));
    sections.push_back({inMemory(&ring.slot(stage)), inMemory(&ring.slot(stage) + 1)});
    EXPECT_EQ(inMemory(&ring.slot(stage)) % 16, 0u);
    for (unsigned barrier : {ring.full(stage), ring.empty(stage)})
      sections.push_back({barrier, barrier + 8});
    // A ring: after so many steps it is the same stage, in the other phase.
    EXPECT_EQ(ring.keys(stage + C::kStages), ring.keys(stage));
    EXPECT_NE(ring.fullParity(stage + C::kStages), ring.fullParity(stage));
    EXPECT_EQ(ring.fullParity(stage), 0u);
  }
  for (int piece = 0; piece < L::kQueryPieces; ++piece) {
    EXPECT_EQ(ring.queries(piece) % L::kAlignment, 0u);
    sections.push_back({ring.queries(piece), ring.queries(piece) + L::kKeyTileBytes});
    sections.push_back({inMemory(&ring.head(piece)), inMemory(&ring.head(piece) + 1)});
    for (unsigned barrier : {ring.pieceFull(piece), ring.pieceEmpty(piece)})
      sections.push_back({barrier, barrier + 8});
  }
  for (int warp = 0; warp < 4; ++warp) {
    const unsigned buffer = 1024 + L::kBufferOffset + warp * L::kBufferBytes;
    EXPECT_EQ(buffer % 16, 0u);
    const unsigned begin = L::kHoldsBytes ? std::max(buffer, ring.values(0) + L::kValueTileBytes) : buffer;
    if (begin < buffer + L::kBufferBytes)
      sections.push_back({begin, buffer + L::kBufferBytes});
  }
  std::sort(sections.begin(), sections.end(),
            [](const Section &a, const Section &b) { return a.begin < b.begin; });
  unsigned end = 1024;
  for (const Section &section : sections) {
    EXPECT_GE(section.begin, end) << C::kKeyDim;
    end = section.end;
  }
  // What is lost where memory does not begin at a multiple of the swizzle is in the sum.
  EXPECT_LE(end - 1024 + L::kAlignment, static_cast<unsigned>(L::kBytes)) << C::kKeyDim;
}

TEST(LayoutTest, SectionsLieApartAndInside) {
  checkRing<Config<32, test::LightConfig>>();
  checkRing<Config<48, test::WideConfig>>();
  checkRing<Config<64, test::LightConfig>>();
  checkRing<Config<64, test::WideConfig>>();
  checkRing<Config<80, test::LightConfig>>();
  checkRing<Config<112, test::WideConfig>>();
  checkRing<Config<128, test::LightConfig>>();
  checkRing<Config<128, test::WideConfig>>();
  checkRing<Config<192, test::WideConfig, 2>>();
  checkRing<Config<256, test::WideConfig, 2>>();
  checkRing<Unlike<192, 128, test::WideConfig, 4>>();
  checkRing<Unlike<192, 128, test::LightConfig, 2>>();
  checkRing<Unlike<256, 64, test::WideConfig, 2>>();
  checkRing<Unlike<96, 64, test::LightConfig, 3>>();
  checkRing<Unlike<64, 192, test::WideConfig, 2>>();
  checkRing<Bytes<Config<64, test::LightConfig>>>();
  checkRing<Bytes<Config<80, test::LightConfig>>>();
  checkRing<Bytes<Config<128, test::LightConfig>>>();
  checkRing<Bytes<Config<128, test::LightConfig, 3>>>();
  checkRing<Bytes<Config<128, test::WideConfig, 2>>>();
  checkRing<Multiplied<Config<96, test::LightConfig, 4>>>();
  checkRing<Multiplied<Config<128, test::LightConfig, 4>>>();
  EXPECT_LE((smemBytes<Multiplied<Config<128, test::LightConfig, 4>>>()), 115712); // half of an H100's
}

/// Eight lanes read 16 bytes each at once, and write as many; what else a lane has lies a whole number of
/// banks' rows behind, or apart by the same bits as everybody's.
template <class C, bool kInRows> void checkConversion() {
  using Conversion = ByteConversion<Factored<C>, kInRows>;
  std::set<int> pieces;
  for (int lane = 0; lane < 32; lane += 8) {
    std::set<unsigned> read, written; // banks of 16 bytes
    for (int i = lane; i < lane + 8; ++i) {
      pieces.insert(Conversion::firstByte(i));
      read.insert(static_cast<unsigned>(Conversion::firstByte(i)) / 16 % 8);
      written.insert(Conversion::firstElement(i) / 16 % 8);
    }
    EXPECT_EQ(read.size(), 8u) << C::kKeyDim << " " << kInRows << " " << lane;
    EXPECT_EQ(written.size(), 8u) << C::kKeyDim << " " << kInRows << " " << lane;
  }
  EXPECT_EQ(pieces.size(), 32u) << C::kKeyDim << " " << kInRows;
}

TEST(LayoutTest, BytesAreConvertedWithoutConflicts) {
  checkConversion<Bytes<Config<128, test::LightConfig>>, true>();
  checkConversion<Bytes<Config<80, test::LightConfig>>, true>();
  checkConversion<Bytes<Config<64, test::LightConfig>>, false>();
  checkConversion<Bytes<Config<128, test::WideConfig, 2>>, false>();
}

/// Buffers of results: eight lanes write 4 bytes of each of eight rows at once.
template <class C> void checkBuffers() {
  std::set<int> banks;
  for (int lane = 0; lane < 32; ++lane)
    banks.insert((fragmentRow(lane, 0) * Layout<C>::kRowBytes + fragmentColumn(lane) * 2) / 4 % 32);
  EXPECT_EQ(banks.size(), 32u) << C::kKeyDim;
}

TEST(LayoutTest, ResultsAreWrittenWithoutConflicts) {
  checkBuffers<Config<32, test::WideConfig>>();
  checkBuffers<Config<48, test::WideConfig>>();
  checkBuffers<Config<64, test::WideConfig>>();
  checkBuffers<Config<80, test::WideConfig>>();
  checkBuffers<Config<128, test::WideConfig>>();
  checkBuffers<Config<256, test::WideConfig, 2>>();
  checkBuffers<Unlike<192, 128, test::WideConfig, 4>>();
}

/// A block's memory, with queries of more than 128 columns in registers, and two blocks' of light ones.
TEST(LayoutTest, KeysOf192ColumnsOverValuesOf128FitInFourStages) {
  using WideOne = Unlike<192, 128, test::WideConfig, 4>;
  using LightOne = Unlike<192, 128, test::LightConfig, 2>;
  EXPECT_LE(smemBytes<WideOne>(), 232448);
  EXPECT_FALSE(Layout<WideOne>::kQueriesStay);
  EXPECT_LE(smemBytes<LightOne>(), 115712);
  EXPECT_TRUE(Layout<LightOne>::kQueriesStay);
}

} // namespace
} // namespace deft::sm90
