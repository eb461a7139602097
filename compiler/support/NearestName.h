#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace deft::support {

/// The candidate with the fewest edits from `name` (a swap of neighbours counts as one), or "" if none is
/// close: at most a third of the letters, but at least one. Ties go to the first.
std::string nearestName(std::string_view name, const std::vector<std::string> &candidates);

/// "did you mean `x`?", or "" if no candidate is close; for Diagnostic::hint.
std::string didYouMean(std::string_view name, const std::vector<std::string> &candidates);

} // namespace deft::support
