#pragma once

#include "runtime/exec/Params.h"
#include "runtime/program/Program.h"
#include "tools/deftc/common/Context.h"

#include <string>
#include <vector>

namespace deft::cli {

/// Adds SPEC and --variant, the arguments of openProgram.
void addProgramOptions(CLI::App &command, std::string &path, std::string &variantName);

/// The program for `run`. `path` is a spec, the name of a shipped spec, or a package; `path#name` chooses a
/// variant, like `variantName`. Diagnostics go to `context.err`.
support::Result<program::Program> openProgram(Context &context, std::string path, std::string variantName);

/// Registers the files that --param names as inputs of the command.
support::Result<void> readsParams(Context &context, const std::vector<std::string> &assignments);

/// The values of --param.
support::Result<std::vector<exec::ParamValue>> openParams(Context &context, const spec::Variant &variant,
                                                          const std::vector<std::string> &assignments);

} // namespace deft::cli
