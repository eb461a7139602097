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

/// A spec after the front end. It keeps `sources`, because the variants' ranges refer to it.
struct LoadedSpec {
  support::SourceManager sources;
  std::uint32_t file = 0;
  std::string path;
  std::vector<spec::Variant> variants; ///< in the order of the file; empty if its check reported errors

  std::string_view text() const { return sources.text(file); }
};

/// Reads the file or, if there is none, the shipped spec of that name (`llama3_8b`).
support::Result<spec::ImportedFile> readSpec(const std::string &path);

/// Runs the front end; findings go to `sink`.
std::shared_ptr<LoadedSpec> checkSpec(spec::ImportedFile file, const spec::ImportResolver &resolver,
                                      support::DiagnosticSink &sink);

/// Runs the front end on the spec inside a package: reading the spec again is cheaper than keeping a second
/// form of it consistent. Findings are in the error's message.
support::Result<std::shared_ptr<LoadedSpec>> loadPackagedSpec(const package::Package &package,
                                                              const std::string &path);

/// The variant with this name; for an empty name, the file's only variant. If there are several, the hint
/// begins with `howToChoose`: "choose one with --variant".
support::Result<const spec::Variant *> chooseVariant(const LoadedSpec &spec, const std::string &name,
                                                     const std::string &howToChoose);

} // namespace deft::program
