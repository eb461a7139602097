/// Random histories of requests: forests against a plain trie of tokens, and the attention of each request
/// against the oracle of it alone; where whole chunks alone are shared, against its bits alone.

#include "runtime/exec/Half.h"
#include "runtime/exec/RandomInputs.h"
#include "runtime/exec/cpu/CpuExecutor.h"
#include "runtime/plan/Planner.h"
#include "runtime/reference/Check.h"
#include "runtime/sharing/Batch.h"
#include "tests/support/ScalarKernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>

namespace deft::sharing {
namespace {

using Kernel = test::ScalarKernel<4, 2, 8>;
using tree::KvTree;

/// What an engine has of a request.
struct Sequence {
  std::uint64_t id = 0;
  int row = 0;
  int tokens = 0;
  int queries = 1;
  bool isShortened = false; ///< in this step
  std::vector<int> pages = {};
};

/// An engine that does anything that a page table can hold: pages come from a small pool without regard to
/// who has them, rows are overwritten as soon as they are free, and requests change rows.
class Engine {
public:
  static constexpr int kRow = 24, kPages = 40;
  static constexpr std::size_t kMostRunning = 12;

  Engine(std::uint64_t seed, int pageSize, bool hasIds, bool isPacked)
      : pageSize_(pageSize), hasIds_(hasIds), isPacked_(isPacked), random_(seed) {}

  /// Whether all that happened is that requests grew.
  bool step() {
    bool onlyGrew = true;
    const auto changes = [&] { onlyGrew = false; };
    if (below(4) == 0 || running.empty()) {
      const int events = 1 + below(4);
      for (int i = 0; i < events; ++i) {
        const int event = running.empty() ? 0 : running.size() > kMostRunning ? 5 : below(10);
        if (event < 2)
          join(), changes();
        else if (event < 5)
          fork(), changes();
        else if (event < 7)
          leave(), changes();
        else if (event == 7)
          rewrite(any()), changes();
        else if (event == 8)
          shorten(any()), changes();
        else
          std::shuffle(running.begin(), running.end(), random_), changes();
      }
    }
    for (Sequence &sequence : running)
      if (!sequence.isShortened && below(4) > 0)
        grow(sequence, below(5) == 0 ? below(3 * pageSize_) : 1);
    if (below(5) == 0) {
      for (Sequence &sequence : running)
        sequence.queries = below(3) > 0 ? 1 : below(std::min(sequence.tokens, 6) + 1);
      changes();
    }
    for (Sequence &sequence : running) // of those without tokens at most one
      if (sequence.queries > std::max(sequence.tokens, 1))
        sequence.queries = 1, changes();
    for (Sequence &sequence : running)
      sequence.isShortened = false;
    writeTable(/*mayMove=*/!onlyGrew);
    return onlyGrew;
  }

  PageTable table() const {
    return isPacked_ ? PageTable{.entries = entries, .indptr = indptr_}
                     : PageTable{.entries = entries, .rowStride = kRow};
  }
  Requests requests() const {
    Requests all{.table = table(), .lengths = lengths_, .queryIndptr = queryIndptr_, .rows = rows_};
    if (hasIds_)
      all.ids = ids_;
    return all;
  }
  std::span<const int> lengths() const { return lengths_; }

  /// Each request by itself, in its own row.
  KvTree apart() const {
    KvTree tree;
    for (const Sequence &sequence : running)
      add(sequence, tree);
    return tree;
  }
  /// One of them, without the others.
  KvTree alone(std::size_t request) const {
    KvTree tree;
    add(running[request], tree);
    return tree;
  }

  std::vector<Sequence> running;
  std::vector<int> entries;

private:
  void add(const Sequence &sequence, KvTree &tree) const {
    const int node =
        tree.addNode(-1, sequence.tokens, static_cast<int>(firstEntry(sequence.row)) * pageSize_).value();
    for (int q = 0; q < sequence.queries; ++q)
      (void)tree.addQuery(node, std::max(sequence.tokens - sequence.queries + 1 + q, 0)).value();
  }
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  Sequence &any() { return running[static_cast<std::size_t>(below(static_cast<int>(running.size())))]; }
  std::int64_t firstEntry(int row) const {
    return isPacked_ ? indptr_[static_cast<std::size_t>(row)] : std::int64_t{row} * kRow;
  }

  /// Rather one of few, so that rows that know nothing of each other have the same page at the same place.
  int page() { return below(3) == 0 ? below(3) : below(kPages); }

  void grow(Sequence &sequence, int tokens) {
    sequence.tokens = std::min(sequence.tokens + tokens, kRow * pageSize_);
    while (static_cast<int>(sequence.pages.size()) < PageSize(pageSize_).pagesFor(sequence.tokens))
      sequence.pages.push_back(page());
  }
  void join() {
    running.push_back({.id = ++lastId_});
    const int kind = below(4); // empty, one token, some, many
    grow(running.back(), kind == 0 ? 0 : kind == 1 ? 1 : below(kind == 2 ? 2 * pageSize_ : 20 * pageSize_));
  }
  /// As a branch, with all pages of another one or the first of them, and as long, shorter or longer.
  void fork() {
    Sequence branch = any();
    branch.id = ++lastId_;
    branch.isShortened = false;
    if (below(2))
      shortenBy(branch, below(branch.tokens + 1));
    if (below(2))
      grow(branch, below(2 * pageSize_));
    running.push_back(branch);
  }
  void leave() {
    running.erase(running.begin() + below(static_cast<int>(running.size())));
    if (running.empty())
      join();
  }
  /// As a copy on write of the last page, or anything else.
  void rewrite(Sequence &sequence) {
    if (sequence.pages.empty())
      return;
    (below(2) ? sequence.pages.back()
              : sequence.pages[static_cast<std::size_t>(below(static_cast<int>(sequence.pages.size())))]) =
        page();
    sequence.id = ++lastId_;
  }
  /// Its pages behind the end are gone. Were it to grow in the same step, in others, it would be another one.
  void shorten(Sequence &sequence) {
    shortenBy(sequence, below(sequence.tokens + 1));
    sequence.isShortened = true;
  }
  void shortenBy(Sequence &sequence, int tokens) {
    sequence.tokens -= tokens;
    sequence.pages.resize(static_cast<std::size_t>(PageSize(pageSize_).pagesFor(sequence.tokens)));
  }

  void writeTable(bool mayMove) {
    if (mayMove) { // rows are any permutation, or as they were with new ones behind
      std::set<int> taken;
      for (Sequence &sequence : running)
        if (below(8) == 0 || !taken.insert(sequence.row).second) {
          int row = 0;
          while (!taken.insert(row).second)
            ++row;
          sequence.row = row;
        }
    }
    int rows = 0;
    for (const Sequence &sequence : running)
      rows = std::max(rows, sequence.row + 1);
    if (isPacked_) {
      indptr_.assign(static_cast<std::size_t>(rows) + 1, 0);
      for (const Sequence &sequence : running) // with room between some of them
        indptr_[static_cast<std::size_t>(sequence.row) + 1] =
            static_cast<int>(sequence.pages.size()) + (sequence.row % 3 == 0 ? 2 : 0);
      for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row)
        indptr_[row + 1] += indptr_[row];
    }
    entries.assign(static_cast<std::size_t>(isPacked_ ? indptr_.back() : rows * kRow), -9);
    lengths_.clear(), rows_.clear(), ids_.clear(), queryIndptr_ = {0};
    for (const Sequence &sequence : running) {
      std::copy(sequence.pages.begin(), sequence.pages.end(), entries.begin() + firstEntry(sequence.row));
      lengths_.push_back(sequence.tokens);
      rows_.push_back(sequence.row);
      ids_.push_back(sequence.id);
      queryIndptr_.push_back(queryIndptr_.back() + sequence.queries);
    }
  }

  int pageSize_;
  bool hasIds_, isPacked_;
  std::mt19937_64 random_;
  std::uint64_t lastId_ = 0;
  std::vector<int> indptr_, lengths_, rows_, queryIndptr_;
  std::vector<std::uint64_t> ids_;
};

/// Token by token, as slow and plain as it can be said; or step by step, where these alone are shared.
struct PlainTrie {
  int tokens = 0, nodes = 0;

  PlainTrie(const std::vector<Sequence> &sequences, int pageSize, int step = 1) {
    using Tokens = std::vector<std::pair<int, int>>; // pages, and where in them
    std::map<std::pair<int, Tokens>, int> next;      // of a step and what follows it; 0: the root
    std::vector<int> children(1), ends(1);
    for (const Sequence &sequence : sequences) {
      int at = 0;
      for (int t = 0; t < sequence.tokens; t += step) {
        const int count = std::min(step, sequence.tokens - t);
        Tokens own;
        for (int i = t; i < t + count; ++i)
          own.emplace_back(sequence.pages[static_cast<std::size_t>(i / pageSize)], i % pageSize);
        if (count < step) // nobody else's
          own.emplace_back(static_cast<int>(&sequence - sequences.data()), -1);
        const auto [found, isNew] = next.try_emplace({at, own}, static_cast<int>(children.size()));
        if (isNew) {
          tokens += count;
          ++children[static_cast<std::size_t>(at)];
          children.push_back(0), ends.push_back(0);
        }
        at = found->second;
      }
      ++ends[static_cast<std::size_t>(at)];
    }
    nodes = ends[0] > 0; // requests without tokens
    for (std::size_t i = 1; i < children.size(); ++i)
      nodes += ends[i] > 0 || children[i] != 1;
  }
};

/// Of each query, by caller's index: position and tokens of what its partials are of, in the order in which
/// they are merged. Its bits hang on nothing else.
using Pieces = std::vector<std::vector<std::pair<int, int>>>;
Pieces piecesOf(const plan::Plan &plan) {
  std::vector<const abi::Item *> itemOf(static_cast<std::size_t>(plan.partialSlots));
  for (const abi::Item &item : plan.items)
    std::fill_n(itemOf.begin() + item.partialBegin, item.queryCount, &item);
  Pieces pieces(plan.callerIndex.size());
  for (std::size_t m = 0; m < plan.mergeQuery.size(); ++m) {
    const int query = plan.callerIndex[static_cast<std::size_t>(plan.mergeQuery[m])];
    for (int slot = plan.mergeBegin[m]; slot < plan.mergeBegin[m + 1]; ++slot) {
      const abi::Item &item =
          *itemOf[static_cast<std::size_t>(plan.mergeSlot[static_cast<std::size_t>(slot)])];
      for (int run = item.runBegin; run < item.runBegin + item.runCount; ++run)
        pieces[static_cast<std::size_t>(query)].emplace_back(
            plan.runs[static_cast<std::size_t>(run)].position,
            plan.runs[static_cast<std::size_t>(run)].tokens);
    }
  }
  return pieces;
}

plan::Reach windowOf(int tokens) {
  spec::VisibleBounds::Bound from;
  from.at.qPos = 1;
  from.at.rest.constant = 1 - tokens;
  return plan::Reach::of({{{.from = {from}, .until = {}, .conditions = {}}}}, {});
}

struct Form {
  int pageSize;
  bool hasIds, isPacked;
  int chunk = 0; ///< of invariant plans, which share nothing else; 0: plans are others
};

class History {
public:
  History(std::uint64_t seed, const Form &form)
      : engine_(seed, form.pageSize, form.hasIds, form.isPacked), form_(form), batch_(emptyBatch(seed)),
        planner_({.isInvariant = form.chunk > 0}), random_(seed) {
    variant_ = Kernel::variant();
    variant_.cache.pageSize = form.pageSize;
    config::PhaseConfig phase;
    phase.tileQ = 16;
    phase.rowsAbove = -1;
    config_.phases = {phase};
    config_.chunkTokens = form.chunk;
    config_.partition = form.chunk > 0 || seed % 3 == 2 ? spec::Partition::Node
                        : seed % 3 == 0                 ? spec::Partition::Greedy
                                                        : spec::Partition::Union;
  }

  void step(bool isRun) {
    const bool onlyGrew = engine_.step();
    const auto done =
        onlyGrew ? batch_.grow(engine_.table(), engine_.lengths()) : batch_.update(engine_.requests());
    ASSERT_TRUE(done) << done.error().message;
    const auto verified = batch_.forest().verify(engine_.entries.data());
    ASSERT_TRUE(verified) << verified.error().message;
    const PlainTrie plain(engine_.running, form_.pageSize, std::max(form_.chunk, 1));
    const KvTree apart = engine_.apart();
    if (form_.chunk > 0) { // what has grown alike may be read by each
      ASSERT_GE(batch_.tree().tokens(), plain.tokens);
      ASSERT_LE(batch_.tree().tokens(), apart.tokens());
      Batch fresh = emptyBatch(0);
      ASSERT_TRUE(fresh.update(engine_.requests()));
      ASSERT_EQ(fresh.tree().tokens(), plain.tokens);
      ASSERT_EQ(fresh.tree().aliveNodes(), plain.nodes);
      shared_ += apart.tokens() - batch_.tree().tokens();
    } else {
      ASSERT_EQ(batch_.tree().tokens(), plain.tokens);
      ASSERT_EQ(batch_.tree().aliveNodes(), plain.nodes);
    }
    ASSERT_EQ(batch_.tree().queries().size(), apart.queries().size());
    for (std::size_t i = 0; i < apart.queries().size(); ++i)
      ASSERT_EQ(batch_.tree().pathTokens(batch_.tree().queries()[i]), apart.pathTokens(apart.queries()[i]));
    if (form_.chunk > 0)
      expectPiecesOfEachAlone();
    if (isRun)
      run(apart);
  }

  int grownInPlace() const { return grownInPlace_; }
  std::int64_t shared() const { return shared_; }

private:
  Batch emptyBatch(std::uint64_t seed) const {
    return Batch(PageSize(form_.pageSize), seed % 2 == 0, Batch::kLargestPage, std::max(form_.chunk, 1));
  }

  void run(const KvTree &apart) {
    if (plan::advance(batch_.tree(), plan_) == plan::Advance::Done)
      ++grownInPlace_;
    else
      ASSERT_TRUE(planner_.make(batch_.tree(), plan::VariantFacts::of(variant_, config::DeviceKind::Cpu),
                                config_, 4, plan_));
    exec::Inputs inputs;
    inputs.queryCount = static_cast<int>(apart.queries().size());
    inputs.cache = exec::cacheLayoutsOf(variant_);
    inputs.pageTable = engine_.entries;
    std::normal_distribution<float> normal;
    const auto fill = [&](auto &values, int count) {
      values.resize(static_cast<std::size_t>(count));
      for (std::uint16_t &value : values)
        value = exec::bf16FromFloat(normal(random_));
    };
    fill(inputs.q, inputs.queryCount * 4 * 8);
    fill(inputs.k, Engine::kPages * form_.pageSize * 2 * 8);
    fill(inputs.v, Engine::kPages * form_.pageSize * 2 * 8);
    exec::Outputs outputs;
    const auto ran = exec::runCpu(Kernel::kernel(), variant_, plan_, inputs, outputs, 1);
    ASSERT_TRUE(ran) << ran.error().message;
    const auto report = reference::check(variant_, apart, inputs, outputs);
    ASSERT_TRUE(report.passed()) << reference::explainFailure(report);
    if (form_.chunk > 0)
      expectBitsOfEachAlone(inputs, outputs);
  }

  /// Also where a window leaves out chunks, which who sees less of them does not.
  void expectPiecesOfEachAlone() {
    for (const plan::Reach &reach : {plan::Reach(), windowOf(40)}) {
      const auto facts = plan::VariantFacts::of(variant_, config::DeviceKind::Gpu, reach);
      plan::Plan all, one;
      ASSERT_TRUE(planner_.make(batch_.tree(), facts, config_, 4, all));
      const Pieces together = piecesOf(all);
      std::size_t query = 0; // the request's first
      for (std::size_t i = 0; i < engine_.running.size(); ++i) {
        ASSERT_TRUE(planner_.make(engine_.alone(i), facts, config_, 4, one));
        for (const auto &alone : piecesOf(one))
          ASSERT_EQ(together[query++], alone) << "request " << i;
      }
    }
  }

  void expectBitsOfEachAlone(const exec::Inputs &all, const exec::Outputs &together) {
    std::size_t row = 0; // of the request's first query
    for (std::size_t i = 0; i < engine_.running.size(); ++i) {
      const KvTree alone = engine_.alone(i);
      const std::size_t rows = alone.queries().size() * 4;
      exec::Inputs inputs = all;
      inputs.queryCount = static_cast<int>(alone.queries().size());
      inputs.q.assign(all.q.begin() + static_cast<std::ptrdiff_t>(row * 8),
                      all.q.begin() + static_cast<std::ptrdiff_t>((row + rows) * 8));
      plan::Plan plan;
      ASSERT_TRUE(
          planner_.make(alone, plan::VariantFacts::of(variant_, config::DeviceKind::Cpu), config_, 4, plan));
      exec::Outputs outputs;
      ASSERT_TRUE(exec::runCpu(Kernel::kernel(), variant_, plan, inputs, outputs, 1));
      for (std::size_t value = 0; value < rows * 8; ++value)
        ASSERT_EQ(outputs.out[value], together.out[row * 8 + value]) << "request " << i;
      for (std::size_t r = 0; r < rows; ++r)
        ASSERT_EQ(outputs.lse[r], together.lse[row + r]) << "request " << i;
      row += rows;
    }
  }

  Engine engine_;
  Form form_;
  Batch batch_;
  spec::Variant variant_;
  config::Config config_;
  plan::Planner planner_;
  plan::Plan plan_;
  int grownInPlace_ = 0;
  std::int64_t shared_ = 0; ///< tokens, in all steps
  std::mt19937_64 random_;
};

class HistoriesTest : public testing::TestWithParam<std::tuple<int, bool, bool>> {};

TEST_P(HistoriesTest, AreAsAPlainTrieSaysAndEachRequestAsIfAlone) {
  const auto [pageSize, hasIds, isPacked] = GetParam();
  int grownInPlace = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    History history(seed, {pageSize, hasIds, isPacked});
    for (int step = 0; step < 50; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      ASSERT_NO_FATAL_FAILURE(history.step(/*isRun=*/seed % 4 == 0 && step % 3 != 0));
    }
    grownInPlace += history.grownInPlace();
  }
  EXPECT_TRUE(isPacked || grownInPlace > 10) << grownInPlace;
}

INSTANTIATE_TEST_SUITE_P(EveryForm, HistoriesTest,
                         testing::Combine(testing::Values(1, 3, 16), testing::Bool(), testing::Bool()),
                         [](const auto &info) {
                           return "PagesOf" + std::to_string(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) ? "WithIds" : "WithoutIds") +
                                  (std::get<2>(info.param) ? "BackToBack" : "AtEvenDistances");
                         });

class ChunkHistoriesTest : public testing::TestWithParam<std::tuple<int, int, bool>> {};

/// Who joins, leaves, forks or grows has no say in a bit of anybody else's.
TEST_P(ChunkHistoriesTest, WhereWholeChunksAreSharedAloneBitsAreThoseOfEachAlone) {
  const auto [pageSize, chunk, hasIds] = GetParam();
  int grownInPlace = 0;
  std::int64_t shared = 0;
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    History history(seed, {pageSize, hasIds, /*isPacked=*/seed % 4 < 2, chunk});
    for (int step = 0; step < 50; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      ASSERT_NO_FATAL_FAILURE(history.step(/*isRun=*/seed % 2 == 1 && step % 3 != 0));
    }
    grownInPlace += history.grownInPlace();
    shared += history.shared();
  }
  EXPECT_GT(grownInPlace, 10);
  EXPECT_GT(shared, 1000);
}

/// Chunks of whole pages, of parts of pages, and that end inside pages.
INSTANTIATE_TEST_SUITE_P(EveryForm, ChunkHistoriesTest,
                         testing::Combine(testing::Values(3, 16, 32), testing::Values(16, 48),
                                          testing::Bool()),
                         [](const auto &info) {
                           return "PagesOf" + std::to_string(std::get<0>(info.param)) + "ChunksOf" +
                                  std::to_string(std::get<1>(info.param)) +
                                  (std::get<2>(info.param) ? "WithIds" : "WithoutIds");
                         });

} // namespace
} // namespace deft::sharing
