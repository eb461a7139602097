#pragma once

#include "compiler/spec/Variant.h"

#include <string>
#include <vector>

/// Masks as models have them, for tests of what plans make of them.
namespace deft::test {

struct NamedMask {
  std::string name;
  spec::Variant variant; ///< a small attention with the mask
};

/// Windows, sinks, chunks, switches and ends, of small numbers.
std::vector<NamedMask> modelMasks();

/// Any expression of the language as a mask, in the bounds of a third `path`. The same seed gives the same
/// one everywhere.
spec::Variant randomMask(unsigned seed);

} // namespace deft::test
