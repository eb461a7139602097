#pragma once

#include "runtime/exec/Params.h"
#include "runtime/program/Program.h"
#include "tools/deftc/common/Context.h"

#include <string>
#include <vector>

namespace deft::cli {

/// Adds SPEC and --variant, for openProgram.
void addProgramOptions(CLI::App &command, std::string &path, std::string &variantName);

/// What `run` runs. `path` is a spec, the name of a shipped spec, or a package; `path#name` chooses a
/// variant, as `variantName` does. Diagnostics go to `context.err`.
support::Result<program::Program> openProgram(Context &context, std::string path, std::string variantName);

/// Tells the command's files which ones --param names.
support::Result<void> readsParams(Context &context, const std::vector<std::string> &assignments);

/// The values of --param.
support::Result<std::vector<exec::ParamValue>> openParams(Context &context, const spec::Variant &variant,
                                                          const std::vector<std::string> &assignments);

} // namespace deft::cli
