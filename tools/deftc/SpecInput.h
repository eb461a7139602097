#pragma once

#include "compiler/spec/Variant.h"
#include "compiler/support/SourceManager.h"
#include "tools/deftc/Context.h"

#include <memory>
#include <string>
#include <vector>

namespace deft::cli {

/// A spec file that passed `check`. `sources` is kept because the variants' ranges point into it.
struct LoadedSpec {
  support::SourceManager sources;
  std::uint32_t file = 0;
  std::string path;
  std::vector<spec::Variant> variants; ///< at least one, in the order of the file

  std::string_view text() const { return sources.text(file); }
};

/// Reads and checks a spec. `path` is a file, or the name of a shipped spec (`llama3_8b`) when no such file
/// exists. Diagnostics go to `context.err`; the error is then without a message (see reportError).
support::Result<std::shared_ptr<LoadedSpec>> loadSpec(Context &context, const std::string &path);

/// The same, but a file of functions only is right, and has no variants.
support::Result<std::shared_ptr<LoadedSpec>> loadSpecFile(Context &context, const std::string &path);

/// The variant called `name`; with an empty name the only one of the file.
support::Result<const spec::Variant *> chooseVariant(const LoadedSpec &spec, const std::string &name);

} // namespace deft::cli
