#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/Inputs.h"
#include "runtime/exec/Selection.h"
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
  const plan::Paths &paths; ///< of the plan that selected
  const InputView &inputs;
  const OutputView &outputs;

  /// A unit is the rows of a query that read the same tokens of one KV head.
  int unitRows() const { return variant.select->by == spec::SelectBy::QueryHead ? 1 : variant.ratio(); }
  int unitsPerQuery() const { return variant.queryHeads / unitRows(); }
};

/// Attends to the tokens of lists, with the kernels of full attention, in memory of its own. One per thread.
class SparseRunner {
public:
  void prepare(const SparseStep &step);
  /// Unit `unit` of those of a query, from q to the output.
  void attend(int query, int unit);

private:
  /// The list's tokens, one after the other, and the stretch of the path that each is in.
  struct Walk {
    std::span<const std::int32_t> list;
    std::span<const plan::PathStretch> path;
    std::size_t token = 0, stretch = 0;
  };
  void loadRows(int query, int firstHead, int rows);
  /// False behind the last token.
  bool fill(TokenBlock &block, Walk &walk, int rows) const;

  const SparseStep *step_ = nullptr;
  std::array<TokenBlock, 2> blocks_; ///< the one at hand and the one behind it
  std::vector<int> qPos_, query_, head_;
  std::vector<std::byte> packed_;
  std::vector<float> acc_, m_, l_;
};

/// All units of a sparse layer, taken one by one by whoever is free.
class SparseJob final : public Team::Job {
public:
  SparseJob(const SparseStep &step, std::vector<SparseRunner> &runners);
  int helpers() const;
  void run(int slot) noexcept override;

private:
  const SparseStep &step_;
  std::vector<SparseRunner> &runners_;
  const int units_;
  std::atomic<int> next_ = 0;
};

} // namespace deft::exec
