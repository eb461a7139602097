#include "tests/device/AttendCase.h"

#include "deft/attend_sm90.cuh"
#include "deft/sm90/eight_bit_products.cuh"
#include "tests/device/DeviceConfig.h"
#include "tests/device/TokenValues.h"

#include <gtest/gtest.h>

namespace deft::sm90 {
namespace {

using test::draw;

template <class E, int kDim, int kPage, int kStagesOf = test::LightConfig::kStages>
struct Light : test::LightConfig {
  using Query = E;
  using Key = E;
  using Value = E;
  using Output = E;
  static constexpr int kKeyDim = kDim, kValueDim = kDim, kPageSize = kPage, kStages = kStagesOf;
};
template <class E, int kDim, int kPage, int kStagesOf = 4> struct Wide : test::WideConfig {
  using Query = E;
  using Key = E;
  using Value = E;
  using Output = E;
  static constexpr int kKeyDim = kDim, kValueDim = kDim, kPageSize = kPage, kStages = kStagesOf;
};
/// A config with a cache of 8-bit floats.
template <class Base, class E> struct Bytes : Base {
  using Key = E;
  using Value = E;
};
/// And products of them.
template <class Base> struct Multiplied : Bytes<Base, e4m3> {
  static constexpr bool kByteProducts = true;
};
struct ZeroQueries : test::PlainVariant {
  static constexpr float kQueryUnit = 0;
};
template <class Base, int kOfKeys, int kOfValues> struct Unlike : Base {
  static constexpr int kKeyDim = kOfKeys, kValueDim = kOfValues;
};
template <class Base> struct Dealt : Base {
  static constexpr bool kIsDealt = true;
};

/// Items of few rows, of a warpgroup's and of a block's, by fewer blocks than there are units: the ring goes
/// round, and units follow each other in all modes.
template <class Config, class Variant = test::PlainVariant>
void attendAll(unsigned seed, const typename Variant::Params &params = {}) {
  test::AttendCase<Config, Variant> launch(seed, params);
  std::mt19937 &random = launch.random();
  constexpr int kMost = Config::kTileQ / Config::kRatio;
  for (int i = 0, items = draw(random, 1, 3); i < items; ++i) {
    if (kReadsDealt<Config> && draw(random, 0, 2) > 0) {
      launch.add(test::randomDealtItem(random, launch.places(), 4));
      continue;
    }
    const int queries =
        std::array{draw(random, 1, 4), draw(random, 5, 16), draw(random, 1, kMost)}[random() % 3];
    launch.add(test::randomItem(random, {.queries = std::min(queries, kMost),
                                         .runs = draw(random, 1, 12),
                                         .mostTokens = draw(random, 1, 160),
                                         .places = launch.places()}));
  }
  if (draw(random, 0, 2) == 0)
    launch.addEnd();
  if (draw(random, 0, 2) > 0)
    launch.giveMaps();
  launch.check(3, smemBytes<Config>(), [](const abi::AttendArgs &args, const auto &given) {
    sm90::attend<Config, Variant>(args, given);
  });
}

TEST(Sm90AttendTest, LightBlocksAttend) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    attendAll<Light<f16, 64, 0>>(seed);
    attendAll<Light<f16, 128, 16>>(seed);
    attendAll<Light<bf16, 128, 1>>(seed);
    attendAll<Light<f16, 80, 64>>(seed);
    attendAll<Light<bf16, 32, 64>>(seed);
    attendAll<Light<f16, 48, 16>>(seed);
  }
}

/// Bytes become tiles of 16 bits, by copying warps; three stages are no team's alone.
TEST(Sm90AttendTest, BytesAreConverted) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendAll<Bytes<Wide<bf16, 128, 16, 2>, e4m3>>(seed);
    attendAll<Bytes<Wide<f16, 64, 1>, e5m2>>(seed);
    attendAll<Bytes<Wide<f16, 80, 0, 2>, e4m3>>(seed); // columns that four lanes do not share out evenly
    attendAll<Bytes<Wide<f16, 32, 64, 2>, e4m3>>(seed);
    attendAll<Bytes<Light<f16, 64, 16>, e4m3>>(seed);
    attendAll<Bytes<Dealt<Light<bf16, 64, 0>>, e5m2>>(seed);
    attendAll<Bytes<Wide<bf16, 64, 1>, e4m3>, test::WindowVariant>(seed, {300});
  }
  attendAll<Bytes<Wide<bf16, 192, 16, 2>, e4m3>>(0); // queries stay in shared memory, as they are
}

/// In light blocks of many columns computing warps convert them, each those of its own tokens.
TEST(Sm90AttendTest, BytesThatStagesHoldAreConvertedByWhoComputes) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    attendAll<Bytes<Light<bf16, 128, 1>, e4m3>>(seed);
    attendAll<Bytes<Light<f16, 128, 64, 3>, e4m3>>(seed);
    attendAll<Bytes<Dealt<Light<bf16, 128, 1, 3>>, e5m2>>(seed);
    attendAll<Bytes<Light<f16, 80, 0>, e5m2>>(seed);
    attendAll<Bytes<Light<f16, 112, 64>, e4m3>>(seed);
    attendAll<Bytes<Dealt<Light<f16, 128, 16>>, e4m3>>(seed);
    attendAll<Bytes<Dealt<Light<bf16, 96, 0>>, e5m2>>(seed);
    attendAll<Bytes<Light<bf16, 128, 16>, e4m3>, test::WindowVariant>(seed, {40});
    attendAll<Bytes<Dealt<Light<f16, 128, 1>>, e4m3>, test::CappedVariant>(seed);
  }
}

/// Rule A12. Where queries are 0, all weights are 1, and a value in a wrong place shows.
TEST(Sm90AttendTest, BytesAreMultiplied) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    attendAll<Multiplied<Light<bf16, 128, 1>>>(seed);
    attendAll<Multiplied<Light<f16, 128, 64, 3>>>(seed);
    attendAll<Multiplied<Light<f16, 96, 0, 4>>>(seed);
    attendAll<Multiplied<Light<bf16, 96, 16>>, test::WindowVariant>(seed, {40});
    attendAll<Multiplied<Light<f16, 128, 16>>, test::CappedVariant>(seed);
    attendAll<Multiplied<Light<bf16, 128, 16>>, test::LargeQueriesVariant>(seed);
    attendAll<Multiplied<Light<bf16, 128, 0>>, test::SmallQueriesVariant>(seed);
    attendAll<Multiplied<Light<f16, 128, 1>>, ZeroQueries>(seed);
    attendAll<Multiplied<Light<bf16, 96, 64, 3>>, ZeroQueries>(seed);
    attendAll<Multiplied<Dealt<Light<bf16, 128, 16>>>>(seed);
    attendAll<Multiplied<Light<f16, 128, 16, 4>>, test::SlopedVariant>(seed);
    attendAll<Multiplied<Light<bf16, 96, 1, 3>>, test::HookVariant>(seed);
  }
}

/// Queries that f16 would not hold are fitted to it, and their products are those of the queries as they
/// came.
TEST(Sm90AttendTest, QueriesOverBytesAreFitted) {
  for (unsigned seed = 0; seed < 3; ++seed) {
    attendAll<Bytes<Light<bf16, 128, 16>, e4m3>, test::LargeQueriesVariant>(seed);
    attendAll<Bytes<Dealt<Light<bf16, 96, 0>>, e4m3>, test::SmallQueriesVariant>(seed);
    attendAll<Bytes<Wide<bf16, 128, 1, 2>, e5m2>, test::LargeQueriesVariant>(seed);
    attendAll<Bytes<Wide<bf16, 80, 16, 2>, e4m3>, test::SmallQueriesVariant>(seed);
    attendAll<Bytes<Wide<bf16, 64, 16>, e4m3>, test::LargeQueriesVariant>(seed); // bytes become bf16
  }
}

TEST(Sm90AttendTest, WideBlocksAttend) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendAll<Wide<f16, 64, 64>>(seed);
    attendAll<Wide<bf16, 128, 0>>(seed);
    attendAll<Wide<f16, 128, 1>>(seed);
    attendAll<Wide<f16, 112, 32>>(seed);
    attendAll<Wide<f16, 32, 1>>(seed);
    attendAll<Wide<bf16, 48, 0>>(seed);
  }
}

TEST(Sm90AttendTest, ManyColumnsAreAttended) {
  for (unsigned seed = 0; seed < 2; ++seed) {
    attendAll<Wide<f16, 192, 16, 2>>(seed);
    attendAll<Wide<bf16, 256, 64, 2>>(seed);
  }
}

/// More columns of K than of V, and fewer; tiles whole, in boxes, and token by token; queries of more than
/// 128 columns in registers of wide blocks, and where they lie in light ones and where there are more.
TEST(Sm90AttendTest, KeysAndValuesHaveDimsOfTheirOwn) {
  for (unsigned seed = 0; seed < 3; ++seed) {
    attendAll<Unlike<Wide<bf16, 0, 64, 4>, 192, 128>>(seed);
    attendAll<Unlike<Wide<f16, 0, 1, 2>, 192, 128>>(seed);
    attendAll<Unlike<Light<bf16, 0, 16>, 192, 128>>(seed);
    attendAll<Unlike<Light<f16, 0, 0, 3>, 96, 64>>(seed);
    attendAll<Unlike<Dealt<Light<bf16, 0, 64>>, 64, 128>>(seed);
    attendAll<Unlike<Dealt<Wide<bf16, 0, 64>>, 192, 128>>(seed);
    attendAll<Unlike<Wide<f16, 0, 32, 2>, 128, 192>>(seed);
    attendAll<Unlike<Wide<bf16, 0, 16, 2>, 256, 48>>(seed);
    attendAll<Unlike<Light<f16, 0, 1>, 32, 80>>(seed);
  }
}

TEST(Sm90AttendTest, DimsOfTheirOwnGoWithWhatSpecsSay) {
  using WideOne = Unlike<Wide<bf16, 0, 16, 4>, 192, 128>;
  using LightOne = Unlike<Light<bf16, 0, 64>, 192, 128>;
  for (unsigned seed = 0; seed < 2; ++seed) {
    attendAll<WideOne, test::WindowVariant>(seed, {300});
    attendAll<LightOne, test::CappedVariant>(seed);
    attendAll<WideOne, test::CappedVariant>(seed);
    attendAll<WideOne, test::SlopedVariant>(seed);
    attendAll<WideOne, test::SunkVariant>(seed);
    attendAll<LightOne, test::GatedVariant>(seed);
    attendAll<LightOne, test::TurnedVariant<192>>(seed);
    attendAll<Unlike<Light<f16, 0, 16>, 64, 96>, test::KeyedVariant>(seed);
    const test::RowScales scales(seed);
    attendAll<test::OfTokens<WideOne>, test::ScaledRowsVariant>(seed, scales.params());
    const test::Documents arrays(seed);
    attendAll<test::OfTokens<WideOne>, test::TokensVariant>(seed, arrays.params());
  }
}

TEST(Sm90AttendTest, DealtTokensAreAttended) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    attendAll<Dealt<Light<f16, 128, 16>>>(seed);
    attendAll<Dealt<Wide<f16, 128, 1>>>(seed);
    attendAll<Dealt<Light<f16, 64, 0>>>(seed);
    attendAll<Dealt<Light<bf16, 32, 16>>>(seed);
  }
}

TEST(Sm90AttendTest, MasksAndScoresAreHeard) {
  for (unsigned seed = 0; seed < 3; ++seed) {
    attendAll<Wide<f16, 128, 1>, test::WindowVariant>(seed, {300});
    attendAll<Light<f16, 64, 16>, test::WindowVariant>(seed, {20});
    attendAll<Dealt<Light<f16, 128, 16>>, test::WindowVariant>(seed, {300});
    attendAll<Light<f16, 64, 0>, test::CappedVariant>(seed);
    attendAll<Wide<f16, 128, 0>, test::CappedVariant>(seed);
    attendAll<Dealt<Wide<f16, 128, 0>>, test::CappedVariant>(seed);
    attendAll<Wide<f16, 64, 0>, test::SlopedVariant>(seed);
    attendAll<Light<f16, 64, 0>, test::HookVariant>(seed);
    attendAll<Wide<f16, 64, 0>, test::SigmoidVariant>(seed);
  }
}

TEST(Sm90AttendTest, ElementsOfTokensComeWithThem) {
  for (unsigned seed = 0; seed < 3; ++seed) {
    const test::Documents arrays(seed);
    attendAll<test::OfTokens<Light<f16, 64, 0>>, test::TokensVariant>(seed, arrays.params());
    attendAll<test::OfTokens<Wide<bf16, 128, 16>>, test::TokensVariant>(seed, arrays.params());
    attendAll<test::OfTokens<Dealt<Light<f16, 128, 1>>>, test::TokensVariant>(seed, arrays.params());
    attendAll<test::OfTokens<Bytes<Light<bf16, 128, 16>, e4m3>>, test::TokensVariant>(seed, arrays.params());
    attendAll<test::OfTokens<Bytes<Wide<f16, 64, 1>, e4m3>>, test::TokensVariant>(seed, arrays.params());
  }
}

TEST(Sm90AttendTest, RowsOfTokensHaveScales) {
  using Scaled = test::ScaledRowsVariant;
  for (unsigned seed = 0; seed < 3; ++seed) {
    const test::RowScales scales(seed);
    attendAll<test::OfTokens<Light<f16, 64, 16>>, Scaled>(seed, scales.params());
    attendAll<test::OfTokens<Wide<bf16, 128, 0>>, Scaled>(seed, scales.params());
    attendAll<test::OfTokens<Dealt<Wide<f16, 128, 1>>>, Scaled>(seed, scales.params());
    attendAll<test::OfTokens<Wide<f16, 192, 16, 2>>, Scaled>(seed, scales.params());
    attendAll<test::OfTokens<Bytes<Light<bf16, 128, 1>, e4m3>>, Scaled>(seed, scales.params());
    attendAll<test::OfTokens<Bytes<Dealt<Light<f16, 96, 64>>, e5m2>>, Scaled>(seed, scales.params());
    attendAll<test::OfTokens<Bytes<Dealt<Light<bf16, 64, 0>>, e4m3>>, Scaled>(seed, scales.params());
    attendAll<test::OfTokens<Bytes<Wide<bf16, 128, 16, 2>, e4m3>>, test::SigmoidOf<Scaled>>(seed,
                                                                                            scales.params());
    attendAll<Light<f16, 128, 16>, test::WeighedValuesVariant>(seed);
  }
}

/// By the warps that multiply them, once each.
TEST(Sm90AttendTest, KeysAreWhatTheirHookMakesOfThem) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendAll<Light<f16, 64, 0>, test::KeyedVariant>(seed);
    attendAll<Light<f16, 128, 16, 3>, test::KeyedVariant>(seed);
    attendAll<Dealt<Light<f16, 48, 16>>, test::KeyedVariant>(seed);
    attendAll<Light<f16, 80, 64>, test::KeyedWindowVariant>(seed, {300});
    attendAll<Light<bf16, 128, 1>, test::TurnedVariant<128>>(seed);
    attendAll<Dealt<Light<bf16, 96, 0, 3>>, test::TurnedVariant<96>>(seed);
  }
}

/// Of rows that are finished, and not of those that go to a partial.
TEST(Sm90AttendTest, SinksJoinFinishedRows) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendAll<Wide<f16, 64, 1>, test::SunkVariant>(seed);
    attendAll<Light<bf16, 64, 16>, test::SunkVariant>(seed);
  }
}

/// Of rows that are finished, and not of those that go to a partial.
TEST(Sm90AttendTest, OutputsAreWrittenAsTheirHookSays) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendAll<Wide<f16, 64, 1>, test::GatedVariant>(seed);
    attendAll<Light<bf16, 64, 16>, test::GatedVariant>(seed);
  }
}

/// Beside the attention, for a group of heads or for each.
template <class Base, int kGroups> struct GivingWorth : Base {
  static constexpr int kWorthGroups = kGroups;
};
template <class Base, int kHeads> struct OfHeads : Base {
  static constexpr int kQueryHeads = 2 * kHeads, kRatio = kHeads;
};
TEST(Sm90AttendTest, TokensAreGivenTheirWorth) {
  for (unsigned seed = 0; seed < 3; ++seed) {
    attendAll<GivingWorth<Light<f16, 64, 0>, 2>>(seed);
    attendAll<GivingWorth<Light<bf16, 128, 16>, 8>>(seed);
    attendAll<GivingWorth<Wide<f16, 128, 1>, 2>, test::WindowVariant>(seed, {300});
    attendAll<GivingWorth<Wide<f16, 64, 0>, 2>, test::CappedVariant>(seed);
    attendAll<GivingWorth<Light<f16, 64, 0>, 2>, test::SlopedVariant>(seed);
    attendAll<GivingWorth<Light<f16, 64, 0>, 2>, test::HookVariant>(seed);
    attendAll<GivingWorth<Dealt<Light<f16, 64, 0>>, 2>>(seed);
    attendAll<GivingWorth<OfHeads<Wide<f16, 64, 0>, 1>, 2>>(seed);
    attendAll<GivingWorth<OfHeads<Wide<f16, 64, 0>, 6>, 2>>(seed);
    attendAll<GivingWorth<OfHeads<Wide<f16, 64, 0>, 16>, 2>>(seed);
  }
}

} // namespace
} // namespace deft::sm90
