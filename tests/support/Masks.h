#pragma once

#include "compiler/spec/Variant.h"

#include <string>
#include <vector>

/// Masks like those of models, to test how plans handle them.
namespace deft::test {

struct NamedMask {
  std::string name;
  spec::Variant variant; ///< a small attention with the mask
};

/// Windows, sinks, chunks, switches and ends, with small numbers.
std::vector<NamedMask> modelMasks();

/// One to three intervals of kv_pos, with ends at distances from the query, at positions or at blocks:
/// windows, sinks, bands and gaps between them. One third have the bound `path`.
spec::Variant randomBands(unsigned seed);

/// A mask that is any expression of the language; one third have the bound `path`. Equal seeds give equal
/// masks on all platforms.
spec::Variant randomMask(unsigned seed);

} // namespace deft::test
