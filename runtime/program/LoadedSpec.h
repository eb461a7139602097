#pragma once

#include "compiler/package/Package.h"
#include "compiler/spec/CompileSpec.h"
#include "compiler/spec/Variant.h"
#include "compiler/support/Diagnostic.h"
#include "compiler/support/Result.h"
#include "compiler/support/SourceManager.h"

#include <memory>
#include <string>
#include <vector>

namespace deft::program {

/// A spec that went through the front end. `sources` is kept because the variants' ranges point into it.
struct LoadedSpec {
  support::SourceManager sources;
  std::uint32_t file = 0;
  std::string path;
  std::vector<spec::Variant> variants; ///< in the order of the file; none when `sink` of its check has errors

  std::string_view text() const { return sources.text(file); }
};

/// The file as named, else the shipped spec of that name (`llama3_8b`).
support::Result<spec::ImportedFile> readSpec(const std::string &path);

/// Runs the front end; what it finds goes to `sink`.
std::shared_ptr<LoadedSpec> checkSpec(spec::ImportedFile file, const spec::ImportResolver &resolver,
                                      support::DiagnosticSink &sink);

/// The spec inside a package goes through the front end again: it says what to compute, and reading it
/// costs less than keeping a second form of it right. Findings are in the error's message.
support::Result<std::shared_ptr<LoadedSpec>> loadPackagedSpec(const package::Package &package,
                                                              const std::string &path);

/// The variant called `name`; with an empty name the only one of the file. `howToChoose` begins the hint
/// where there are several: "choose one with --variant".
support::Result<const spec::Variant *> chooseVariant(const LoadedSpec &spec, const std::string &name,
                                                     const std::string &howToChoose);

} // namespace deft::program
