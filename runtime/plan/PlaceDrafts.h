#pragma once

#include "templates/deft/abi.h"
#include "templates/deft/draft_abi.h"

#include <cstddef>
#include <vector>

namespace deft::plan {

/// A request's drafts by their places: depth-first, siblings in the order of their numbers.
struct DraftPlaces {
  std::vector<int> draft; ///< at each place
  std::vector<int> size;  ///< of the subtree that begins there
  std::vector<int> depth; ///< below the request's tokens: 0 at first
  int wrong = -1;         ///< a draft whose row is not that of a tree: each then sees itself alone
};

/// Of drafts, so many, from the first of their rows on, each of (rows + 31) / 32 words; bits of drafts beyond
/// `count` say nothing.
DraftPlaces placesOf(const unsigned *bits, int count, int rows);

/// On the host what deft_draft_plan does on a device (templates/deft/plan_drafts.cuh), byte by byte.
void placeDrafts(const abi::DraftArgs &args);

} // namespace deft::plan
