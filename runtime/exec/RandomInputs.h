#pragma once

#include "runtime/exec/Inputs.h"
#include "runtime/tree/CachePlacement.h"

#include <cstdint>

namespace deft::exec {

/// Random q, k and v, about normally distributed, each in its dtype, for a tree that lies in `placement`. A
/// token's values depend only on the seed, its node and its place in the node: with another placement or page
/// size they move but do not change. Slots without a token hold NaN, so that a kernel which reads them fails
/// visibly. The number of threads does not change the values.
Inputs makeRandomInputs(const spec::Variant &variant, const tree::KvTree &tree,
                        const tree::CachePlacement &placement, std::vector<ParamValue> params,
                        std::uint64_t seed, int threads = 1);

} // namespace deft::exec
