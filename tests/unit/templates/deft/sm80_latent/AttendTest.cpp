#include "tests/device/AttendCase.h"
#include "tests/device/GivenLists.h"

#include "deft/attend_sm80_latent.cuh"
#include "tests/device/DeviceConfig.h"
#include "tests/device/TokenValues.h"

#include <gtest/gtest.h>

namespace deft::sm80_latent {
namespace {

using test::draw;

/// One group of four heads, whose 16 rows two warps share.
template <class E, int kLatent, int kRope, int kPage> struct Narrow : test::DeviceConfig {
  using Query = E;
  using Key = E;
  using Value = E;
  using Output = E;
  static constexpr bool kIsLatent = true;
  static constexpr int kQueryHeads = 4, kKvHeads = 1, kRatio = 4;
  static constexpr int kKeyDim = kLatent + kRope, kValueDim = kLatent, kPageSize = kPage;
  static constexpr int kTileQ = 16, kTileKv = 16, kStages = 2, kWarps = 2;
};
/// Three groups of five heads; 32 rows, each 16 of which have two warps.
template <class E, int kLatent, int kRope, int kPage> struct Wide : Narrow<E, kLatent, kRope, kPage> {
  static constexpr int kQueryHeads = 15, kKvHeads = 3, kRatio = 5;
  static constexpr int kTileQ = 32, kTileKv = 32, kStages = 3, kWarps = 4;
};
/// As shipped: two groups of heads, of 512 + 64 columns.
template <int kRows, int kTokens, int kSharers> struct Large : Narrow<bf16, 512, 64, 64> {
  static constexpr int kQueryHeads = 32, kKvHeads = 2, kRatio = 16;
  static constexpr int kTileQ = kRows, kTileKv = kTokens, kWarps = kRows / 16 * kSharers;
};

/// Of bytes.
template <class Config, class Stored> struct OfBytes : Config {
  using Key = Stored;
  using Value = Stored;
};
/// And of bytes with a scale for so many columns in each row.
template <class Config, int kEach> struct Scaled : OfBytes<Config, e4m3> {
  static constexpr int kScaleColumns = kEach;
};

/// Some items of as many queries as a block takes, by fewer blocks than there are units.
template <class Config, class Variant = test::PlainVariant>
void attendAll(unsigned seed, const typename Variant::Params &params = {}) {
  test::AttendCase<Config, Variant> launch(seed, params);
  std::mt19937 &random = launch.random();
  for (int items = draw(random, 1, 3); items > 0; --items)
    launch.add(test::randomItem(random, {.queries = draw(random, 1, Config::kTileQ / Config::kRatio),
                                         .runs = draw(random, 1, 12),
                                         .mostTokens = draw(random, 1, 80),
                                         .places = launch.places()}));
  if (draw(random, 0, 2) == 0)
    launch.addEnd();
  launch.check(3, smemBytes<Config>(), [](const abi::AttendArgs &args, const auto &given) {
    sm80_latent::attend<Config, Variant>(args, given);
  });
}

TEST(Sm80LatentAttendTest, ItemsAreAttended) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    attendAll<Narrow<f16, 64, 16, 0>>(seed);
    attendAll<Narrow<bf16, 64, 16, 16>>(seed);
    attendAll<Wide<f16, 64, 16, 1>>(seed);
    attendAll<Wide<bf16, 128, 64, 64>>(seed);
  }
}

TEST(Sm80LatentAttendTest, ManyColumnsAreAttended) {
  for (unsigned seed = 0; seed < 2; ++seed) {
    attendAll<Large<16, 16, 4>>(seed);
    attendAll<Large<16, 16, 8>>(seed); // steps that the warps do not share evenly
    attendAll<Large<32, 32, 4>>(seed);
    attendAll<Large<64, 16, 2>>(seed); // queries in registers and in shared memory
  }
}

/// Dims of which warps have different numbers, and none; one warp for all.
template <class Base, int kSharers> struct SharedBy : Base {
  static constexpr int kWarps = Base::kTileQ / 16 * kSharers;
};
TEST(Sm80LatentAttendTest, WarpsNeedNotShareEvenly) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendAll<SharedBy<Narrow<f16, 48, 16, 0>, 1>>(seed);
    attendAll<SharedBy<Narrow<f16, 16, 16, 16>, 4>>(seed);
    attendAll<SharedBy<Narrow<bf16, 80, 32, 0>, 3>>(seed);
    attendAll<SharedBy<Wide<bf16, 112, 128, 1>, 4>>(seed);
    attendAll<SharedBy<Wide<f16, 320, 112, 16>, 3>>(seed);
  }
}

/// Where queries do not have room in registers beside the sums: some of their steps, and all.
TEST(Sm80LatentAttendTest, QueriesWaitInSharedMemory) {
  using Some = SharedBy<Wide<f16, 256, 80, 16>, 1>;
  using All = SharedBy<Wide<bf16, 304, 16, 16>, 1>;
  static_assert(Shares<Some>::kStepsHeld > 0 && SharedLayout<Some>::kHasQueries);
  static_assert(Shares<All>::kStepsHeld == 0);
  for (unsigned seed = 0; seed < 3; ++seed) {
    attendAll<Some>(seed);
    attendAll<All, test::WindowVariant>(seed, {300});
  }
}

TEST(Sm80LatentAttendTest, BytesAreConverted) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendAll<OfBytes<Narrow<f16, 64, 16, 0>, e4m3>>(seed);
    attendAll<OfBytes<Narrow<bf16, 80, 32, 16>, e5m2>>(seed);
    attendAll<OfBytes<Wide<f16, 64, 16, 1>, e5m2>>(seed);
    attendAll<OfBytes<Wide<bf16, 128, 64, 64>, e4m3>>(seed);
  }
  attendAll<OfBytes<Large<64, 16, 2>, e4m3>>(0);
}

TEST(Sm80LatentAttendTest, RowsHaveScales) {
  for (unsigned seed = 0; seed < 3; ++seed) {
    attendAll<Scaled<Narrow<f16, 64, 16, 0>, 16>>(seed);
    attendAll<Scaled<Narrow<bf16, 128, 32, 7>, 32>>(seed);
    attendAll<Scaled<Wide<bf16, 256, 64, 64>, 64>>(seed);
    attendAll<Scaled<Wide<f16, 192, 16, 1>, 48>, test::WindowVariant>(seed, {300});
    attendAll<Scaled<Wide<bf16, 64, 128, 16>, 16>, test::WeighedValuesVariant>(seed);
  }
  attendAll<Scaled<Large<16, 16, 4>, 128>>(0);
  attendAll<Scaled<Large<32, 32, 4>, 128>>(1);
}

template <class Base, int kTokens, int kDepth> struct TilesOf : Base {
  static constexpr int kTileKv = kTokens, kStages = kDepth;
};
TEST(Sm80LatentAttendTest, TilesMayBeLargeAndRingsDeep) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendAll<TilesOf<Narrow<f16, 64, 16, 16>, 64, 2>>(seed);
    attendAll<TilesOf<Wide<f16, 64, 16, 16>, 48, 4>>(seed);
    attendAll<TilesOf<Narrow<f16, 64, 16, 0>, 16, 5>>(seed);
  }
}

TEST(Sm80LatentAttendTest, MasksAndScoresAreHeard) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendAll<Wide<f16, 64, 16, 1>, test::WindowVariant>(seed, {300});
    attendAll<Narrow<f16, 64, 16, 1>, test::WindowVariant>(seed, {20});
    attendAll<Wide<f16, 64, 16, 0>, test::CappedVariant>(seed);
    attendAll<Wide<bf16, 160, 16, 0>, test::CappedVariant>(seed);
    attendAll<Narrow<f16, 64, 16, 0>, test::SlopedVariant>(seed);
    attendAll<Wide<f16, 64, 16, 16>, test::HookVariant>(seed);
    attendAll<Wide<f16, 64, 16, 0>, test::SigmoidVariant>(seed);
  }
}

TEST(Sm80LatentAttendTest, ElementsOfTokensComeWithThem) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    const test::Documents arrays(seed);
    attendAll<test::OfTokens<Narrow<f16, 64, 16, 0>>, test::TokensVariant>(seed, arrays.params());
    attendAll<test::OfTokens<Wide<bf16, 64, 16, 16>>, test::TokensVariant>(seed, arrays.params());
    const test::RowScales scales(seed); // of which the only KV head's are read
    attendAll<test::OfTokens<Wide<f16, 64, 16, 1>>, test::ScaledRowsVariant>(seed, scales.params());
    attendAll<Wide<f16, 64, 16, 16>, test::WeighedValuesVariant>(seed);
  }
}

/// Of rows that are finished, and not of those that go to a partial.
TEST(Sm80LatentAttendTest, SinksJoinFinishedRows) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendAll<Wide<f16, 64, 16, 1>, test::SunkVariant>(seed);
    attendAll<Narrow<bf16, 64, 16, 16>, test::SunkVariant>(seed);
  }
}
TEST(Sm80LatentAttendTest, OutputsAreWrittenAsTheirHookSays) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendAll<Wide<f16, 64, 16, 1>, test::GatedVariant>(seed);
    attendAll<Narrow<bf16, 64, 16, 16>, test::GatedVariant>(seed);
  }
}

/// Where one group has all heads.
template <class Base> struct GivingWorth : Base {
  static constexpr int kWorthGroups = 1;
};
TEST(Sm80LatentAttendTest, TokensAreGivenTheirWorth) {
  for (unsigned seed = 0; seed < 3; ++seed) {
    attendAll<GivingWorth<Narrow<f16, 64, 16, 0>>>(seed);
    attendAll<GivingWorth<SharedBy<Narrow<bf16, 64, 16, 16>, 4>>, test::WindowVariant>(seed, {300});
  }
}

template <class Base, class Variant = test::PlainVariant>
void attendLists(unsigned seed, const typename Variant::Params &params = {}) {
  using Config = test::Given<Base>;
  test::AttendCase<Config, Variant> launch(seed, params);
  test::addItemsOfLists(launch, 60);
  launch.check(3, smemBytes<Config>(), [](const abi::AttendArgs &args, const auto &given) {
    sm80_latent::attend<Config, Variant>(args, given);
  });
}
TEST(Sm80LatentAttendTest, GivenListsAreAttended) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    attendLists<Narrow<f16, 64, 16, 0>>(seed);
    attendLists<Narrow<bf16, 64, 16, 16>>(seed);
    attendLists<Wide<f16, 64, 16, 1>>(seed);
    attendLists<Wide<bf16, 128, 64, 64>>(seed);
    attendLists<TilesOf<Narrow<f16, 64, 16, 16>, 64, 2>>(seed);
  }
  for (unsigned seed = 0; seed < 3; ++seed) {
    attendLists<OfBytes<Narrow<bf16, 64, 16, 16>, e4m3>>(seed);
    attendLists<Scaled<Wide<bf16, 256, 64, 64>, 64>>(seed);
  }
  attendLists<Large<16, 16, 4>>(1);
  attendLists<Large<64, 16, 2>>(2);
}
/// Which asks nothing of where a token stands.
struct ScaledSlotsVariant : test::ScaledRowsVariant {
  static float valueFactor(const Params &, int, int, int, const Token &token) { return token.valueScale; }
};
TEST(Sm80LatentAttendTest, GivenListsGoWithHooks) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendLists<Wide<f16, 64, 16, 1>, test::SunkVariant>(seed);
    attendLists<Narrow<bf16, 64, 16, 16>, test::GatedVariant>(seed);
    attendLists<Narrow<f16, 64, 16, 0>, test::CappedVariant>(seed);
    attendLists<Wide<f16, 64, 16, 0>, test::SigmoidVariant>(seed);
    const test::RowScales scales(seed);
    attendLists<test::OfTokens<Wide<f16, 64, 16, 1>>, ScaledSlotsVariant>(seed, scales.params());
  }
}

} // namespace
} // namespace deft::sm80_latent
