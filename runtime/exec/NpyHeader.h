#pragma once

#include "compiler/support/Result.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace deft::exec {

/// What stands before the values of a .npy file: a Python dict of three keys, behind magic and length.
struct NpyHeader {
  std::string type;  ///< as it is written: "'<f4'"
  std::string shape; ///< likewise: "(4, 8)"
  bool isFortran = false;
  std::size_t dataBegin = 0; ///< byte of the first value
};

/// `bytes` may end anywhere behind the header.
support::Result<NpyHeader> parseNpyHeader(std::string_view bytes);

/// "(4, 8)" as numbers; none for what is no shape.
std::optional<std::vector<long long>> lengthsOf(std::string_view shape);
/// The other way round, as Python writes it: "(4,)".
std::string shapeText(const std::vector<long long> &lengths);

/// A stranger's bytes as a message may hold them: few, and none that a terminal obeys.
std::string quotedNpy(std::string_view text);

} // namespace deft::exec
