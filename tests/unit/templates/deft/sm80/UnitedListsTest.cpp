#include "tests/device/AttendCase.h"

#include "deft/attend_sm80.cuh"
#include "deft/sm80/united_lists.cuh"
#include "tests/device/DeviceConfig.h"

#include <gtest/gtest.h>

namespace deft::sm80 {
namespace {

using test::draw;

template <class E, int kDim, int kPage> struct Wide : test::Sm80Config {
  using Query = E;
  using Key = E;
  using Value = E;
  using Output = E;
  static constexpr int kKeyDim = kDim, kValueDim = kDim, kPageSize = kPage;
  static constexpr int kTileQ = 32, kStages = 3, kWarps = 4;
};
template <class Base, int kOfKeys> struct Unlike : Base {
  static constexpr int kKeyDim = kOfKeys;
};
/// As many queries of one head each.
template <class Base> struct OfOneHead : Base {
  static constexpr int kQueryHeads = 2, kKvHeads = 2, kRatio = 1;
};

/// Of several queries, read as one.
template <class Base, int kOfQuery> struct United : Base {
  static constexpr int kLists = kOfQuery;
  static constexpr bool kReadsUnions = true;
};
template <class Config, class Variant = test::PlainVariant>
void attendUnions(unsigned seed, const typename Variant::Params &params = {}) {
  test::AttendCase<Config, Variant> launch(seed, params);
  std::mt19937 &random = launch.random();
  for (int items = draw(random, 1, 3); items > 0; --items)
    launch.add(
        test::randomItem(random, {.queries = draw(random, 1, std::min(Config::kTileQ / Config::kRatio, 32)),
                                  .runs = draw(random, 1, 6),
                                  .mostTokens = draw(random, 1, 60),
                                  .places = launch.places()}));
  if (draw(random, 0, 2) == 0)
    launch.addEnd();
  launch.check(3, smemBytes<Config>(), [](const abi::AttendArgs &args, const auto &given) {
    sm80::attend<Config, Variant>(args, given);
  });
}
TEST(UnitedListsTest, UnionsAreAttended) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    attendUnions<United<Wide<bf16, 128, 16>, 2>>(seed);
    attendUnions<United<OfOneHead<Wide<f16, 64, 0>>, 2>>(seed); // 32 queries
    attendUnions<United<Wide<f16, 64, 1>, 1>, test::WindowVariant>(seed, {300});
    attendUnions<United<Wide<f16, 64, 16>, 2>, test::HookVariant>(seed);
    attendUnions<United<Unlike<Wide<bf16, 128, 16>, 192>, 2>>(seed);
    attendUnions<United<Wide<f16, 64, 1>, 2>, test::KeyedWindowVariant>(seed, {300});
  }
}

/// Whatever the device finds in a union, its items' parts are all of it, in order.
TEST(UnitedListsTest, PartsAreAllOfAUnion) {
  using Config = United<Wide<f16, 64, 0>, 2>;
  struct {
    abi::Selected selected;
    abi::Unions unions;
  } memory{};
  const abi::Union list[] = {{0, 3, 0, 0, 0, 1}, {3, 2, 0, 3, 0, 1}};
  int counts[4] = {};
  memory.selected.budget = 1000;
  memory.unions = {list, nullptr, nullptr, nullptr, counts, nullptr};
  abi::AttendArgs args{};
  args.selected = &memory.selected;
  for (const int count : {0, 1, Config::kTileKv, 100, 1000, 1999})
    for (const int parts : {1, 3, 16, 200}) {
      counts[3] = count; // of the second union's second list
      long long next = (3 * 2 + 1 * 2) * 1000;
      for (int part = 0; part < parts; ++part) {
        abi::Item item{};
        item.runBegin = 1;
        item.runCount = parts;
        item.queryCount = 2;
        item.commonTokens = part;
        const ListPart<Config> own(item, args, 1);
        EXPECT_GE(own.tokens, 0);
        EXPECT_EQ(own.begin, next) << count << ", " << parts << ", " << part;
        EXPECT_EQ(ListPart<Config>::cut(item, args, 1).tokens, own.tokens);
        next += own.tokens;
      }
      EXPECT_EQ(next, 8000 + count);
    }
}

} // namespace
} // namespace deft::sm80
