#pragma once

#include "tools/deftc/common/Context.h"
#include "tuner/bench/KernelRows.h"

#include <deque>
#include <span>
#include <string>
#include <vector>

namespace deft::cli {

/// Rows of a user's own attentions and trees: each attention on each tree, without a peer.
class OwnRows {
public:
  /// A spec of several attentions is named as SPEC#NAME.
  static support::Result<OwnRows> make(Context &context, const std::vector<std::string> &specs,
                                       const std::vector<std::string> &workloads,
                                       const std::vector<std::string> &treeFiles);

  std::span<const bench::KernelRow> rows() const { return rows_; }

  /// What a row runs: the spec or package as it was given, and values for what has no default.
  struct Subject {
    std::string spec;
    std::vector<std::string> params;
  };
  const Subject &subjectOf(std::size_t row) const {
    return subjects_[row / (rows_.size() / subjects_.size())];
  }

private:
  std::string_view keep(std::string text) { return texts_.emplace_back(std::move(text)); }

  std::deque<std::string> texts_;      ///< what rows name; stays where it is
  std::vector<bench::KernelRow> rows_; ///< all trees of the first subject, then of the next one
  std::vector<Subject> subjects_;
};

} // namespace deft::cli
