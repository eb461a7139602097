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

/// One sparse layer: the inputs and outputs of all its units.
struct SparseStep {
  const abi::CpuKernel &kernel;
  const spec::Variant &variant;
  const Selection &selection;
  const plan::Paths
      &paths; ///< of the plan that selected; of lists of slots only the queries' positions count
  const InputView &inputs;
  const OutputView &outputs;

  /// A unit has the rows of one query that read the same tokens of one KV head.
  int unitRows() const { return variant.select->by == spec::SelectBy::QueryHead ? 1 : variant.ratio(); }
  int unitsPerQuery() const { return variant.queryHeads / unitRows(); }
  std::span<const std::int32_t> listOf(int query, int unit) const {
    return selection.of(query, variant.listOf(unit * unitRows()));
  }
  /// The number of parts of a list. It depends only on the list, not on other queries or the number of
  /// threads, so the bits of a query's result do not either.
  int partsOf(int query, int unit) const;
};

/// Results of parts of lists, until they are merged: [slot][query head][column], [slot][query head].
struct SparsePartials {
  float *out;
  float *lse;
  int firstSlot; ///< of the first part of the query
};

/// Attends to listed tokens with the kernels of full attention, in memory of its own. One per thread.
class SparseRunner {
public:
  /// Prepares for lists of up to `parts` parts.
  void prepare(const SparseStep &step, int parts);
  /// Computes one unit of a query completely, from q to the output.
  void attend(int query, int unit);
  /// Computes one of several parts of the unit's list and writes the result to its slot.
  void attendPart(int query, int unit, int part, const SparsePartials &partials);
  /// Merges the results of all parts into the output.
  void merge(int query, int unit, const SparsePartials &partials);

private:
  /// The position of a walk over the tokens of a list, and the stretch of the path that contains the token.
  struct Walk {
    std::span<const std::int32_t> list;
    std::span<const plan::PathStretch> path;
    std::size_t token = 0, stretch = 0;
  };
  struct RowOutput {
    std::uint16_t *out;
    float *lse; ///< null: not wanted
  };
  /// Adds the tokens to the state of the unit's rows, which starts empty.
  void addTokens(int query, int unit, std::span<const std::int32_t> list);
  abi::CpuFinishCall finishOf(int query, int unit) const;
  RowOutput outputOf(int query, int unit) const;
  void loadRows(int query, int firstHead, int rows);
  /// The places of a token of a block in the caches, and its position.
  struct Place {
    long long key, value, slot;
    int position, depth;
  };
  void add(TokenBlock &block, const Place &place, int rows) const;
  /// False after the last token.
  bool fill(TokenBlock &block, Walk &walk, int rows) const;

  const SparseStep *step_ = nullptr;
  std::array<TokenBlock, 2> blocks_; ///< the current block and the next
  ScaledRows scaled_;
  std::vector<int> qPos_, query_, head_;
  std::vector<std::byte> packed_;
  std::vector<float> acc_, m_, l_;
  std::vector<float> partialOut_, partialLse_; ///< for the parts of one query
  std::vector<int> slots_;
};

/// Memory of a job; it grows to the size of the largest job.
struct SparseScratch {
  std::vector<SparseRunner> runners; ///< one for each thread
  std::vector<float> partialOut, partialLse;
  std::vector<int> partsLeft; ///< for each unit of each query
};

/// All parts of a sparse layer's lists. Each free thread takes the next part; the thread that finishes the
/// last part of a list merges it. Equal parts of the lists of one KV head are consecutive: if queries' lists
/// share tokens, they find them in a near cache.
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
  const int queries_, units_; ///< units of one query
  int parts_;                 ///< of the longest list; 1: whole lists are taken
  std::atomic<int> next_ = 0;
};

} // namespace deft::exec
