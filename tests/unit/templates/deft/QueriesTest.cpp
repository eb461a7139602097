#include "tests/device/Words.h"

#include "deft/abi.h"
#include "deft/queries.cuh"
#include "tests/device/DeviceConfig.h"
#include "tests/device/RandomItem.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace deft {
namespace {

using test::draw;

template <class E, int kDim, int kHeads> struct Config : test::DeviceConfig {
  using Query = E;
  static constexpr int kKeyDim = kDim, kQueryHeads = kHeads, kRatio = 3;
};

/// Of all that the hook may read. Never asked for a place that a row does not have: arrays by head or dim end
/// there.
template <class C> struct Variant : test::PlainVariant {
  static float query(const Params &, float x, float half, float pair, float rms, int dim, int qPos, int head,
                     int kvHead, int query) {
    EXPECT_TRUE(head >= 0 && head < C::kQueryHeads && dim >= 0 && dim < C::kKeyDim)
        << "head " << head << " dim " << dim;
    return x - 2.f * half + 0.5f * pair + rms +
           static_cast<float>(dim % 7 + qPos % 5 + head + 2 * kvHead - query);
  }
};

template <class C> struct VariantThatTells : Variant<C> {
  static constexpr bool kQueryReadsRms = true;
};

/// Rows in any order, with room between them, by as many blocks; of a plan that has fewer than the launch is
/// for.
template <class E, int kDim, int kHeads = 6, template <class> class V = VariantThatTells>
void makeAll(unsigned seed) {
  using C = Config<E, kDim, kHeads>;
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 2);
  const int queries = draw(random, 1, 5), stride = kHeads * kDim + draw(random, 0, 2) * 16;
  std::vector<int> caller(static_cast<std::size_t>(queries)), queryPos;
  std::iota(caller.begin(), caller.end(), 0);
  std::shuffle(caller.begin(), caller.end(), random);
  for (int i = 0; i < queries; ++i)
    queryPos.push_back(draw(random, 0, 900));
  caller.insert(caller.end(), {-1, -1}); // where a graph was captured for more
  queryPos.insert(queryPos.end(), {1 << 29, 1 << 29});
  std::vector<unsigned> q(static_cast<std::size_t>(queries * stride / 2)),
      made(static_cast<std::size_t>(queries * kHeads * kDim / 2), 0x7fff7fffu);
  for (unsigned &pair : q)
    pair = ptx::pack2<E>(normal(random), normal(random));
  const abi::QueryArgs args{q.data(), made.data(), caller.data(), queryPos.data(), queries + 2, stride};
  const unsigned blocks = static_cast<unsigned>(draw(random, 1, 4));
  for (unsigned block = 0; block < blocks; ++block)
    ASSERT_EQ(test::runBlock({.threads = 32 * kQueryWarps, .block = block, .blocks = blocks, .seed = seed},
                             [&] { makeQueries<C, V<C>>(args, {}); }),
              "");
  const auto *from = reinterpret_cast<const std::uint16_t *>(q.data());
  const auto *got = reinterpret_cast<const std::uint16_t *>(made.data());
  for (int i = 0; i < queries; ++i)
    for (int head = 0; head < kHeads; ++head) {
      const int query = caller[static_cast<std::size_t>(i)];
      const auto at = [&](int d) { return ptx::toFloat<E>(from[query * stride + head * kDim + d]); };
      double squares = 0;
      for (int d = 0; d < kDim; ++d)
        squares += static_cast<double>(at(d)) * at(d);
      for (int d = 0; d < kDim; ++d) {
        const float want = V<C>::query({}, at(d), at((d + kDim / 2) % kDim), at(d ^ 1),
                                       static_cast<float>(std::sqrt(squares / kDim)), d,
                                       queryPos[static_cast<std::size_t>(i)], head, head / C::kRatio, query);
        EXPECT_NEAR(ptx::toFloat<E>(got[(query * kHeads + head) * kDim + d]), want,
                    std::abs(want) * (std::is_same_v<E, bf16> ? 0x1p-8 : 0x1p-11) + 1e-6)
            << "seed " << seed << " query " << query << " head " << head << " dim " << d;
      }
    }
}

TEST(QueriesTest, EachElementIsMadeOfItselfItsPartnersAndItsPlace) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    makeAll<f16, 8>(seed);
    makeAll<f16, 32>(seed);
    makeAll<bf16, 48>(seed);
    makeAll<bf16, 48, 6, Variant>(seed); // as in packages from before hooks told whether they read the norm
    makeAll<bf16, 72, 45>(seed);
    makeAll<bf16, 128>(seed);
    makeAll<f16, 128, 21>(seed);
    makeAll<f16, 208>(seed);
    makeAll<bf16, 256, 3>(seed);
  }
}

} // namespace
} // namespace deft
