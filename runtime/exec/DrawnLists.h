#pragma once

#include "runtime/exec/Inputs.h"
#include "runtime/exec/Selection.h"
#include "runtime/plan/Paths.h"

#include <cstdint>
#include <vector>

namespace deft::exec {

/// Lists as a caller hands them over, drawn by lot from the tokens of each query's path.
struct DrawnLists {
  Selection selection;             ///< the positions, rising, as who checks a run wants them
  std::vector<std::int32_t> slots; ///< [query][budget], in no order

  GivenLists given() const { return {slots.data(), selection.queries, selection.budget}; }
};

/// Of paths of a plan over these inputs. With `holes` lists have between none and `budget` tokens, and -1
/// between them; else as many as there are.
DrawnLists drawLists(const plan::Paths &paths, const Inputs &inputs, int pageSize, int budget, bool holes,
                     std::uint64_t seed);

} // namespace deft::exec
