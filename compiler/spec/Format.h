#pragma once

#include "compiler/support/Diagnostic.h"
#include "compiler/support/SourceManager.h"

#include <optional>
#include <string>

namespace deft::spec {

/// A spec's text in its standard form: two columns of indentation per block, four more for continued lines,
/// at most one blank between tokens, aligned `=` in neighbouring definitions, at most one empty line. Line
/// breaks, comments and tokens do not change. None: the text has characters that begin no token, which `sink`
/// reports.
std::optional<std::string> formatSpec(const support::SourceManager &sources, std::uint32_t file,
                                      support::DiagnosticSink &sink);

} // namespace deft::spec
