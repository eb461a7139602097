#pragma once

#include "compiler/support/Diagnostic.h"
#include "runtime/program/LoadedSpec.h"
#include "tools/deftc/common/Context.h"

#include <memory>
#include <string>

namespace deft::cli {

using program::LoadedSpec;

inline constexpr char kHowToChoose[] = "choose one with --variant";

/// Only the text, from the file that loadSpec would read.
support::Result<spec::ImportedFile> readSpecText(Context &context, const std::string &path);

/// Reads and checks a spec. `path` is a file, the name of a shipped spec (`llama3_8b`) if there is no such
/// file, or `-` for the input. Diagnostics go to `context.err`; the error then has no message (see
/// reportError).
support::Result<std::shared_ptr<LoadedSpec>> loadSpec(Context &context, const std::string &path);

/// The same, but also accepts a file with only functions, which has no variants.
support::Result<std::shared_ptr<LoadedSpec>> loadSpecFile(Context &context, const std::string &path);

/// Leaves the diagnostics to the caller, who asks `sink` whether the spec is correct.
support::Result<std::shared_ptr<LoadedSpec>> checkSpecFile(Context &context, const std::string &path,
                                                           support::DiagnosticSink &sink);

/// Splits `path#name`, which chooses an attention like `--variant name`.
support::Result<void> splitName(std::string &path, std::string &name);

/// The variant with this name; for an empty name, the file's only variant.
support::Result<const spec::Variant *> chooseVariant(const LoadedSpec &spec, const std::string &name);

} // namespace deft::cli
