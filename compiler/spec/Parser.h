#pragma once

#include "compiler/spec/Ast.h"
#include "compiler/support/Diagnostic.h"
#include "compiler/support/SourceManager.h"

namespace deft::spec {

/// Parses a file of `sources`. Continues after errors, so one run reports several; items that could not be
/// parsed are missing in the result. Appends expressions to `arena`.
AstFile parse(const support::SourceManager &sources, std::uint32_t file, AstArena &arena,
              support::DiagnosticSink &sink);

} // namespace deft::spec
