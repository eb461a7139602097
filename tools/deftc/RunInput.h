#pragma once

#include "runtime/jit/Program.h"
#include "tools/deftc/Context.h"

#include <string>

namespace deft::cli {

/// Adds SPEC and --variant, for openProgram.
void addProgramOptions(CLI::App &command, std::string &path, std::string &variantName);

/// What `run` runs. `path` is a spec, the name of a shipped spec, or a package; `path#name` chooses a
/// variant, as `variantName` does. Diagnostics go to `context.err`.
support::Result<jit::Program> openProgram(Context &context, std::string path, std::string variantName);

} // namespace deft::cli
