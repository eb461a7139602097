#pragma once

#include "templates/deft/abi.h"

#include <algorithm>
#include <random>
#include <vector>

namespace deft::test {

/// What is true of one token of an item, found by counting.
struct ItemToken {
  int place = 0, position = 0, depth = 0;
  int queryBegin = 0, queryEnd = 0;

  unsigned visible() const { return static_cast<unsigned>(queryBegin | queryEnd << 16); }
  bool operator==(const ItemToken &) const = default;
};

inline ItemToken tokenOf(const abi::Run &run, int t) {
  return {run.location + t, run.position + t, run.depth, run.queryBegin + run.slope * t, run.queryEnd};
}

/// An item and its runs, somewhere in a list of runs.
struct TestItem {
  abi::Item item{};
  std::vector<abi::Run> runs;
  int places = 1; ///< tokens of the cache, by their place in the page table

  std::vector<ItemToken> tokens() const {
    std::vector<ItemToken> tokens;
    for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r)
      for (int t = 0; t < runs[r].tokens; ++t)
        tokens.push_back(tokenOf(runs[static_cast<std::size_t>(r)], t));
    return tokens;
  }
};

struct ItemShape {
  int queries = 1;
  int runs = 1;
  int mostTokens = 100; ///< of a run
  int places = 4096;
};

inline int draw(std::mt19937 &random, int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(random);
}

/// One run in four becomes a causal stretch, of no more tokens than it has readers.
inline void giveSlope(std::mt19937 &random, abi::Run &run) {
  if (draw(random, 0, 3) != 0)
    return;
  run.slope = 1;
  run.tokens = std::min(run.tokens, run.queryEnd - run.queryBegin);
}

/// Runs anywhere in the cache, of lengths from 1 on, most of them short; each seen by some queries, and the
/// first token by all. Some have a slope.
inline TestItem randomItem(std::mt19937 &random, const ItemShape &shape) {
  TestItem made;
  made.places = shape.places;
  made.item.queryCount = shape.queries;
  made.item.runBegin = draw(random, 0, 3);
  made.item.runCount = shape.runs;
  made.runs.resize(static_cast<std::size_t>(made.item.runBegin));
  int position = 0;
  for (int r = 0; r < shape.runs; ++r) {
    abi::Run run{};
    run.begin = made.item.tokens;
    run.tokens = draw(random, 0, 2) == 0 ? draw(random, 1, shape.mostTokens)
                                         : draw(random, 1, std::min(shape.mostTokens, 5));
    run.queryBegin = r == 0 ? 0 : draw(random, 0, shape.queries - 1);
    run.queryEnd = r == 0 ? shape.queries : draw(random, run.queryBegin + 1, shape.queries);
    giveSlope(random, run);
    run.location = draw(random, 0, shape.places - run.tokens);
    run.position = position;
    run.depth = r;
    position += run.tokens;
    made.item.tokens += run.tokens;
    made.runs.push_back(run);
  }
  return made;
}

/// An item of 16 queries, four rows each, whose tokens are dealt: runs of the common tokens, and behind them
/// those that only the rows of one warp see, warp by warp. Warps may have none.
struct DealtItem : TestItem {
  std::vector<ItemToken> common, ofWarp[4];
};

inline DealtItem randomDealtItem(std::mt19937 &random, int places, int mostRuns) {
  DealtItem made;
  made.places = places;
  made.item.queryCount = 16;
  const int mostTokens = draw(random, 0, 2) == 0 ? 1 : 70;
  int before[4] = {};
  for (int kind = 0; kind < 5; ++kind) {
    const bool isCommon = kind == 0;
    int runs = isCommon || draw(random, 0, 4) > 0 ? draw(random, 1, mostRuns) : 0;
    if (kind == 4) // somebody has some, and the first four runs say where each warp's begin
      runs = std::max(runs, std::max(1, 4 - made.item.runCount));
    if (!isCommon)
      before[kind - 1] = made.item.runCount;
    std::vector<ItemToken> &tokens = isCommon ? made.common : made.ofWarp[kind - 1];
    for (int r = 0; r < runs; ++r) {
      abi::Run run{};
      run.begin = made.item.tokens;
      run.tokens = draw(random, 1, mostTokens);
      run.queryBegin = isCommon ? 0 : 4 * (kind - 1);
      run.queryEnd = isCommon ? draw(random, 1, 16) : 4 * kind;
      giveSlope(random, run);
      run.location = draw(random, 0, places - run.tokens);
      run.position = draw(random, 0, 1 << 20);
      run.depth = draw(random, 0, 9);
      made.item.tokens += run.tokens;
      ++made.item.runCount;
      made.runs.push_back(run);
      for (int t = 0; t < run.tokens; ++t)
        tokens.push_back(tokenOf(run, t));
    }
    if (isCommon)
      made.item.commonTokens = made.item.tokens;
    else
      made.item.dealtTiles = std::max(made.item.dealtTiles, static_cast<int>((tokens.size() + 15) / 16));
  }
  for (std::size_t warp = 0; warp < 4; ++warp)
    made.runs[warp].dealtBegin = before[warp];
  return made;
}

} // namespace deft::test
