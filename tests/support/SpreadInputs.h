#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/Inputs.h"

#include <cstdint>

namespace deft::test {

/// The same inputs as an engine may have them: rows of q with something between them, and K and V each in a
/// layout of its own, with the heads of a token or the tokens of a head side by side and room behind each
/// vector, for the other one's or for nothing. What is between is NaN. All strides are multiples of 16.
exec::Inputs spreadInputs(const spec::Variant &variant, exec::Inputs inputs, std::uint64_t seed);

} // namespace deft::test
