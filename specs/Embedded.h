#pragma once

#include "compiler/spec/CompileSpec.h"

#include <string>
#include <string_view>
#include <vector>

/// The shipped specs and the library, kept in the binary so that an installed deftc needs no files beside it.
namespace deft::specs {

struct EmbeddedSpec {
  std::string_view name; ///< of the file, without `.deft`
  std::string_view text;
};

/// By name; the library is the one called `library`.
const std::vector<EmbeddedSpec> &embeddedSpecs();

/// None: nullptr. `name` with or without `.deft`.
const EmbeddedSpec *findEmbeddedSpec(std::string_view name);

/// LANGUAGE.md, as it was when this was built.
std::string_view languageText();

/// What a diagnostic calls the file of a shipped spec.
std::string embeddedFileName(const EmbeddedSpec &spec);

/// Finds an import beside the importing file first, then among the shipped specs. A file that does not lie in
/// `folder` or below, its links resolved, is an error. Without a folder only shipped specs are found.
spec::ImportResolver importResolver(std::string folder = "");

/// For imports of the spec in this file: within its folder.
spec::ImportResolver importResolverOf(const std::string &specFile);

} // namespace deft::specs
