#pragma once

/// Steps of requests with drafts, and what plans of them read.

#include "runtime/plan/Drafts.h"
#include "runtime/plan/PlaceDrafts.h"
#include "runtime/sharing/Batch.h"
#include "tests/support/DraftTrees.h"
#include "tests/unit/runtime/plan/PlanTesting.h"

#include <map>
#include <random>
#include <set>

namespace deft::plan {

inline std::size_t index(int i) { return static_cast<std::size_t>(i); }

/// Requests in the rows of a table, and their drafts' trees. Some requests begin with the same pages.
struct Step {
  int pageSize, rowPages;
  std::vector<int> entries, lengths, drafts;
  std::vector<test::DraftParents> trees;
  int rows = 0; ///< of each request in the mask
  std::vector<std::uint32_t> mask;

  Step(std::mt19937 &random, int requests, int mostDrafts)
      : Step(random, requests, mostDrafts, std::array{1, 4, 16}[random() % 3]) {}
  Step(std::mt19937 &random, int requests, int mostDrafts, int tokensOfPage) : pageSize(tokensOfPage) {
    const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
    rowPages = 640 / pageSize;
    int page = 0;
    for (int r = 0; r < requests; ++r) {
      drafts.push_back(below(8) == 0 ? 0 : 1 + below(mostDrafts));
      const int most = rowPages * pageSize - drafts.back() - 64;
      lengths.push_back(below(9) == 0 ? 0 : below(std::max(most, 1)));
      const int shared = r > 0 && below(3) > 0 ? below(rowPages) : 0;
      for (int p = 0; p < rowPages; ++p)
        entries.push_back(p < shared ? entries[index((r - 1) * rowPages + p)] : page++);
      // The slots of drafts, and those of tokens to come, are nobody else's.
      for (int p = lengths.back() / pageSize; p < rowPages; ++p)
        entries[index(r * rowPages + p)] = page++;
      trees.push_back(drafts.back() == 0 ? test::DraftParents() : test::draftTreeOf(drafts.back(), random));
    }
    rows = std::max(*std::max_element(drafts.begin(), drafts.end()), 1) + below(5);
    for (const test::DraftParents &tree : trees) {
      const auto own = test::maskOf(tree, rows, random);
      mask.insert(mask.end(), own.begin(), own.end());
    }
  }

  void update(sharing::Batch &batch) const {
    const auto updated = batch.update(
        {.table = {.entries = entries, .rowStride = rowPages}, .lengths = lengths, .drafts = drafts});
    ASSERT_TRUE(updated) << updated.error().message;
  }
  int slotOf(int location) const {
    return entries[index(location / pageSize)] * pageSize + location % pageSize;
  }
  int slot(int request, int position) const { return slotOf(request * rowPages * pageSize + position); }
};

/// By caller's query: position and slot of each token that it reads.
using Read = std::vector<std::multiset<std::pair<int, int>>>;

/// slotOf(location) is what a token's slot is called.
template <class F> Read readBy(const Plan &plan, F slotOf) {
  Read read(plan.callerIndex.size());
  for (const abi::Item &item : plan.items) {
    int tokens = 0;
    EXPECT_GT(item.tokens, 0);
    for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r) {
      const abi::Run &run = plan.runs[index(r)];
      EXPECT_EQ(run.begin, tokens);
      tokens += run.tokens;
      EXPECT_LE(run.queryEnd, item.queryCount);
      for (int query = run.queryBegin; query < run.queryEnd; ++query)
        for (int t = 0; t < run.tokens; ++t)
          read[index(plan.callerIndex[index(item.queryBegin + query)])].insert(
              {run.position + t, slotOf(run.location + t)});
    }
    EXPECT_EQ(item.tokens, tokens);
  }
  return read;
}

inline Read readBy(const Plan &plan, const Step &step) {
  return readBy(plan, [&](int location) { return step.slotOf(location); });
}

inline Read expected(const Step &step, const std::vector<int> &gains) {
  Read read;
  for (int r = 0; r < static_cast<int>(step.lengths.size()); ++r) {
    const int length = step.lengths[index(r)] + gains[index(r)];
    for (int i = 0; i < step.drafts[index(r)]; ++i) {
      auto &own = read.emplace_back();
      for (int t = 0; t < length; ++t)
        own.insert({t, step.slot(r, t)});
      for (int j = 0; j < step.drafts[index(r)]; ++j)
        if (test::doesSee(step.trees[index(r)], i, j))
          own.insert({length + test::depthOf(step.trees[index(r)], j), step.slot(r, length + j)});
    }
  }
  return read;
}

/// What a query of the plan's order merges, by items that have a partial for it.
inline void expectMerged(const Plan &plan) {
  std::map<int, int> written; // by slot: the query
  std::vector<int> direct(plan.callerIndex.size());
  for (const abi::Item &item : plan.items)
    for (int query = item.queryBegin; query < item.queryBegin + item.queryCount; ++query)
      if (item.partialBegin < 0)
        ++direct[index(query)];
      else
        written[item.partialBegin + query - item.queryBegin] = query;
  std::vector<int> merged(plan.callerIndex.size());
  for (std::size_t m = 0; m < plan.mergeQuery.size(); ++m) {
    ++merged[index(plan.mergeQuery[m])];
    for (int s = plan.mergeBegin[m]; s < plan.mergeBegin[m + 1]; ++s)
      EXPECT_EQ(written[plan.mergeSlot[index(s)]], plan.mergeQuery[m]);
  }
  for (std::size_t query = 0; query < merged.size(); ++query)
    EXPECT_EQ(merged[query] + direct[query], 1) << "query " << query;
}

inline config::Config randomConfig(std::mt19937 &random, spec::Partition partition) {
  config::Config config =
      makeConfig(std::array{16, 48, 128, 0}[random() % 4],
                 random() % 2 == 0 ? std::vector<int>{64, 16} : std::vector<int>{128}, partition);
  config.order = random() % 2 == 0 ? config::Order::Alternate : config::Order::FromRoot;
  if (random() % 2 == 0)
    config.phases = {{"tiles", -1, config::Family::Sm90, 64, 64, 2, 8}};
  return config;
}

/// The plan as it is when the mask has been read.
struct Drafted {
  DraftTables tables;
  std::vector<int> lengths;
  unsigned long long unserved = 0, noTree = 0;

  void place(const Step &step, Plan &plan, const std::vector<int> &gains) {
    abi::DraftArgs args = draftArgs(tables, plan);
    for (std::size_t r = 0; r < step.lengths.size(); ++r)
      lengths.push_back(step.lengths[r] + gains[r]);
    args.bits = step.mask.data();
    args.lengths = lengths.data();
    args.rows = step.rows;
    args.unserved = &unserved;
    args.noTree = &noTree;
    placeDrafts(args);
  }
};

} // namespace deft::plan
