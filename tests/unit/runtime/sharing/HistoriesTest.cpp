/// Random histories of requests: forests against a plain trie of tokens, and the attention of each request
/// against the oracle of it alone.

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
    for (std::size_t i = 0; i < running.size(); ++i) {
      const Sequence &sequence = running[i];
      const int node =
          tree.addNode(-1, sequence.tokens, static_cast<int>(firstEntry(sequence.row)) * pageSize_).value();
      for (int q = 0; q < sequence.queries; ++q)
        (void)tree.addQuery(node, std::max(sequence.tokens - sequence.queries + 1 + q, 0)).value();
    }
    return tree;
  }

  std::vector<Sequence> running;
  std::vector<int> entries;

private:
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

/// Token by token, as slow and plain as it can be said.
struct PlainTrie {
  int tokens = 0, nodes = 0;

  PlainTrie(const std::vector<Sequence> &sequences, int pageSize) {
    std::map<std::pair<int, std::pair<int, int>>, int> next; // of a token and what follows it; 0: the root
    std::vector<int> children(1), ends(1);
    for (const Sequence &sequence : sequences) {
      int at = 0;
      for (int t = 0; t < sequence.tokens; ++t) {
        const std::pair token(sequence.pages[static_cast<std::size_t>(t / pageSize)], t % pageSize);
        const auto [found, isNew] = next.try_emplace({at, token}, static_cast<int>(children.size()));
        if (isNew) {
          ++children[static_cast<std::size_t>(at)];
          children.push_back(0), ends.push_back(0);
        }
        at = found->second;
      }
      ++ends[static_cast<std::size_t>(at)];
    }
    tokens = static_cast<int>(children.size()) - 1;
    nodes = ends[0] > 0; // requests without tokens
    for (std::size_t i = 1; i < children.size(); ++i)
      nodes += ends[i] > 0 || children[i] != 1;
  }
};

class History {
public:
  History(std::uint64_t seed, int pageSize, bool hasIds, bool isPacked)
      : engine_(seed, pageSize, hasIds, isPacked), pageSize_(pageSize),
        batch_(PageSize(pageSize), seed % 2 == 0), random_(seed) {
    variant_ = Kernel::variant();
    variant_.cache.paged = true;
    variant_.cache.pageSize = pageSize;
    config::PhaseConfig phase;
    phase.tileQ = 16;
    phase.rowsAbove = -1;
    config_.phases = {phase};
    config_.partition = seed % 3 == 0   ? spec::Partition::Greedy
                        : seed % 3 == 1 ? spec::Partition::Union
                                        : spec::Partition::Node;
  }

  void step(bool isRun) {
    const bool onlyGrew = engine_.step();
    const auto done =
        onlyGrew ? batch_.grow(engine_.table(), engine_.lengths()) : batch_.update(engine_.requests());
    ASSERT_TRUE(done) << done.error().message;
    const auto verified = batch_.forest().verify(engine_.entries.data());
    ASSERT_TRUE(verified) << verified.error().message;
    const PlainTrie plain(engine_.running, pageSize_);
    ASSERT_EQ(batch_.tree().tokens(), plain.tokens);
    ASSERT_EQ(batch_.tree().aliveNodes(), plain.nodes);
    const KvTree apart = engine_.apart();
    ASSERT_EQ(batch_.tree().queries().size(), apart.queries().size());
    for (std::size_t i = 0; i < apart.queries().size(); ++i)
      ASSERT_EQ(batch_.tree().pathTokens(batch_.tree().queries()[i]), apart.pathTokens(apart.queries()[i]));
    if (isRun)
      run(apart);
  }

  int grownInPlace() const { return grownInPlace_; }

private:
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
    fill(inputs.k, Engine::kPages * pageSize_ * 2 * 8);
    fill(inputs.v, Engine::kPages * pageSize_ * 2 * 8);
    exec::Outputs outputs;
    const auto ran = exec::runCpu(Kernel::kernel(), variant_, plan_, inputs, outputs, 1);
    ASSERT_TRUE(ran) << ran.error().message;
    const auto report = reference::check(variant_, apart, inputs, outputs);
    ASSERT_TRUE(report.passed()) << reference::explainFailure(report);
  }

  Engine engine_;
  int pageSize_;
  Batch batch_;
  spec::Variant variant_;
  config::Config config_;
  plan::Planner planner_;
  plan::Plan plan_;
  int grownInPlace_ = 0;
  std::mt19937_64 random_;
};

class HistoriesTest : public testing::TestWithParam<std::tuple<int, bool, bool>> {};

TEST_P(HistoriesTest, AreAsAPlainTrieSaysAndEachRequestAsIfAlone) {
  const auto [pageSize, hasIds, isPacked] = GetParam();
  int grownInPlace = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    History history(seed, pageSize, hasIds, isPacked);
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

} // namespace
} // namespace deft::sharing
