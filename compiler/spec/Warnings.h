#pragma once

#include "compiler/spec/Variant.h"
#include "compiler/support/Diagnostic.h"
#include "compiler/support/SourceManager.h"

#include <vector>

namespace deft::spec {

/// Reports code that is legal but probably a mistake (rules W1 to W3), unless the line says `// allow W1`.
/// The variants must be those of one file, checked without an error.
void warnOf(const std::vector<Variant> &variants, const support::SourceManager &sources, std::uint32_t file,
            support::DiagnosticSink &sink);

} // namespace deft::spec
