#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/Inputs.h"
#include "runtime/exec/Selection.h"
#include "runtime/exec/cpu/ScaledRows.h"
#include "runtime/exec/cpu/Team.h"
#include "runtime/exec/cpu/TokenBlocks.h"
#include "runtime/plan/Paths.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <span>
#include <vector>

namespace deft::exec {

/// One sparse layer: what all of its units read and where they write.
struct SparseStep {
  const abi::CpuKernel &kernel;
  const spec::Variant &variant;
  const Selection &selection;
  const plan::Paths
      &paths; ///< of the plan that selected; of lists of slots only the queries' positions count
  const InputView &inputs;
  const OutputView &outputs;

  /// A unit is the rows of a query that read the same tokens of one KV head.
  int unitRows() const { return variant.select->by == spec::SelectBy::QueryHead ? 1 : variant.ratio(); }
  int unitsPerQuery() const { return variant.queryHeads / unitRows(); }
  std::span<const std::int32_t> listOf(int query, int unit) const {
    return selection.of(query, variant.listOf(unit * unitRows()));
  }
  /// Lists are cut by as many tokens whoever else is there and however many threads, so that a query's bits
  /// follow from its own list.
  int partsOf(int query, int unit) const;
};

/// Results of parts of lists, until a query's are merged: [slot][query head][column], [slot][query head].
struct SparsePartials {
  float *out;
  float *lse;
  int firstSlot; ///< of the query's first part
};

/// Attends to the tokens of lists, with the kernels of full attention, in memory of its own. One per thread.
class SparseRunner {
public:
  /// For lists of so many parts, or fewer.
  void prepare(const SparseStep &step, int parts);
  /// Unit `unit` of those of a query, from q to the output.
  void attend(int query, int unit);
  /// A part of the unit's list, one of several, into its slot.
  void attendPart(int query, int unit, int part, const SparsePartials &partials);
  /// From all parts' results to the output.
  void merge(int query, int unit, const SparsePartials &partials);

private:
  /// A list's tokens, one after the other, and the stretch of the path that each is in.
  struct Walk {
    std::span<const std::int32_t> list;
    std::span<const plan::PathStretch> path;
    std::size_t token = 0, stretch = 0;
  };
  struct RowOutput {
    std::uint16_t *out;
    float *lse; ///< null: not wanted
  };
  /// To the state of the unit's rows, which is new.
  void addTokens(int query, int unit, std::span<const std::int32_t> list);
  abi::CpuFinishCall finishOf(int query, int unit) const;
  RowOutput outputOf(int query, int unit) const;
  void loadRows(int query, int firstHead, int rows);
  /// Where a token of a block lies and stands.
  struct Place {
    long long key, value, slot;
    int position, depth;
  };
  void add(TokenBlock &block, const Place &place, int rows) const;
  /// False behind the last token.
  bool fill(TokenBlock &block, Walk &walk, int rows) const;

  const SparseStep *step_ = nullptr;
  std::array<TokenBlock, 2> blocks_; ///< the one at hand and the one behind it
  ScaledRows scaled_;
  std::vector<int> qPos_, query_, head_;
  std::vector<std::byte> packed_;
  std::vector<float> acc_, m_, l_;
  std::vector<float> partialOut_, partialLse_; ///< of one query's parts
  std::vector<int> slots_;
};

/// Memory of a job, which grows to the largest and stays.
struct SparseScratch {
  std::vector<SparseRunner> runners; ///< one a thread
  std::vector<float> partialOut, partialLse;
  std::vector<int> partsLeft; ///< of each query's units
};

/// All parts of a sparse layer's lists, taken one by one by whoever is free; who does the last one of a list
/// merges it. Parts at one place in the lists of a KV head follow each other: queries whose lists share
/// tokens find them in a cache near by.
class SparseJob final : public Team::Job {
public:
  SparseJob(const SparseStep &step, SparseScratch &scratch);
  int helpers() const;
  void run(int slot) noexcept override;

private:
  int pieces() const { return units_ * parts_ * queries_; }
  void attend(SparseRunner &runner, int piece);

  const SparseStep &step_;
  SparseScratch &scratch_;
  const int queries_, units_; ///< units of a query
  int parts_;                 ///< of the longest list; 1: whole lists are taken
  std::atomic<int> next_ = 0;
};

} // namespace deft::exec
