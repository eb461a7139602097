#pragma once

#include "templates/deft/abi.h"
#include "templates/deft/draft_abi.h"

#include <cstddef>
#include <vector>

namespace deft::plan {

/// A request's drafts in the order of their places: depth-first, siblings by their numbers.
struct DraftPlaces {
  std::vector<int> draft; ///< at each place
  std::vector<int> size;  ///< of the subtree that begins at each place
  std::vector<int> depth; ///< below the request's tokens, from 0
  int wrong = -1;         ///< a draft whose row is not that of a tree; then each draft sees only itself
};

/// For `count` drafts, from the first of their rows on. A row has (rows + 31) / 32 words; bits of drafts
/// beyond `count` are ignored.
DraftPlaces placesOf(const unsigned *bits, int count, int rows);

/// Does on the host what deft_draft_plan does on a device (templates/deft/plan_drafts.cuh), byte by byte.
void placeDrafts(const abi::DraftArgs &args);

} // namespace deft::plan
