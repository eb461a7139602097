#include "compiler/support/Diagnostic.h"

#include <algorithm>
#include <tuple>

namespace deft::support {

Diagnostic &DiagnosticSink::report(Diagnostic diagnostic) {
  if (diagnostic.severity == Severity::Error)
    ++errorCount_;
  if (diagnostics_.size() >= kMaxKept) {
    ++suppressedCount_;
    discarded_ = std::move(diagnostic);
    return discarded_;
  }
  diagnostics_.push_back(std::move(diagnostic));
  return diagnostics_.back();
}

void DiagnosticSink::sortByPosition() {
  std::stable_sort(diagnostics_.begin(), diagnostics_.end(), [](const Diagnostic &a, const Diagnostic &b) {
    return std::tie(a.range.file, a.range.begin) < std::tie(b.range.file, b.range.begin);
  });
}

} // namespace deft::support
