#include "runtime/tree/PagedPool.h"

#include "runtime/tree/KvTree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>
#include <map>
#include <random>
#include <set>

namespace deft::tree {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

PagedPool makePool(int pageSize, std::int64_t pages) {
  return PagedPool::make({.pageSize = pageSize, .pages = pages}).value();
}

TEST(AddressSpaceTest, TakesTheSmallestHoleThatFitsAndJoinsWhatComesBack) {
  AddressSpace space(100);
  EXPECT_EQ(space.take(10), 0);
  EXPECT_EQ(space.take(10), 10);
  EXPECT_EQ(space.take(10), 20);
  space.give(10, 10);
  EXPECT_EQ(space.take(4), 10);
  EXPECT_TRUE(space.takeAt(14, 6));
  EXPECT_FALSE(space.takeAt(19, 2));
  space.give(0, 10);
  space.give(20, 10);
  EXPECT_EQ(space.free(), 90);
  EXPECT_EQ(space.largestHole(), 80);
  space.give(10, 10);
  EXPECT_EQ(space.largestHole(), 100);
  EXPECT_FALSE(space.take(101));
  EXPECT_TRUE(space.take(100));
  EXPECT_FALSE(space.takeAt(0, 1));
}

TEST(PagedPoolTest, ARangeGrowsInItsLastPage) {
  PagedPool pool = makePool(16, 10);
  const int range = pool.allocate(20).value();
  EXPECT_EQ(pool.usedPages(), 2);
  EXPECT_TRUE(pool.append(range, 12)->empty());
  EXPECT_EQ(pool.usedPages(), 2);
  EXPECT_TRUE(pool.append(range, 1)->empty());
  EXPECT_EQ(pool.usedPages(), 3);
  EXPECT_EQ(pool.range(range).tokens, 33);
  EXPECT_TRUE(pool.verify());
}

TEST(PagedPoolTest, WhereThePlacesBehindAreTakenTheRangeMovesAndItsPagesStay) {
  PagedPool pool = makePool(16, 100);
  const int range = pool.allocate(30).value();
  const int other = pool.allocate(5).value();
  std::vector<std::int64_t> slots;
  for (int i = 0; i < 30; ++i)
    slots.push_back(pool.slotOf(pool.range(range).location + i));
  EXPECT_TRUE(pool.append(range, 10)->empty()); // nothing to copy
  EXPECT_NE(pool.range(range).location, 0);
  for (int i = 0; i < 30; ++i)
    EXPECT_EQ(pool.slotOf(pool.range(range).location + i), slots[i]);
  EXPECT_EQ(pool.usedPages(), 4);
  const int location = pool.range(range).location;
  for (int i = 0; i < 40; ++i) // it has places behind it now
    EXPECT_TRUE(pool.append(range, 1));
  EXPECT_EQ(pool.range(range).location, location);
  EXPECT_TRUE(pool.release(other));
  EXPECT_TRUE(pool.release(range));
  EXPECT_EQ(pool.usedPages(), 0);
  EXPECT_TRUE(pool.verify());
}

TEST(PagedPoolTest, ASharedLastPageIsCopiedByTheSecondThatWrites) {
  PagedPool pool = makePool(16, 10);
  const int one = pool.allocate(21).value();
  const int two = pool.share(one, 21).value();
  EXPECT_EQ(pool.usedPages(), 2);
  EXPECT_TRUE(pool.append(one, 1)->empty()); // slots that nobody else has
  const auto copies = pool.append(two, 1);
  ASSERT_TRUE(copies);
  EXPECT_THAT(*copies, ElementsAre(TokenCopy{16, 32, 5}));
  EXPECT_EQ(pool.usedPages(), 3);
  EXPECT_EQ(pool.slotOf(pool.range(two).location), 0); // the full page is still shared
  EXPECT_EQ(pool.slotOf(pool.range(two).location + 21), 37);
  ASSERT_TRUE(pool.release(one));
  EXPECT_EQ(pool.usedPages(), 2);
  ASSERT_TRUE(pool.release(two));
  EXPECT_EQ(pool.usedPages(), 0);
}

TEST(PagedPoolTest, NeighboursOfATokenTreeShareAPageAndOneThatGrowsLeavesIt) {
  PagedPool pool = makePool(16, 10);
  const std::vector<int> ones = {1, 1, 0, 2, 1};
  const auto ranges = pool.allocateTogether(ones);
  ASSERT_TRUE(ranges);
  EXPECT_EQ(pool.usedPages(), 1);
  EXPECT_EQ(pool.slotOf(pool.range((*ranges)[3]).location), 2);
  EXPECT_TRUE(pool.append((*ranges)[4], 1)->empty()); // the last: nobody behind it
  const auto copies = pool.append((*ranges)[3], 3);
  ASSERT_TRUE(copies);
  EXPECT_THAT(*copies, ElementsAre(TokenCopy{2, 16, 2}));
  EXPECT_EQ(pool.usedPages(), 2);
  EXPECT_TRUE(pool.verify());
}

TEST(PagedPoolTest, SplitPartsKeepThePageUntilBothAreGone) {
  PagedPool pool = makePool(16, 10);
  const int lower = pool.allocate(20).value();
  const int upper = pool.split(lower, 4).value();
  EXPECT_EQ(pool.range(upper).tokens, 4);
  EXPECT_EQ(pool.range(lower).location, 4);
  EXPECT_EQ(pool.usedPages(), 2);
  ASSERT_TRUE(pool.release(lower));
  EXPECT_EQ(pool.usedPages(), 1);
  EXPECT_TRUE(pool.append(upper, 12)->empty()); // alone in the page by now
  EXPECT_EQ(pool.usedPages(), 1);
  EXPECT_FALSE(pool.split(upper, 0));
  EXPECT_FALSE(pool.split(upper, 16));
  ASSERT_TRUE(pool.release(upper));
  EXPECT_EQ(pool.usedPages(), 0);
}

TEST(PagedPoolTest, WithoutPagesARangeIsCopiedWhereItHasNoRoom) {
  PagedPool pool = makePool(0, 100);
  const int one = pool.allocate(10).value();
  const int two = pool.allocate(10).value();
  EXPECT_TRUE(pool.pageTable().empty());
  const auto copies = pool.append(one, 5);
  ASSERT_TRUE(copies);
  EXPECT_THAT(*copies, ElementsAre(TokenCopy{0, 20, 10}));
  EXPECT_EQ(pool.range(one).location, 20);
  EXPECT_TRUE(pool.append(one, 1)->empty());
  EXPECT_EQ(pool.usedPages(), 26);
  EXPECT_EQ(pool.range(two).location, 10);
  EXPECT_TRUE(pool.verify());
}

TEST(PagedPoolTest, WhatIsOnlyKeptForLaterIsNotLacking) {
  PagedPool pool = makePool(0, 64);
  const int grows = pool.allocate(0).value();
  ASSERT_TRUE(pool.append(grows, 8)); // and some places behind it
  EXPECT_EQ(pool.freePages(), 56);
  EXPECT_TRUE(pool.allocate(56));
  EXPECT_EQ(pool.freePages(), 0);
  EXPECT_TRUE(pool.verify());
}

TEST(PagedPoolTest, OutOfSpaceIsAnErrorThatSaysTheNumbers) {
  PagedPool pool = makePool(16, 3);
  const int range = pool.allocate(30).value();
  EXPECT_EQ(pool.allocate(17).error().message, "out of space: 2 pages of 16 tokens needed, 1 of 3 free");
  EXPECT_EQ(pool.append(range, 19).error().message, "out of space: 2 pages of 16 tokens needed, 1 of 3 free");
  EXPECT_EQ(pool.range(range).tokens, 30);
  EXPECT_TRUE(pool.append(range, 18));
  EXPECT_FALSE(pool.append(range, 1));

  PagedPool cache = makePool(0, 30);
  const int one = cache.allocate(10).value(), two = cache.allocate(10).value();
  ASSERT_TRUE(cache.allocate(10));
  EXPECT_EQ(cache.append(one, 1).error().message, "out of space: 1 token needed, 0 of 30 free");
  ASSERT_TRUE(cache.release(two));
  EXPECT_TRUE(cache.append(one, 1)); // the neighbour's place
  ASSERT_TRUE(cache.release(one));
  EXPECT_EQ(cache.freePages(), 20);

  PagedPool holes = makePool(0, 20);
  const int left = holes.allocate(8).value();
  ASSERT_TRUE(holes.allocate(4));
  ASSERT_TRUE(holes.release(left));
  EXPECT_EQ(holes.allocate(10).error().message,
            "out of space: 10 tokens needed, 16 of 20 free, but only 8 together");
}

TEST(PagedPoolTest, WrongCallsAreErrors) {
  EXPECT_FALSE(PagedPool::make({.pageSize = -1, .pages = 4}));
  EXPECT_FALSE(PagedPool::make({.pageSize = 16, .pages = -4}));
  EXPECT_FALSE(PagedPool::make({.pageSize = 0, .pages = KvTree::kMaxTokens + 1LL}));
  EXPECT_FALSE(PagedPool::make({.pageSize = 16, .pages = INT_MAX + 1LL}));
  PagedPool pool = makePool(16, 4);
  const int range = pool.allocate(5).value();
  EXPECT_EQ(pool.append(7, 1).error().message, "there is no range 7 to append to");
  EXPECT_FALSE(pool.append(range, -1));
  EXPECT_FALSE(pool.append(range, INT_MAX));
  EXPECT_FALSE(pool.allocate(-1));
  EXPECT_FALSE(pool.share(range, 6));
  ASSERT_TRUE(pool.release(range));
  EXPECT_FALSE(pool.release(range));
  EXPECT_FALSE(pool.split(range, 1));
}

TEST(PagedPoolTest, PoolsBeyondThirtyTwoBits) {
  // 2^31 - 1 pages of 512 tokens: about 2^40 slots. Only what is used takes memory here.
  PagedPool pool = makePool(512, INT_MAX);
  const int range = pool.allocate(1 << 20).value();
  EXPECT_EQ(pool.usedPages(), 2048);
  EXPECT_EQ(pool.freePages(), INT_MAX - 2048LL);
  EXPECT_EQ(pool.slotOf((1 << 20) - 1), (1 << 20) - 1);
  ASSERT_TRUE(pool.release(range));
  // Locations stay within the table: more tokens than it can name are refused.
  EXPECT_EQ(pool.allocate(KvTree::kMaxTokens - 1).ok(), true);
  EXPECT_THAT(pool.allocate(1 << 20).error().message, HasSubstr("but not in the page table"));
}

TEST(PagedPoolTest, CopiesAreAsFewAsThePagesAllow) {
  PagedPool pool = makePool(4, 10);
  const int from = pool.allocate(10).value(); // pages 0, 1, 2
  const int to = pool.allocate(10).value();   // pages 3, 4, 5
  std::vector<TokenCopy> copies;
  pool.addCopies(pool.range(from).location, pool.range(to).location, 10, copies);
  EXPECT_THAT(copies, ElementsAre(TokenCopy{0, 12, 10})); // pages that follow each other
  copies.clear();
  pool.addCopies(pool.range(from).location + 1, pool.range(from).location + 1, 5, copies);
  EXPECT_TRUE(copies.empty());
}

TEST(PagedPoolTest, ChangesOfTheTableAreTold) {
  PagedPool pool = makePool(16, 100);
  (void)pool.allocate(40).value();
  EXPECT_EQ(pool.changedTableBegin(), 0);
  EXPECT_EQ(pool.changedTableEnd(), 3);
  pool.markTableRead();
  EXPECT_EQ(pool.changedTableBegin(), pool.changedTableEnd());
  (void)pool.allocate(1).value();
  EXPECT_EQ(pool.changedTableBegin(), 3);
  EXPECT_EQ(pool.changedTableEnd(), 4);
}

TEST(PagedPoolTest, ACopyOfTheTableFollowsItsChanges) {
  PagedPool pool = makePool(4, 4000);
  std::vector<int> copy(8000, -1);
  std::uint64_t seen = 0;
  int readInFull = 0;
  const auto follow = [&] {
    const auto changes = pool.changesSince(seen);
    readInFull += !changes;
    if (changes)
      for (const int place : *changes)
        copy[place] = pool.pageTable()[place];
    else
      std::copy(pool.pageTable().begin(), pool.pageTable().end(), copy.begin());
    seen = pool.tableChanges();
  };
  const auto isFollowed = [&] {
    for (std::size_t place = 0; place < pool.pageTable().size(); ++place)
      if (pool.pageTable()[place] >= 0 && pool.pageTable()[place] != copy[place])
        return false;
    return true;
  };
  std::mt19937 random(3);
  std::vector<int> ranges;
  for (int step = 0; step < 200; ++step) {
    // Every fortieth step changes more entries than are remembered.
    for (int edit = 0; edit < (step % 40 == 39 ? 4000 : 5); ++edit) {
      if (ranges.size() > 50) {
        const std::size_t which = random() % ranges.size();
        ASSERT_TRUE(pool.release(ranges[which]).ok());
        ranges.erase(ranges.begin() + static_cast<std::ptrdiff_t>(which));
      }
      ranges.push_back(pool.allocate(static_cast<int>(random() % 40)).value());
    }
    follow();
    ASSERT_TRUE(isFollowed()) << "step " << step;
  }
  EXPECT_EQ(readInFull, 5);
  EXPECT_TRUE(pool.changesSince(seen)->empty());
}

/// A memory of tokens with names, and what each range should read.
class Model {
public:
  explicit Model(const PagedPool &pool) : pool_(pool) {}

  void apply(const std::vector<TokenCopy> &copies) {
    // Those of one call can be made at once: all read before any is written.
    std::map<std::int64_t, int> written;
    for (const TokenCopy &copy : copies)
      for (int i = 0; i < copy.tokens; ++i)
        written[copy.to + i] = memory_.at(copy.from + i);
    for (const auto &[slot, token] : written)
      memory_[slot] = token;
  }
  void write(int range, int from) {
    auto &tokens = ranges[range];
    tokens.resize(static_cast<std::size_t>(from));
    for (int i = from; i < pool_.range(range).tokens; ++i) {
      tokens.push_back(nextToken_);
      memory_[pool_.slotOf(pool_.range(range).location + i)] = nextToken_++;
    }
  }
  void expectReads() const {
    for (const auto &[range, tokens] : ranges) {
      ASSERT_EQ(pool_.range(range).tokens, static_cast<int>(tokens.size()));
      for (std::size_t i = 0; i < tokens.size(); ++i)
        ASSERT_EQ(memory_.at(pool_.slotOf(pool_.range(range).location + static_cast<int>(i))), tokens[i])
            << "token " << i << " of range " << range;
    }
  }
  /// Pages that hold some token of some range.
  std::int64_t pagesInUse() const {
    std::set<std::int64_t> pages;
    for (const auto &[range, tokens] : ranges)
      for (std::size_t i = 0; i < tokens.size(); ++i)
        pages.insert(pool_.slotOf(pool_.range(range).location + static_cast<int>(i)) /
                     std::max(pool_.pageSize(), 1));
    return static_cast<std::int64_t>(pages.size());
  }

  std::map<int, std::vector<int>> ranges;

private:
  const PagedPool &pool_;
  std::map<std::int64_t, int> memory_;
  int nextToken_ = 0;
};

TEST(PagedPoolTest, RandomHistoriesLoseNothingAndUseNothingTwice) {
  for (int pageSize : {0, 1, 7, 16})
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      SCOPED_TRACE("page size " + std::to_string(pageSize) + ", seed " + std::to_string(seed));
      std::mt19937_64 random(seed);
      const auto below = [&](std::size_t n) { return static_cast<int>(random() % n); };
      const std::int64_t capacity = 100 + below(400); // small enough to run out of space
      PagedPool pool = makePool(pageSize, capacity / std::max(pageSize, 1));
      Model model(pool);
      int failures = 0;
      for (int step = 0; step < 400; ++step) {
        const auto pick = [&] {
          auto it = model.ranges.begin();
          std::advance(it, below(model.ranges.size()));
          return it->first;
        };
        const std::int64_t used = pool.usedPages();
        bool isOk = true;
        const int kind = model.ranges.empty() ? 0 : below(10);
        if (kind == 0) {
          std::vector<int> counts(1 + below(5));
          for (int &count : counts)
            count = below(4) == 0 ? below(60) : below(3);
          const auto made = pool.allocateTogether(counts);
          if ((isOk = made.ok()))
            for (int range : *made)
              model.write(range, 0);
        } else if (kind == 1) {
          const int range = pick();
          const int tokens = below(model.ranges[range].size() + 1);
          const auto shared = pool.share(range, tokens);
          ASSERT_TRUE(shared);
          model.ranges[*shared] = model.ranges[range];
          model.ranges[*shared].resize(static_cast<std::size_t>(tokens));
        } else if (kind == 2) {
          const int range = pick();
          const int tokens = static_cast<int>(model.ranges[range].size());
          if (tokens >= 2) {
            const int at = 1 + below(tokens - 1);
            const auto upper = pool.split(range, at);
            ASSERT_TRUE(upper);
            auto &lower = model.ranges[range];
            model.ranges[*upper] = {lower.begin(), lower.begin() + at};
            lower.erase(lower.begin(), lower.begin() + at);
          }
        } else if (kind <= 4) {
          const int range = pick();
          ASSERT_TRUE(pool.release(range));
          model.ranges.erase(range);
        } else {
          const int range = pick();
          const int tokens = static_cast<int>(model.ranges[range].size());
          const auto copies = pool.append(range, below(5) == 0 ? below(40) : below(4));
          if ((isOk = copies.ok())) {
            model.apply(*copies);
            model.write(range, tokens);
          }
        }
        if (!isOk) {
          ++failures;
          ASSERT_EQ(pool.usedPages(), used);
        }
        const auto verified = pool.verify();
        ASSERT_TRUE(verified) << verified.error().message << ", step " << step;
        ASSERT_EQ(pool.usedPages(), model.pagesInUse()) << "step " << step;
        model.expectReads(); // also after a call that failed
        if (HasFatalFailure())
          return;
      }
      EXPECT_GT(failures, 0);
      while (!model.ranges.empty()) {
        ASSERT_TRUE(pool.release(model.ranges.begin()->first));
        model.ranges.erase(model.ranges.begin());
      }
      ASSERT_EQ(pool.usedPages(), 0);
      ASSERT_TRUE(pool.verify());
    }
}

} // namespace
} // namespace deft::tree
