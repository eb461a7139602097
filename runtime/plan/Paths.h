#pragma once

#include "runtime/plan/Plan.h"

#include <span>
#include <vector>

namespace deft::plan {

/// Consecutive tokens of a query's path that lie side by side in the page table.
struct PathStretch {
  int position; ///< kv_pos of the first token
  int tokens;
  int location; ///< of the first token, as abi::Run's
  int depth;

  bool operator==(const PathStretch &) const = default;
};

/// The path of each query, put together again from what a plan's items read: where the tokens of a query lie
/// that it sees, without those that a mask hides from all who could see them. Queries are named by the
/// caller's index.
class Paths {
public:
  Paths() = default;
  /// Anew, in the memory that there is.
  void read(const Plan &plan);

  int queryCount() const { return static_cast<int>(queryPos_.size()); }
  /// By rising positions. Where a stretch ends the next one may go on at the next position, in another node,
  /// or leave out what is hidden.
  std::span<const PathStretch> of(int query) const {
    const auto at = static_cast<std::size_t>(query);
    return std::span(stretches_)
        .subspan(static_cast<std::size_t>(begin_[at]), static_cast<std::size_t>(begin_[at + 1] - begin_[at]));
  }
  int queryPos(int query) const { return queryPos_[static_cast<std::size_t>(query)]; }
  /// The first query that sees several tokens at one position, as of drafts whose depths say so; -1: none.
  int firstAmbiguous() const;
  /// Past the last position of any path.
  int longest() const { return longest_; }

private:
  std::vector<PathStretch> stretches_;
  std::vector<int> begin_; ///< of each query, in stretches_
  std::vector<int> queryPos_;
  std::vector<int> next_; ///< of each query: where its next stretch is written
  int longest_ = 0;
};

} // namespace deft::plan
