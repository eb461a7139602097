#pragma once

#include "runtime/exec/Inputs.h"
#include "runtime/exec/Selection.h"
#include "runtime/plan/Paths.h"

#include <cstdint>
#include <vector>

namespace deft::exec {

/// Random lists of tokens from each query's path, in the form in which a caller gives them.
struct DrawnLists {
  Selection selection;             ///< the same tokens as ascending positions, for checks of a run
  std::vector<std::int32_t> slots; ///< [query][budget], in random order

  GivenLists given() const { return {slots.data(), selection.queries, selection.budget}; }
};

/// Draws lists from the paths of a plan over these inputs. With `holes`, a list has between 0 and `budget`
/// tokens, with -1 between them; else it has as many as fit.
DrawnLists drawLists(const plan::Paths &paths, const Inputs &inputs, int pageSize, int budget, bool holes,
                     std::uint64_t seed);

} // namespace deft::exec
