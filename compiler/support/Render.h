#pragma once

#include "compiler/support/Diagnostic.h"
#include "compiler/support/SourceManager.h"

#include <string>

namespace deft::support {

struct RenderOptions {
  bool colour = false; ///< ANSI colours; the caller knows whether the output is a terminal
};

/// The text for the user: place, severity and message, the line with carets below the range, the hint, and
/// the notes in the same form. Ends with a newline.
std::string renderDiagnostic(const SourceManager &sources, const Diagnostic &diagnostic,
                             RenderOptions options = {});

/// All findings of a sink in their order, and a last line with the number of those that were dropped.
std::string renderDiagnostics(const SourceManager &sources, const DiagnosticSink &sink,
                              RenderOptions options = {});

} // namespace deft::support
