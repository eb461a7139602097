#pragma once

#include "compiler/spec/Variant.h"
#include "compiler/support/SourceManager.h"

#include <vector>

namespace deft::test {

/// Every variant of every shipped spec, with the sources that its ranges point into.
struct ShippedVariants {
  support::SourceManager sources;
  std::vector<spec::Variant> variants;
};

/// Throws std::runtime_error with the diagnostics when a shipped spec is wrong.
ShippedVariants shippedVariants();

} // namespace deft::test
