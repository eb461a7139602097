/// What vectors of floats say a group costs, against whole numbers and doubles.

#include "runtime/plan/GroupPrices.h"

#include "tests/unit/runtime/plan/PlanTesting.h"

namespace deft::plan {
namespace {

struct Priced {
  CostModel model;
  GroupPrices prices;
  int chunk;

  Priced(int ratio, const std::vector<int> &tileQs, int chunkTokens) : chunk(chunkTokens) {
    model.set({ratio, 8}, makeConfig(chunkTokens, tileQs), 132);
    prices.set(model, chunkTokens);
  }
  /// By whole numbers: row tiles of full width and one for the rest, over each of the chunks.
  double by(int queries, int tokens, bool isWhole) const {
    if (tokens == 0 || queries == 0)
      return 0;
    const int width = model.queriesPerTile();
    const int chunks = chunk > 0 ? std::max(1, (tokens + chunk - 1) / chunk) : 1;
    const int each =
        chunks == 1 ? tokens : (tokens + chunks * kChunkStep - 1) / (chunks * kChunkStep) * kChunkStep;
    double us = 0;
    for (int left = queries; left > 0; left -= width) {
      const int rows = std::min(left, width), step = model.tokenStep(rows);
      for (int begin = 0; begin < tokens; begin += each)
        us += (std::min(each, tokens - begin) + step - 1) / step * model.stepUs(rows) + model.itemUs();
      us += tokens * model.againUs();
    }
    return us + (isWhole && chunks == 1 ? 0 : chunks * queries * model.partialUs());
  }
};

const std::vector<Priced> &someModels() {
  static const std::vector<Priced> models = [] {
    std::vector<Priced> made;
    for (const int ratio : {1, 4, 3})
      for (const std::vector<int> &tileQs : {std::vector{64, 16}, {16}, {128, 64, 16}})
        for (const int chunk : {0, 256, 1024})
          made.emplace_back(ratio, tileQs, chunk);
    return made;
  }();
  return models;
}

TEST(GroupPricesTest, PricesAreThoseOfTilesAndChunksOneByOne) {
  for (const Priced &one : someModels())
    for (const int queries : {1, 2, 5, 16, 17, 64, 65, 200, 1000})
      for (const int tokens : {1, 15, 16, 17, 63, 64, 65, 255, 256, 257, 1000, 1024, 1025, 4096, 30000}) {
        SCOPED_TRACE(std::to_string(queries) + " queries, " + std::to_string(tokens) + " tokens, chunks of " +
                     std::to_string(one.chunk));
        const auto length = static_cast<float>(tokens);
        const Float4 us = one.prices.sameReaders(one.prices.readers(queries),
                                                 Float4{length, length, 0, length}, Int4{0, -1, 0, 0});
        EXPECT_NEAR(us[0], one.by(queries, tokens, false), 1e-4 * us[0]);
        EXPECT_NEAR(us[1], one.by(queries, tokens, true), 1e-4 * us[0]);
        EXPECT_EQ(us[2], 0) << "of no tokens";
      }
}

TEST(GroupPricesTest, OtherReadersCostWhatTheSameOnesDo) {
  for (const Priced &one : someModels())
    for (const int queries : {0, 1, 3, 16, 31, 64, 129, 777}) {
      const Float4 tokens{16, 100, 257, 5000}, all = splat(static_cast<float>(queries));
      const Float4 us = one.prices.otherReaders(800, all, tokens);
      for (int k = 0; k < 4; ++k)
        EXPECT_NEAR(us[k], one.by(queries, static_cast<int>(tokens[k]), false), 1e-4 * us[k] + 1e-9)
            << queries << " queries, " << tokens[k] << " tokens";
    }
}

/// So many must leave that tiles of what is left cost less, and one less would not do.
TEST(GroupPricesTest, FewerIsWhereTilesGetCheaper) {
  for (const Priced &one : someModels()) {
    const auto steps = [&](int queries) {
      double us = 0;
      for (int left = queries; left > 0; left -= one.prices.width())
        us += one.model.stepUs(std::min(left, one.prices.width()));
      return us;
    };
    for (int queries = 1; queries <= 3 * one.prices.width(); ++queries) {
      const int fewer = one.prices.fewer(queries);
      ASSERT_LE(fewer, queries);
      EXPECT_LT(steps(queries - fewer), steps(queries) * (1 - 1e-6)) << queries;
      if (fewer > 1) {
        EXPECT_NEAR(steps(queries - fewer + 1), steps(queries), 1e-6 * steps(queries)) << queries;
      }
    }
  }
}

/// A partial costs more than reading a short group once more, which is no other step than none.
TEST(GroupPricesTest, ShortGroupsAreOneStepAndCheaperToReadThanAPartial) {
  for (const Priced &one : someModels()) {
    const int tokens = one.prices.shortTokens();
    ASSERT_GT(tokens, 0);
    EXPECT_LE(tokens * one.model.againUs(), one.model.partialUs() * (1 + 1e-5));
    for (int queries = 1; queries <= one.prices.width(); ++queries)
      EXPECT_LE(tokens, one.model.tokenStep(queries));
    if (one.chunk > 0) {
      EXPECT_LE(tokens, one.chunk);
    }
  }
}

} // namespace
} // namespace deft::plan
