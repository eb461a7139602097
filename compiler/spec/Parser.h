#pragma once

#include "compiler/spec/Ast.h"
#include "compiler/support/Diagnostic.h"
#include "compiler/support/SourceManager.h"

namespace deft::spec {

/// Parses a file of `sources`. Goes on after errors, so that one run reports several; what could not be read
/// is left out of the result. Expressions are added to `arena`.
AstFile parse(const support::SourceManager &sources, std::uint32_t file, AstArena &arena,
              support::DiagnosticSink &sink);

} // namespace deft::spec
