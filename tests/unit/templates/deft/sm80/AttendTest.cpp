#include "tests/device/AttendCase.h"

#include "deft/attend_sm80.cuh"
#include "tests/device/DeviceConfig.h"
#include "tests/device/TokenValues.h"

#include <gtest/gtest.h>

namespace deft::sm80 {
namespace {

using test::draw;

template <class E, int kDim, int kPage> struct Narrow : test::Sm80Config {
  using Query = E;
  using Key = E;
  using Value = E;
  using Output = E;
  static constexpr int kKeyDim = kDim, kValueDim = kDim, kPageSize = kPage;
};
/// 32 rows, three stages, four warps that split rows and tokens.
template <class E, int kDim, int kPage> struct Wide : Narrow<E, kDim, kPage> {
  static constexpr int kTileQ = 32, kStages = 3, kWarps = 4;
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
    sm80::attend<Config, Variant>(args, given);
  });
}

TEST(Sm80AttendTest, ItemsAreAttended) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    attendAll<Narrow<f16, 64, 0>>(seed);
    attendAll<Narrow<bf16, 128, 16>>(seed);
    attendAll<Wide<f16, 128, 1>>(seed);
    attendAll<Wide<bf16, 80, 0>>(seed);
  }
}

/// Queries that wait in shared memory.
TEST(Sm80AttendTest, ManyColumnsAreAttended) {
  for (unsigned seed = 0; seed < 3; ++seed)
    attendAll<Narrow<f16, 192, 16>>(seed);
}

/// Rows that end in the middle of a step, and of a pair of columns.
TEST(Sm80AttendTest, RowsOfAnOddNumberOfEightsAreAttended) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendAll<Narrow<f16, 8, 0>>(seed);
    attendAll<Narrow<bf16, 24, 16>>(seed);
    attendAll<Wide<bf16, 40, 16>>(seed);
    attendAll<Wide<f16, 72, 1>>(seed);
    attendAll<Narrow<bf16, 120, 0>, test::WindowVariant>(seed, {300});
    attendAll<Narrow<f16, 136, 16>>(seed); // queries in shared memory
  }
}

template <int kOfKeys, int kOfValues> struct Unlike : Wide<bf16, kOfKeys, 16> {
  static constexpr int kKeyDim = kOfKeys, kValueDim = kOfValues;
};

/// More columns of K than of V, and fewer, with queries in registers and in shared memory.
TEST(Sm80AttendTest, KeysAndValuesHaveDimsOfTheirOwn) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendAll<Unlike<96, 64>>(seed);
    attendAll<Unlike<48, 80>>(seed);
    attendAll<Unlike<192, 128>>(seed);
    attendAll<Unlike<72, 64>>(seed);
    attendAll<Unlike<64, 40>>(seed);
  }
}

/// Values, and so weights, of another type than keys.
struct Mixed : Wide<f16, 64, 1> {
  using Value = bf16;
  using Output = bf16;
};
TEST(Sm80AttendTest, ValuesHaveATypeOfTheirOwn) {
  for (unsigned seed = 0; seed < 3; ++seed)
    attendAll<Mixed>(seed);
}

/// A cache of 8-bit floats.
template <class Q, class E, int kDim, int kPage> struct Bytes : Wide<Q, kDim, kPage> {
  using Key = E;
  using Value = E;
};
template <class Q, class E, int kDim, int kPage> struct FewBytes : Narrow<Q, kDim, kPage> {
  using Key = E;
  using Value = E;
};
TEST(Sm80AttendTest, BytesAreConverted) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendAll<Bytes<bf16, e4m3, 128, 16>>(seed);
    attendAll<FewBytes<f16, e4m3, 64, 0>>(seed);
    attendAll<FewBytes<bf16, e5m2, 80, 1>>(seed); // an odd number of steps
    attendAll<Bytes<f16, e5m2, 32, 16>>(seed);
    attendAll<Bytes<f16, e4m3, 64, 1>, test::WindowVariant>(seed, {300});
    attendAll<Bytes<bf16, e4m3, 64, 0>, test::SigmoidVariant>(seed);
  }
}
TEST(Sm80AttendTest, ManyColumnsOfBytesAreConverted) {
  for (unsigned seed = 0; seed < 3; ++seed) {
    attendAll<FewBytes<bf16, e4m3, 192, 16>>(seed);
    attendAll<FewBytes<f16, e5m2, 144, 0>>(seed);
  }
}
/// K and V each of its own 8 bits, and with dims of their own.
struct UnlikeBytes : Bytes<bf16, e4m3, 96, 16> {
  using Value = e5m2;
  static constexpr int kValueDim = 64;
};
TEST(Sm80AttendTest, BytesOfKeysAndValuesMayDiffer) {
  for (unsigned seed = 0; seed < 3; ++seed)
    attendAll<UnlikeBytes>(seed);
}
/// bf16 has exponents that the f16 of such products has not.
TEST(Sm80AttendTest, QueriesOfAnySizeMeetBytes) {
  for (unsigned seed = 0; seed < 3; ++seed) {
    attendAll<Bytes<bf16, e4m3, 128, 16>, test::LargeQueriesVariant>(seed);
    attendAll<Bytes<bf16, e4m3, 128, 16>, test::SmallQueriesVariant>(seed);
    attendAll<FewBytes<bf16, e4m3, 192, 0>, test::LargeQueriesVariant>(seed);
    attendAll<FewBytes<bf16, e4m3, 192, 0>, test::SmallQueriesVariant>(seed);
  }
}

TEST(Sm80AttendTest, MasksAndScoresAreHeard) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendAll<Wide<f16, 64, 1>, test::WindowVariant>(seed, {300});
    attendAll<Narrow<f16, 64, 1>, test::WindowVariant>(seed, {20});
    attendAll<Wide<f16, 64, 0>, test::CappedVariant>(seed);
    attendAll<Narrow<f16, 64, 0>, test::SlopedVariant>(seed);
    attendAll<Narrow<f16, 64, 0>, test::HookVariant>(seed);
    attendAll<Wide<f16, 64, 0>, test::SigmoidVariant>(seed);
  }
}

TEST(Sm80AttendTest, ElementsOfTokensComeWithThem) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    const test::Documents arrays(seed);
    attendAll<test::OfTokens<Narrow<f16, 64, 0>>, test::TokensVariant>(seed, arrays.params());
    attendAll<test::OfTokens<Narrow<bf16, 128, 16>>, test::TokensVariant>(seed, arrays.params());
    attendAll<test::OfTokens<Wide<f16, 64, 1>>, test::TokensVariant>(seed, arrays.params());
    attendAll<test::OfTokens<Narrow<f16, 192, 16>>, test::TokensVariant>(seed, arrays.params());
    attendAll<test::OfTokens<FewBytes<bf16, e4m3, 128, 16>>, test::TokensVariant>(seed, arrays.params());
  }
}

TEST(Sm80AttendTest, RowsOfTokensHaveScales) {
  using Sigmoid = test::SigmoidOf<test::ScaledRowsVariant>;
  for (unsigned seed = 0; seed < 4; ++seed) {
    const test::RowScales scales(seed);
    attendAll<test::OfTokens<Narrow<f16, 64, 0>>, test::ScaledRowsVariant>(seed, scales.params());
    attendAll<test::OfTokens<Wide<bf16, 64, 1>>, test::ScaledRowsVariant>(seed, scales.params());
    attendAll<test::OfTokens<Narrow<f16, 192, 16>>, test::ScaledRowsVariant>(seed, scales.params());
    attendAll<test::OfTokens<FewBytes<bf16, e4m3, 128, 16>>, test::ScaledRowsVariant>(seed, scales.params());
    attendAll<test::OfTokens<FewBytes<f16, e5m2, 64, 16>>, Sigmoid>(seed, scales.params());
    attendAll<Wide<f16, 64, 16>, test::WeighedValuesVariant>(seed);
  }
}

/// Of rows that are finished, and not of those that go to a partial.
TEST(Sm80AttendTest, SinksJoinFinishedRows) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendAll<Wide<f16, 64, 1>, test::SunkVariant>(seed);
    attendAll<Narrow<bf16, 64, 16>, test::SunkVariant>(seed);
  }
}

/// Of rows that are finished, and not of those that go to a partial.
TEST(Sm80AttendTest, OutputsAreWrittenAsTheirHookSays) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendAll<Wide<f16, 64, 1>, test::GatedVariant>(seed);
    attendAll<Narrow<bf16, 64, 16>, test::GatedVariant>(seed);
  }
}

/// Each tile once, whatever its rows see of it; halves of 1 to 12 columns, of which not all are a power of 2.
TEST(Sm80AttendTest, KeysAreWhatTheirHookMakesOfThem) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    attendAll<Wide<f16, 64, 1>, test::KeyedVariant>(seed);
    attendAll<Narrow<f16, 16, 0>, test::KeyedVariant>(seed);
    attendAll<Narrow<f16, 48, 16>, test::KeyedVariant>(seed);
    attendAll<Wide<f16, 80, 16>, test::KeyedVariant>(seed);
    attendAll<Narrow<f16, 192, 16>, test::KeyedVariant>(seed);
    attendAll<Wide<f16, 64, 0>, test::KeyedWindowVariant>(seed, {300});
    attendAll<Narrow<bf16, 128, 16>, test::TurnedVariant<128>>(seed);
    attendAll<Wide<bf16, 96, 1>, test::TurnedVariant<96>>(seed);
  }
}

/// Beside the attention, for a group of heads or for each.
template <class Base, int kGroups> struct GivingWorth : Base {
  static constexpr int kWorthGroups = kGroups;
};
template <class Base, int kHeads> struct OfHeads : Base {
  static constexpr int kQueryHeads = 2 * kHeads, kRatio = kHeads;
};
TEST(Sm80AttendTest, TokensAreGivenTheirWorth) {
  for (unsigned seed = 0; seed < 3; ++seed) {
    attendAll<GivingWorth<Narrow<f16, 64, 0>, 2>>(seed);
    attendAll<GivingWorth<Narrow<f16, 64, 16>, 8>>(seed);
    attendAll<GivingWorth<Wide<bf16, 64, 1>, 2>, test::WindowVariant>(seed, {300});
    attendAll<GivingWorth<Wide<f16, 64, 0>, 2>, test::CappedVariant>(seed);
    attendAll<GivingWorth<Narrow<f16, 64, 0>, 2>, test::SlopedVariant>(seed);
    attendAll<GivingWorth<Narrow<f16, 64, 0>, 2>, test::HookVariant>(seed);
    attendAll<GivingWorth<Narrow<f16, 64, 0>, 2>, test::SigmoidVariant>(seed);
    attendAll<GivingWorth<test::OfTokens<Narrow<f16, 64, 16>>, 2>, test::TokensVariant>(
        seed, test::Documents(seed).params());
    attendAll<GivingWorth<OfHeads<Wide<f16, 64, 0>, 1>, 2>>(seed);
    attendAll<GivingWorth<OfHeads<Wide<f16, 64, 0>, 3>, 2>>(seed);
    attendAll<GivingWorth<OfHeads<Wide<f16, 64, 0>, 6>, 2>>(seed);
    attendAll<GivingWorth<OfHeads<Wide<f16, 64, 0>, 8>, 2>>(seed);
    attendAll<GivingWorth<OfHeads<Wide<f16, 64, 0>, 16>, 2>>(seed);
    attendAll<GivingWorth<FewBytes<f16, e4m3, 64, 0>, 2>>(seed);
    attendAll<GivingWorth<Narrow<f16, 64, 0>, 2>, test::KeyedVariant>(seed);
  }
}

/// Lists of each KV head, of each query head, or one of all.
template <class Base, int kOfQuery> struct Sparse : Base {
  static constexpr int kLists = kOfQuery;
};
template <class Config, class Variant = test::PlainVariant>
void attendLists(unsigned seed, const typename Variant::Params &params = {}) {
  test::AttendCase<Config, Variant> launch(seed, params);
  std::mt19937 &random = launch.random();
  for (int items = draw(random, 1, 4); items > 0; --items)
    launch.add(test::randomItem(random, {.queries = 1,
                                         .runs = draw(random, 1, 6),
                                         .mostTokens = draw(random, 1, 60),
                                         .places = launch.places()}));
  launch.check(3, smemBytes<Config>(), [](const abi::AttendArgs &args, const auto &given) {
    sm80::attend<Config, Variant>(args, given);
  });
}
TEST(Sm80AttendTest, ListsAreAttended) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    attendLists<Sparse<Narrow<f16, 64, 0>, 2>>(seed);
    attendLists<Sparse<Narrow<bf16, 128, 16>, 2>>(seed);
    attendLists<Sparse<Narrow<f16, 64, 1>, 1>>(seed);
    attendLists<Sparse<Wide<f16, 64, 16>, 2>, test::WindowVariant>(seed, {300});
    attendLists<Sparse<Narrow<f16, 64, 16>, 2>, test::HookVariant>(seed);
    attendLists<Sparse<Narrow<f16, 64, 16>, 8>>(seed);
    attendLists<Sparse<Wide<bf16, 64, 1>, 8>, test::WindowVariant>(seed, {300});
    attendLists<Sparse<OfHeads<Wide<f16, 64, 0>, 3>, 6>, test::SlopedVariant>(seed);
    attendLists<Sparse<OfHeads<Narrow<f16, 64, 0>, 1>, 2>>(seed);
    attendLists<Sparse<Narrow<f16, 64, 0>, 2>, test::SigmoidVariant>(seed);
    attendLists<Sparse<Narrow<bf16, 64, 16>, 8>, test::SunkVariant>(seed);
    attendLists<Sparse<FewBytes<bf16, e4m3, 128, 16>, 2>>(seed);
    attendLists<Sparse<FewBytes<f16, e4m3, 64, 0>, 8>>(seed);
    attendLists<Sparse<Narrow<f16, 64, 16>, 2>, test::KeyedVariant>(seed);
    attendLists<Sparse<Wide<f16, 64, 1>, 8>, test::KeyedWindowVariant>(seed, {300});
    attendLists<Sparse<Narrow<bf16, 128, 0>, 1>, test::TurnedVariant<128>>(seed);
    const test::Documents arrays(seed);
    attendLists<test::OfTokens<Sparse<Narrow<f16, 64, 16>, 2>>, test::TokensVariant>(seed, arrays.params());
    attendLists<test::OfTokens<Sparse<Wide<bf16, 64, 1>, 8>>, test::TokensVariant>(seed, arrays.params());
    attendLists<test::OfTokens<Sparse<Narrow<f16, 64, 0>, 1>>, test::TokensVariant>(seed, arrays.params());
    attendLists<test::OfTokens<Sparse<Narrow<f16, 64, 16>, 2>>, test::ScaledRowsVariant>(
        seed, test::RowScales(seed).params());
    attendLists<Sparse<Wide<bf16, 64, 1>, 8>, test::WeighedValuesVariant>(seed);
  }
}

} // namespace
} // namespace deft::sm80
