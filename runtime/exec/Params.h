#pragma once

#include "compiler/support/Result.h"
#include "runtime/exec/Inputs.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace deft::exec {

/// Gives every parameter of the variant its value. An assignment is `name=30`, `name=FILE.npy` or, for an
/// array, `name=0.1`: the same value for each head. Unassigned scalars take their defaults; unassigned arrays
/// over tokens and queries stay empty, which means random values (SizedParams.h).
support::Result<std::vector<ParamValue>> bindParams(const spec::Variant &variant,
                                                    const std::vector<std::string> &assignments);

/// The same, but parameters with neither an assignment nor a default stay empty.
support::Result<std::vector<ParamValue>> bindKnownParams(const spec::Variant &variant,
                                                         const std::vector<std::string> &assignments);

/// The index of the parameter with this name; the error lists the existing names.
support::Result<std::size_t> paramIndex(const spec::Variant &variant, const std::string &name);

/// How many values a parameter has; 0: one for each token or query of a run.
int paramLength(const spec::Variant &variant, const spec::Param &param);

/// The index of the first value that parameters must not have: infinity or NaN.
std::optional<std::size_t> firstNotFinite(std::span<const float> values);

/// The type as the language writes it: "f32", "f32[query_heads]".
std::string paramTypeName(const spec::Param &param);

} // namespace deft::exec
