#pragma once

#include "compiler/support/Result.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace deft::exec {

/// The header of a .npy file: a Python dict with three keys, after a magic string and its length.
struct NpyHeader {
  std::string type;  ///< as in the file: "'<f4'"
  std::string shape; ///< likewise: "(4, 8)"
  bool isFortran = false;
  std::size_t dataBegin = 0; ///< byte of the first value
};

/// `bytes` must contain the whole header, and may end anywhere after it.
support::Result<NpyHeader> parseNpyHeader(std::string_view bytes);

/// "(4, 8)" as numbers; none if the text is not a shape.
std::optional<std::vector<long long>> lengthsOf(std::string_view shape);
/// The reverse, in the form of Python: "(4,)".
std::string shapeText(const std::vector<long long> &lengths);

/// The beginning of untrusted bytes for a message, without control characters.
std::string quotedNpy(std::string_view text);

} // namespace deft::exec
