#pragma once

#include "compiler/support/Diagnostic.h"
#include "runtime/program/LoadedSpec.h"
#include "tools/deftc/common/Context.h"

#include <memory>
#include <string>

namespace deft::cli {

using program::LoadedSpec;

inline constexpr char kHowToChoose[] = "choose one with --variant";

/// The text alone, as loadSpec finds it.
support::Result<spec::ImportedFile> readSpecText(Context &context, const std::string &path);

/// Reads and checks a spec. `path` is a file, or the name of a shipped spec (`llama3_8b`) when no such file
/// exists, or `-` for what is piped in. Diagnostics go to `context.err`; the error is then without a message
/// (see reportError).
support::Result<std::shared_ptr<LoadedSpec>> loadSpec(Context &context, const std::string &path);

/// Reads and checks a spec, or a file of functions only, which has no variants.
support::Result<std::shared_ptr<LoadedSpec>> loadSpecFile(Context &context, const std::string &path);

/// What checking says is left to the caller, who asks `sink` whether the spec is right.
support::Result<std::shared_ptr<LoadedSpec>> checkSpecFile(Context &context, const std::string &path,
                                                           support::DiagnosticSink &sink);

/// `path#name` names an attention as `--variant name` does.
support::Result<void> splitName(std::string &path, std::string &name);

/// The variant called `name`; with an empty name the only one of the file.
support::Result<const spec::Variant *> chooseVariant(const LoadedSpec &spec, const std::string &name);

} // namespace deft::cli
