#pragma once

#include "compiler/support/Diagnostic.h"
#include "compiler/support/SourceManager.h"

#include <string>

namespace deft::support {

struct RenderOptions {
  bool colour = false; ///< ANSI colours; the caller knows whether a terminal reads
};

/// The text a user sees: place, severity and message, the line with carets under the range, the hint,
/// then the notes in the same form. Ends with a newline.
std::string renderDiagnostic(const SourceManager &sources, const Diagnostic &diagnostic,
                             RenderOptions options = {});

/// All of a sink's findings in their order, and a last line that counts those that were not kept.
std::string renderDiagnostics(const SourceManager &sources, const DiagnosticSink &sink,
                              RenderOptions options = {});

} // namespace deft::support
