#pragma once

#include "compiler/support/Result.h"
#include "runtime/exec/Inputs.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace deft::exec {

/// Gives every parameter of the variant its value. An assignment is `name=30`, `name=FILE.npy`, or for
/// an array `name=0.1`, the same value for each head. Scalars that are not assigned take their default;
/// arrays over tokens and queries stay empty, which means random ones (SizedParams.h).
support::Result<std::vector<ParamValue>> bindParams(const spec::Variant &variant,
                                                    const std::vector<std::string> &assignments);

/// Gives those parameters a value that have an assignment or a default; the others' are empty.
support::Result<std::vector<ParamValue>> bindKnownParams(const spec::Variant &variant,
                                                         const std::vector<std::string> &assignments);

/// Which parameter has the name; an error that knows those that there are.
support::Result<std::size_t> paramIndex(const spec::Variant &variant, const std::string &name);

/// How many values a parameter has; 0: as many as a run has tokens or queries.
int paramLength(const spec::Variant &variant, const spec::Param &param);

/// The first value that no parameter may have: kernels may compute with infinity, but nobody is to give one.
std::optional<std::size_t> firstNotFinite(std::span<const float> values);

/// As the language writes it: "f32", "f32[query_heads]".
std::string paramTypeName(const spec::Param &param);

} // namespace deft::exec
