#pragma once

#include "compiler/support/Result.h"
#include "runtime/capture/Step.h"

#include <string>
#include <string_view>

/// Captured steps on disk: JSON that people can read.
namespace deft::capture {

/// Equal steps give equal text.
std::string formatStep(const Step &step);

/// Reads strictly, as tree files are read: an unknown key, a missing one or a number out of range is an error
/// that names it. What is read can be replayed as far as numbers decide it.
support::Result<Step> parseStep(std::string_view text);

/// The same of a file. A file of another kind is an error that says which kind it is.
support::Result<Step> readStep(const std::string &path);

} // namespace deft::capture
