#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/Inputs.h"

#include <cstdint>

namespace deft::test {

/// The same inputs in an engine's layout: gaps between the rows of q; for K and V separate layouts, with
/// either the heads of a token or the tokens of a head consecutive, and gaps behind each vector, which may
/// hold the other tensor's. Gaps contain NaN. All strides are multiples of 16.
exec::Inputs spreadInputs(const spec::Variant &variant, exec::Inputs inputs, std::uint64_t seed);

} // namespace deft::test
