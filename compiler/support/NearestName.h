#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace deft::support {

/// The candidate closest to `name` by edits (a swap of neighbours is one), or "" when none is close enough
/// to be what was meant: at most a third of its letters, at least one. Ties go to the first.
std::string nearestName(std::string_view name, const std::vector<std::string> &candidates);

/// "did you mean `x`?", or "" when nothing is near: fit for Diagnostic::hint.
std::string didYouMean(std::string_view name, const std::vector<std::string> &candidates);

} // namespace deft::support
