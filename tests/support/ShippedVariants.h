#pragma once

#include "compiler/spec/Variant.h"
#include "compiler/support/SourceManager.h"

#include <vector>

namespace deft::test {

/// Every variant of every shipped spec, and the sources that their ranges refer to.
struct ShippedVariants {
  support::SourceManager sources;
  std::vector<spec::Variant> variants;
};

/// Throws std::runtime_error with the diagnostics if a shipped spec is wrong.
ShippedVariants shippedVariants();

} // namespace deft::test
