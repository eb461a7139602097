#pragma once

#include "runtime/reference/Evaluate.h"

namespace deft::test {

/// A boolean expression as the language means it, f32 by f32: independent of the IR, for comparing with it.
/// The oracle's evaluator computes in float64, where a comparison at the edge may fall otherwise.
bool evaluateBool(const spec::Variant &variant, const exec::Inputs &inputs, spec::ExprId root,
                  const reference::Site &site);

} // namespace deft::test
