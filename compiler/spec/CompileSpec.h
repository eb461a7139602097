#pragma once

#include "compiler/spec/Variant.h"
#include "compiler/support/Diagnostic.h"
#include "compiler/support/Result.h"
#include "compiler/support/SourceManager.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace deft::spec {

struct ImportedFile {
  std::string name; ///< its name in diagnostics; imports with equal names are one file
  std::string text;
};

/// Finds the file that `importer` (a name in the SourceManager) imports as `path`.
using ImportResolver =
    std::function<support::Result<ImportedFile>(const std::string &importer, const std::string &path)>;

/// The variants that `file` itself defines, in its order. Empty if there is an error, or if the file has only
/// functions. Attentions of imported files can be bases, but are not compiled. Diagnostics go to `sink`,
/// sorted by position.
std::vector<Variant> compileSpec(support::SourceManager &sources, std::uint32_t file,
                                 const ImportResolver &resolver, support::DiagnosticSink &sink);

} // namespace deft::spec
