#include "tests/device/AttendCase.h"

#include "deft/attend_sm90.cuh"
#include "deft/sm90/united_lists.cuh"
#include "tests/device/DeviceConfig.h"
#include "tests/device/TokenValues.h"

#include <gtest/gtest.h>

namespace deft::sm90 {
namespace {

using test::draw;

template <class E, int kDim, int kOfQuery, int kPage = 16> struct United : test::WideConfig {
  using Query = E;
  using Key = E;
  using Value = E;
  using Output = E;
  static constexpr int kKeyDim = kDim, kValueDim = kDim, kPageSize = kPage, kLists = kOfQuery;
  static constexpr bool kIsDealt = true, kReadsUnions = true;
};
template <class Base, int kOfKeys> struct Unlike : Base {
  static constexpr int kKeyDim = kOfKeys;
};
template <class Base> struct OfOneHead : Base {
  static constexpr int kQueryHeads = 2, kKvHeads = 2, kRatio = 1;
};

template <class Config, class Variant = test::PlainVariant>
void attendUnions(unsigned seed, const typename Variant::Params &params = {}) {
  test::AttendCase<Config, Variant> launch(seed, params);
  std::mt19937 &random = launch.random();
  constexpr int kMostBits = abi::kMostUnited - (Variant::kHasMask ? 1 : 0); // beside kRead
  constexpr int kMost = std::min(Config::kTileQ / Config::kRatio, kMostBits);
  for (int items = draw(random, 1, 3); items > 0; --items)
    launch.add(test::randomItem(random, {.queries = std::array{draw(random, 1, 4), draw(random, 5, 16),
                                                               draw(random, 1, kMost)}[random() % 3],
                                         .runs = draw(random, 1, 8),
                                         .mostTokens = draw(random, 1, 160),
                                         .places = launch.places()}));
  if (draw(random, 0, 2) == 0)
    launch.addEnd();
  launch.check(3, smemBytes<Config>(), [](const abi::AttendArgs &args, const auto &given) {
    sm90::attend<Config, Variant>(args, given);
  });
}

TEST(Sm90UnitedListsTest, UnionsAreAttended) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    attendUnions<United<bf16, 128, 2>>(seed);
    attendUnions<OfOneHead<United<f16, 64, 2, 1>>>(seed); // 32 queries
    attendUnions<United<f16, 64, 1>, test::WindowVariant>(seed, {300});
    attendUnions<United<f16, 64, 2, 0>, test::HookVariant>(seed);
    attendUnions<Unlike<United<bf16, 64, 2>, 96>>(seed);
  }
}

/// What arrays have of a token lies by its slot, wherever the cache has the token's rows.
TEST(Sm90UnitedListsTest, ArraysOverTokensAreReadBySlots) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    const test::Documents arrays(seed);
    const test::RowScales scales(seed);
    attendUnions<test::OfTokens<United<bf16, 64, 2, 2>>, test::TokensVariant>(seed, arrays.params());
    attendUnions<test::OfTokens<United<f16, 128, 1, 16>>, test::TokensVariant>(seed, arrays.params());
    attendUnions<test::OfTokens<United<f16, 64, 2, 0>>, test::TokensVariant>(seed, arrays.params());
    attendUnions<test::OfTokens<United<f16, 64, 2, 1>>, test::ScaledRowsVariant>(seed, scales.params());
    attendUnions<test::OfTokens<United<bf16, 64, 2, 32>>, test::ScaledRowsVariant>(seed, scales.params());
  }
}

/// The producer marks such a tile as it does for runs, where that mark is no query's interval.
TEST(Sm90UnitedListsTest, ATileThatAMaskHidesHasNoReaders) {
  const auto tokenOf = [](unsigned visible) { return Token{0, 0, 0, visible}; };
  EXPECT_EQ(readersOf<test::WindowVariant>(tokenOf(kNobody)), 0u);
  EXPECT_EQ(readersOf<test::WindowVariant>(tokenOf(kRead | 0xffffu)), 0xffffu);
  EXPECT_EQ(readersOf<test::PlainVariant>(tokenOf(0xffffu)), 0xffffu); // without masks a bit like others
  EXPECT_EQ(readersOf<test::PlainVariant>(tokenOf(kRead)), kRead);
}

TEST(Sm90UnitedListsTest, AnIntervalHoldsItsBits) {
  EXPECT_EQ(intervalOf(0u, 5), kNobody);
  EXPECT_EQ(intervalOf(0b10100u, 5), 2u | 5u << 16);
  EXPECT_EQ(intervalOf(~0u, 32), 0u | 32u << 16);
}

} // namespace
} // namespace deft::sm90
