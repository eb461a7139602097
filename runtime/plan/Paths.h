#pragma once

#include "runtime/plan/Plan.h"

#include <span>
#include <vector>

namespace deft::plan {

/// Consecutive tokens of a query's path that are also consecutive in the page table.
struct PathStretch {
  int position; ///< kv_pos of the first token
  int tokens;
  int location; ///< of the first token, as in abi::Run
  int depth;

  bool operator==(const PathStretch &) const = default;
};

/// The path of each query, reassembled from the items of a plan. It tells where the tokens of each query lie,
/// without those that a mask hides from every query that could see them. Queries are numbered by the caller's
/// index.
class Paths {
public:
  Paths() = default;
  /// Reads another plan and reuses the memory.
  void read(const Plan &plan);

  int queryCount() const { return static_cast<int>(queryPos_.size()); }
  /// Sorted by position. The next stretch may continue at the next position in another node, or skip tokens
  /// that a mask hides.
  std::span<const PathStretch> of(int query) const {
    const auto at = static_cast<std::size_t>(query);
    return std::span(stretches_)
        .subspan(static_cast<std::size_t>(begin_[at]), static_cast<std::size_t>(begin_[at + 1] - begin_[at]));
  }
  int queryPos(int query) const { return queryPos_[static_cast<std::size_t>(query)]; }
  /// The first query that sees several tokens at one position, as drafts with given depths may; -1: none.
  int firstAmbiguous() const;
  /// The end of the longest path: one more than its last position.
  int longest() const { return longest_; }

private:
  std::vector<PathStretch> stretches_;
  std::vector<int> begin_; ///< of each query, in stretches_
  std::vector<int> queryPos_;
  std::vector<int> next_; ///< of each query: where to write its next stretch
  int longest_ = 0;
};

} // namespace deft::plan
