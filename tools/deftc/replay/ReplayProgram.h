#pragma once

#include "tools/deftc/replay/ReplayStep.h"

#include <string>
#include <vector>

namespace deft::cli {

/// A program of its own that plans the step and runs it on this machine's processor, with random values: what
/// somebody needs who is to look at it without the program that it came from. A spec that imports files which
/// are not shipped is an error.
support::Result<std::string> cppProgram(const ReplayStep &step, const std::vector<exec::ParamValue> &params);
support::Result<std::string> pythonProgram(const ReplayStep &step,
                                           const std::vector<exec::ParamValue> &params);

} // namespace deft::cli
