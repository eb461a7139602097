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

/// One to three intervals of kv_pos, which end and begin at distances from the query, at positions or at
/// blocks: windows, sinks, bands and gaps between them. The bound of a third is `path`.
spec::Variant randomBands(unsigned seed);

/// Any expression of the language as a mask, in the bounds of a third `path`. The same seed gives the same
/// one everywhere.
spec::Variant randomMask(unsigned seed);

} // namespace deft::test
