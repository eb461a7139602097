#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/Inputs.h"
#include "runtime/plan/Plan.h"
#include "templates/deft/cpu_abi.h"

#include <array>
#include <cstddef>
#include <vector>

namespace deft::exec {

/// One execution of a plan: what all of its units read and where they write.
struct Step {
  const abi::CpuKernel &kernel;
  const spec::Variant &variant;
  const plan::Plan &plan;
  const InputView &inputs;
  const OutputView &outputs;
  float *partialOut; ///< [slot][query_heads][head_dim]
  float *partialLse; ///< [slot][query_heads]
};

/// Runs units of work, one after the other, in memory of its own. One per thread.
class UnitRunner {
public:
  /// Makes ready for the units of a step, which must outlive them. Allocates only where a step is larger than
  /// all before.
  void prepare(const Step &step);

  /// All rows of an item that belong to one KV head, from the queries to the output or the partials.
  void attend(const abi::Item &item, int kvHead);

  /// Entry `index` of the plan's merge map, all heads.
  void merge(int index);

private:
  /// Inclusive bounds of the rows that see a run.
  struct RowBounds {
    int qPosLow, qPosHigh, queryLow, queryHigh;
  };
  void loadRows(const abi::Item &item, int kvHead);
  RowBounds boundsOf(int rowBegin, int rowEnd) const;
  void attendRun(const abi::Run &run, int kvHead);
  void fillOffsets(const abi::Run &run, int begin, int tokens, long long *offsets) const;
  int visibility(const abi::Run &run, const RowBounds &rows, int kvHead, int begin, int tokens) const;
  void finish(const abi::Item &item, int kvHead);

  std::size_t queryHeads() const { return static_cast<std::size_t>(step_->variant.queryHeads); }
  std::size_t headDim() const { return static_cast<std::size_t>(step_->variant.headDim); }

  const Step *step_ = nullptr;
  int ratio_ = 0;
  int rows_ = 0; ///< of the item at hand
  // One entry a row, for the largest item of the plan.
  std::vector<std::byte> packed_;
  std::vector<float> acc_, m_, l_;
  std::vector<int> qPos_, query_, head_;
  std::array<std::vector<long long>, 2> offsets_; ///< of the block at hand and of the next one
};

} // namespace deft::exec
