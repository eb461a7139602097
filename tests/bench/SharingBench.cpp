/// Time of finding who shares which pages, on one core: of all requests from scratch, of a step in which all
/// of them grew, and of one in which some come and others go.
///
/// 256 requests of 512 pages of 16 tokens, and up to 4,096 of 256 pages, a million in all, in tables with a
/// row stride. The goals at 256 requests are 200 us from scratch, 5 us for growth and 30 us for 8 that come
/// and 8 that go. Five ways to share: none; one prompt; prompts of 32 requests each; a trunk that each
/// request leaves at another page, which cuts one node after the other; and all equal.
///
/// From scratch takes 0.3 to 0.9 ns a page, of which the look for negative ids is the half; only a trunk of
/// as many nodes as pages takes 5 to 7, a look into the map for each. Growth takes 12 ns a request, whatever
/// is shared. Of an exchange, 30 ns a request is what any update looks at, and a newcomer takes 0.2 us, along
/// a trunk of 255 nodes 1 us. `without_ids` is the price of believing nothing: every step compares the table
/// with a copy.
/// Every forest is verified before it is timed (to 256 requests).
/// --benchmark_out=FILE writes JSON.

#include "runtime/sharing/Batch.h"

#include <benchmark/benchmark.h>

#include <memory>
#include <numeric>
#include <string>

namespace deft::sharing {
namespace {

constexpr int kPageSize = 16;
constexpr int kMorePages = 32; ///< that a row has room for, as engines leave it
/// Requests that come, and as many that go, in a step.
constexpr int kExchanged = 8;

/// How many of its first pages request `i` has from a prompt, and which prompt that is.
struct Prefix {
  int prompt = 0;
  int pages = 0;
};
using Shape = Prefix (*)(int request, int pages);

Prefix none(int, int) { return {}; }
Prefix onePrompt(int, int pages) { return {0, pages * 3 / 4}; }
Prefix prompts(int request, int pages) { return {request / 32, pages * 3 / 4}; }
Prefix trunk(int request, int pages) { return {0, pages - 1 - request % (pages - 1)}; }
Prefix equal(int, int pages) { return {0, pages}; }

/// A table of requests that have so many pages and a token in the last of them, with room to grow.
class Table {
public:
  Table(Shape shape, int requests, int pages) : pages_(pages) {
    const int rows = requests + kExchanged;
    entries_.resize(static_cast<std::size_t>(rows) * static_cast<std::size_t>(stride()));
    int own = rows * pages; // ids of pages that nobody shares lie behind those of prompts
    for (int row = 0; row < rows; ++row) {
      const Prefix prefix = shape(row, pages);
      for (int page = 0; page < stride(); ++page)
        entries_[static_cast<std::size_t>(row) * static_cast<std::size_t>(stride()) +
                 static_cast<std::size_t>(page)] = page < prefix.pages ? prefix.prompt * pages + page : own++;
    }
    rows_.resize(static_cast<std::size_t>(requests));
    std::iota(rows_.begin(), rows_.end(), 0);
    std::iota(free_.begin(), free_.end(), requests);
    ids_.assign(rows_.begin(), rows_.end());
    lengths_.assign(rows_.size(), (pages - 1) * kPageSize + 1);
  }

  PageTable table() const { return {.entries = entries_, .rowStride = stride()}; }
  Requests requests() const { return {.table = table(), .lengths = lengths_, .rows = rows_, .ids = ids_}; }
  Requests withoutIds() const { return {.table = table(), .lengths = lengths_, .rows = rows_}; }
  std::span<const int> lengths() const { return lengths_; }
  const int *entries() const { return entries_.data(); }
  std::int64_t pages() const { return static_cast<std::int64_t>(rows_.size()) * pages_; }

  /// Each request has one token more; false where rows are full.
  bool grow() {
    if (lengths_[0] == stride() * kPageSize)
      return false;
    for (int &length : lengths_)
      ++length;
    return true;
  }
  void shrink() { lengths_.assign(lengths_.size(), (pages_ - 1) * kPageSize + 1); }

  /// Some end, here and there in the batch, and others begin in the rows that are free.
  void exchange() {
    for (int i = 0; i < kExchanged; ++i) {
      const std::size_t at = (next_ + static_cast<std::size_t>(i) * rows_.size() / kExchanged) % rows_.size();
      std::swap(rows_[at], free_[static_cast<std::size_t>(i)]);
      ids_[at] = ++lastId_;
    }
    ++next_;
  }

private:
  std::int64_t stride() const { return pages_ + kMorePages; }

  int pages_;
  std::vector<int> entries_, rows_, lengths_;
  std::vector<int> free_ = std::vector<int>(kExchanged); ///< rows
  std::vector<std::uint64_t> ids_;
  std::size_t next_ = 0;
  std::uint64_t lastId_ = 1 << 20;
};

bool isSound(benchmark::State &state, const Table &table, const Batch &batch) {
  if (batch.size() > 256)
    return true;
  if (const auto verified = batch.forest().verify(table.entries()); !verified) {
    state.SkipWithError(verified.error().message.c_str());
    return false;
  }
  return true;
}

bool isDone(benchmark::State &state, const support::Result<void> &done) {
  if (!done)
    state.SkipWithError(done.error().message.c_str());
  return done.ok();
}

void count(benchmark::State &state, const Table &table, const Batch &batch) {
  state.counters["pages"] = static_cast<double>(table.pages());
  state.counters["nodes"] = batch.tree().aliveNodes();
}

void benchScratch(benchmark::State &state, Shape shape, bool hasIds) {
  const Table table(shape, static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  // A batch is emptied outside of the time; its memory stays, as in an engine that has run for long.
  Batch batch(PageSize(kPageSize), false);
  const Requests requests = hasIds ? table.requests() : table.withoutIds();
  if (!isDone(state, batch.update(requests)) || !isSound(state, table, batch))
    return;
  count(state, table, batch);
  for (auto step : state) {
    state.PauseTiming();
    (void)batch.update({.table = table.table()});
    state.ResumeTiming();
    benchmark::DoNotOptimize(batch.update(requests));
  }
}

void benchGrow(benchmark::State &state, Shape shape) {
  Table table(shape, static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  Batch batch(PageSize(kPageSize), false);
  if (!isDone(state, batch.update(table.requests())))
    return;
  count(state, table, batch);
  for (auto step : state) { // the lengths are counted up in the time, too: less than it takes to stop it
    if (!table.grow()) {
      state.PauseTiming();
      table.shrink();
      (void)batch.update(table.requests());
      state.ResumeTiming();
    }
    if (!isDone(state, batch.grow(table.table(), table.lengths())))
      return;
  }
  (void)isSound(state, table, batch);
}

void benchExchange(benchmark::State &state, Shape shape, bool hasIds) {
  Table table(shape, static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  Batch batch(PageSize(kPageSize), false);
  const auto update = [&] { return batch.update(hasIds ? table.requests() : table.withoutIds()); };
  if (!isDone(state, update()))
    return;
  count(state, table, batch);
  for (auto step : state) {
    state.PauseTiming();
    table.exchange();
    state.ResumeTiming();
    if (!isDone(state, update()))
      return;
  }
  (void)isSound(state, table, batch);
}

void registerAll() {
  const std::pair<const char *, Shape> shapes[] = {
      {"none", none}, {"one_prompt", onePrompt}, {"prompts", prompts}, {"trunk", trunk}, {"equal", equal}};
  const auto addSizes = [](benchmark::internal::Benchmark *bench) {
    bench->Args({256, 512})->Args({1024, 256})->Args({4096, 256})->Unit(benchmark::kMicrosecond);
  };
  for (const auto &[name, shape] : shapes) {
    const std::string of = std::string("/") + name;
    addSizes(benchmark::RegisterBenchmark(("scratch" + of).c_str(), benchScratch, shape, true));
    addSizes(benchmark::RegisterBenchmark(("scratch_without_ids" + of).c_str(), benchScratch, shape, false));
    addSizes(benchmark::RegisterBenchmark(("grow" + of).c_str(), benchGrow, shape));
    addSizes(benchmark::RegisterBenchmark(("exchange" + of).c_str(), benchExchange, shape, true));
    addSizes(
        benchmark::RegisterBenchmark(("exchange_without_ids" + of).c_str(), benchExchange, shape, false));
  }
}

} // namespace
} // namespace deft::sharing

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 2;
  deft::sharing::registerAll();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
