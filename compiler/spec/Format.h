#pragma once

#include "compiler/support/Diagnostic.h"
#include "compiler/support/SourceManager.h"

#include <optional>
#include <string>

namespace deft::spec {

/// A spec's text in its usual form: two columns of indentation for each block, four more for a line that goes
/// on, one blank at most around tokens, the `=` of neighbouring definitions in one column, no two empty
/// lines. Lines stay lines, comments and tokens stay as they are. None: the text has characters that no token
/// begins with, and `sink` says which.
std::optional<std::string> formatSpec(const support::SourceManager &sources, std::uint32_t file,
                                      support::DiagnosticSink &sink);

} // namespace deft::spec
