#pragma once

#include "runtime/exec/Inputs.h"
#include "runtime/plan/Reach.h"

#include <vector>

namespace deft::exec {

/// The ranges of the parameters' values that plans depend on, one for each of Variant::params.
plan::ParamRanges rangesOf(const spec::Variant &variant, const std::vector<ParamValue> &values);

/// The positions that the mask can show with these values.
plan::Reach reachOf(const spec::Variant &variant, const std::vector<ParamValue> &values);

} // namespace deft::exec
