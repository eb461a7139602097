#include "tests/device/Words.h"

#include "deft/plan_drafts.cuh"

#include "runtime/plan/PlaceDrafts.h"
#include "tests/support/DraftTrees.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace deft {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

/// A plan with room for drafts, made without a planner: each request's queries stand in tiles of up to 32,
/// whose places are cut into items at will. Items have other runs, too, and some have parts of several
/// requests.
struct TestPlan {
  std::vector<abi::Item> items;
  std::vector<abi::Run> runs;
  std::vector<int> callerIndex, queryPos, queryAt, lengths, depths;
  std::vector<unsigned> bits, held;
  std::vector<abi::DraftRequest> requests;
  std::vector<abi::DraftItem> draftItems;
  std::vector<abi::DraftPart> parts;
  std::vector<test::DraftParents> trees; ///< of each of the requests
  int rows = 0;
  bool hasDepths = false, hasLengths = false;
  unsigned long long unserved = 0, noTree = 0;

  static constexpr int kSpare = 9000;

  TestPlan(std::mt19937 &random, int most, bool hasRanks = false) {
    const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
    rows = most + below(9);
    hasDepths = below(3) == 0;
    hasLengths = below(2) == 0;
    const int batch = 1 + below(5);
    std::vector<int> nextQuery{0};
    for (int r = 0; r < batch; ++r) {
      lengths.push_back(50 + below(100));
      test::DraftParents tree = test::anyDraftTree(most, random);
      const auto mask = test::maskOf(tree, rows, random);
      bits.insert(bits.end(), mask.begin(), mask.end());
      for (int draft = 0; draft < rows; ++draft)
        depths.push_back(draft < static_cast<int>(tree.size()) ? test::depthOf(tree, draft) : below(1000));
      if (r > 0 && below(4) == 0) { // without drafts
        continue;
      }
      const int planned = lengths.back() - below(20);
      requests.push_back({r, static_cast<int>(tree.size()), nextQuery.back(), planned, 16, 1000 * r,
                          hasRanks ? 1 + below(3) : abi::kWhole, static_cast<int>(held.size())});
      for (int word = hasRanks ? 9 : 0; word > 0; --word) // of 16 and 256 slots
        held.push_back(static_cast<unsigned>(random()) &
                       (below(3) == 0 ? static_cast<unsigned>(random()) : ~0u));
      nextQuery.push_back(nextQuery.back() + static_cast<int>(tree.size()));
      trees.push_back(std::move(tree));
    }
    const int queries = nextQuery.back();
    for (int query = 0; query < queries; ++query)
      callerIndex.push_back(query);
    queryAt = callerIndex;
    queryPos.assign(index(queries), -7);
    for (int r = 0; r < static_cast<int>(requests.size()); ++r)
      for (int first = 0; first < requests[index(r)].count;) {
        const int count = std::min(1 + below(32), requests[index(r)].count - first);
        addTile(r, first, count, random);
        first += count;
      }
    for (int i = below(4); i > 0; --i)
      draftItems.push_back({-1, 0, 0, 0, 0, 0, 0, 0});
    requests.push_back({});
  }

  /// Items for all places that these queries may see.
  void addTile(int request, int first, int count, std::mt19937 &random) {
    const abi::DraftRequest &own = requests[index(request)];
    const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
    for (int begin = 0, end; begin < first + count; begin = end) {
      end = std::min(begin + (below(3) == 0 ? 1 + below(40) : 256), first + count);
      const bool isNew = items.empty() || below(3) > 0 ||
                         items.back().queryBegin + items.back().queryCount != own.firstQuery + first;
      if (isNew)
        addItem(own.firstQuery + first, random);
      abi::Item &item = items.back();
      const int at = own.firstQuery + first - item.queryBegin;
      item.queryCount = std::max(item.queryCount, at + count);
      parts.push_back({request, begin, end, at, at + count, first, begin == 0, 0});
      ++draftItems.back().partCount;
      runs.resize(runs.size() + index(end - begin + (own.spread == abi::kWhole ? 1 : 16)));
    }
  }
  void addItem(int query, std::mt19937 &random) {
    abi::Item item{query, 0, static_cast<int>(runs.size()), 0, 0, -1, 0, 0};
    for (int others = static_cast<int>(random() % 3); others > 0; --others) {
      runs.push_back({item.tokens, 20, 7000 + 20 * others, 0, 0, 0, 1, 0, 0});
      ++item.runCount;
      item.tokens += 20;
    }
    draftItems.push_back({static_cast<int>(items.size()), item.runBegin, item.runCount, item.tokens,
                          static_cast<int>(parts.size()), 0, kSpare, 0});
    items.push_back(item);
  }

  abi::DraftArgs args() {
    abi::DraftArgs args{};
    args.bits = bits.data();
    args.depths = hasDepths ? depths.data() : nullptr;
    args.lengths = hasLengths ? lengths.data() : nullptr;
    args.requests = requests.data();
    args.draftItems = draftItems.data();
    args.parts = parts.data();
    args.held = held.data();
    args.queryAt = queryAt.data();
    args.items = items.data();
    args.runs = runs.data();
    args.callerIndex = callerIndex.data();
    args.queryPos = queryPos.data();
    args.unserved = &unserved;
    args.noTree = &noTree;
    args.rows = rows;
    args.mostRequests = static_cast<int>(requests.size());
    args.mostItems = static_cast<int>(draftItems.size());
    return args;
  }

  void launch(unsigned seed) {
    const abi::DraftArgs given = args();
    const auto blocks = static_cast<unsigned>(given.mostItems + given.mostRequests);
    for (unsigned block = 0; block < blocks; ++block)
      ASSERT_EQ(
          test::runBlock({.threads = PlanDrafts::kThreads, .block = block, .blocks = blocks, .seed = seed},
                         [&] { PlanDrafts(given).run(); }),
          "");
  }

  int gain(const abi::DraftRequest &request) const {
    return hasLengths ? std::clamp(lengths[index(request.request)] - request.length, 0, request.mostGain) : 0;
  }

  bool isHeld(const abi::DraftRequest &request, int slot) const {
    return request.spread == abi::kWhole ||
           (held[index(request.heldBegin + slot / 32)] >> slot % 32 & 1) != 0;
  }
  int locationOf(const abi::DraftRequest &request, int slot) const {
    int before = 0;
    for (int other = 0; other < slot; ++other)
      before += request.spread < abi::kPacked || isHeld(request, other) ? 1 : 0;
    return request.location + before;
  }

  /// (caller's query, slot, position) of all that drafts see behind what was planned.
  using Seen = std::multiset<std::array<int, 3>>;
  Seen seen() const {
    Seen all;
    for (const abi::Item &item : items) {
      int tokens = 0;
      for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r) {
        const abi::Run &run = runs[index(r)];
        EXPECT_EQ(run.begin, tokens);
        EXPECT_GT(run.tokens, 0);
        tokens += run.tokens;
        if (run.location >= 7000)
          continue;
        for (int query = run.queryBegin; query < run.queryEnd; ++query)
          for (int t = 0; t < run.tokens; ++t)
            all.insert({callerIndex[index(item.queryBegin + query)], run.location + t, run.position + t});
      }
      EXPECT_EQ(item.tokens, tokens);
      EXPECT_GT(tokens, 0) << "ends the list";
    }
    return all;
  }
  Seen expected() const {
    Seen all;
    for (std::size_t r = 0; r < trees.size(); ++r) {
      const abi::DraftRequest &own = requests[r];
      for (int i = 0; i < own.count; ++i) {
        int joined = 0;
        for (int t = 0; t < gain(own); ++t)
          if (isHeld(own, t))
            all.insert({own.firstQuery + i, locationOf(own, t),
                        own.length + (own.spread == abi::kJoined ? joined++ : t)});
        for (int j = 0; j < own.count; ++j)
          if (test::doesSee(trees[r], i, j) && isHeld(own, gain(own) + j))
            all.insert({own.firstQuery + i, locationOf(own, gain(own) + j),
                        own.length + gain(own) + test::depthOf(trees[r], j)});
      }
    }
    return all;
  }
};

template <typename T> bool areSame(const std::vector<T> &a, const std::vector<T> &b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

TEST(PlanDraftsTest, EachDraftSeesWhatItsRowSays) {
  for (unsigned seed = 1; seed <= 56; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    TestPlan plan(random, std::array{1, 3, 16, 40, 60, 255, 256}[seed % 7], /*hasRanks=*/seed % 2 == 0);
    TestPlan twin = plan;
    plan.launch(seed);
    if (HasFatalFailure())
      return;
    EXPECT_EQ(plan.seen(), plan.expected());
    for (std::size_t r = 0; r < plan.trees.size(); ++r) {
      const abi::DraftRequest &own = plan.requests[r];
      std::vector<int> positions(index(own.count), -1); // of each draft's query
      for (int place = 0; place < own.count; ++place) {
        const int query = plan.queryAt[index(own.firstQuery + place)];
        positions[index(plan.callerIndex[index(query)] - own.firstQuery)] = plan.queryPos[index(query)];
      }
      for (int draft = 0; draft < own.count; ++draft)
        EXPECT_EQ(positions[index(draft)], own.length + plan.gain(own) + test::depthOf(plan.trees[r], draft));
    }
    plan.launch(seed + 1); // it begins with what was planned each time
    plan::placeDrafts(twin.args());
    EXPECT_TRUE(areSame(plan.items, twin.items));
    EXPECT_TRUE(areSame(plan.runs, twin.runs));
    EXPECT_TRUE(areSame(plan.callerIndex, twin.callerIndex));
    EXPECT_TRUE(areSame(plan.queryPos, twin.queryPos));
    EXPECT_EQ(plan.noTree, 0u);
    EXPECT_EQ(plan.unserved != 0, twin.unserved != 0);
  }
}

// A row that does not see itself, that sees a draft and not what that one sees, two parents, two that see
// each other, a depth that none can have: every draft then sees itself, nothing is written elsewhere, and the
// mark says who it was.
TEST(PlanDraftsTest, RowsOfNoTreeAreNoticed) {
  int wrong = 0;
  for (unsigned seed = 1; seed <= 45; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    TestPlan plan(random, std::array{5, 40, 256}[seed % 3]);
    const auto r = random() % plan.trees.size();
    const abi::DraftRequest &own = plan.requests[r];
    const int words = (plan.rows + 31) / 32, i = static_cast<int>(random() % index(own.count)),
              j = static_cast<int>(random() % index(own.count));
    plan.bits[index((own.request * plan.rows + i) * words + j / 32)] ^= 1u << j % 32;
    TestPlan twin = plan;
    plan.launch(seed);
    if (HasFatalFailure())
      return;
    plan::placeDrafts(twin.args());
    EXPECT_TRUE(areSame(plan.items, twin.items));
    EXPECT_TRUE(areSame(plan.runs, twin.runs));
    EXPECT_TRUE(areSame(plan.callerIndex, twin.callerIndex));
    EXPECT_EQ(plan.noTree, twin.noTree);
    if (i == j) {
      EXPECT_NE(plan.noTree, 0u);
    }
    if (plan.noTree == 0)
      continue; // what has become a tree again
    ++wrong;
    EXPECT_EQ((plan.noTree & 0xffffffff) - 1, static_cast<unsigned long long>(own.request));
    plan.trees[r] = test::draftStar(own.count);
    EXPECT_EQ(plan.seen(), plan.expected());
  }
  EXPECT_GT(wrong, 25);
}

TEST(PlanDraftsTest, LengthsThatThePlanDoesNotServeAreNoticed) {
  std::mt19937 random(3);
  TestPlan plan(random, 16);
  plan.hasLengths = true;
  for (const abi::DraftRequest &own : std::span(plan.requests).first(plan.trees.size()))
    plan.lengths[index(own.request)] = own.length + own.mostGain;
  plan.launch(1);
  EXPECT_EQ(plan.unserved, 0u);
  const abi::DraftRequest &first = plan.requests.front();
  for (const int length : {first.length - 1, first.length + first.mostGain + 1}) {
    plan.lengths[index(first.request)] = length;
    plan.launch(1);
    EXPECT_EQ(plan.unserved,
              static_cast<unsigned long long>(length) << 32 | static_cast<unsigned>(first.request + 1));
    plan.unserved = 0;
  }
}

} // namespace
} // namespace deft
