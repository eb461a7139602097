#pragma once

namespace deft::config {

/// The measured best size of the items into which lists of a budget are cut, for a number of queries that
/// read them.
struct SparseCut {
  int budget = 0;
  int queries = 0;
  int itemTokens = 0; ///< 0: as without a measurement

  bool operator==(const SparseCut &) const = default;
};

} // namespace deft::config
