#pragma once

#include "runtime/exec/Inputs.h"
#include "runtime/tree/CachePlacement.h"

#include <cstdint>

namespace deft::exec {

/// Seeded q, k and v of about unit normal distribution, each in its dtype, for a tree that lies in
/// `placement`. A token's values follow from the seed, its node and its place in the node alone: another
/// placement or page size moves them and changes nothing else. Slots that belong to no token hold NaN,
/// so that a kernel which reads them shows it. Any number of threads gives the same values.
Inputs makeRandomInputs(const spec::Variant &variant, const tree::KvTree &tree,
                        const tree::CachePlacement &placement, std::vector<ParamValue> params,
                        std::uint64_t seed, int threads = 1);

} // namespace deft::exec
