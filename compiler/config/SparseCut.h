#pragma once

namespace deft::config {

/// Into how large items lists of a budget are best cut where so many queries read them, as somebody has
/// measured it.
struct SparseCut {
  int budget = 0;
  int queries = 0;
  int itemTokens = 0; ///< 0: as without measuring

  bool operator==(const SparseCut &) const = default;
};

} // namespace deft::config
