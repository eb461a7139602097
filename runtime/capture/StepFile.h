#pragma once

#include "compiler/support/Result.h"
#include "runtime/capture/Step.h"

#include <string>
#include <string_view>

/// Captured steps on disk, as JSON that people can read.
namespace deft::capture {

/// Equal steps give equal text.
std::string formatStep(const Step &step);

/// Reads strictly, as for tree files: an unknown or missing key, or a number out of range, is an error that
/// names it. As far as numbers can tell, the result can be replayed.
support::Result<Step> parseStep(std::string_view text);

/// The same for a file. For a file of another kind, the error names the kind.
support::Result<Step> readStep(const std::string &path);

} // namespace deft::capture
