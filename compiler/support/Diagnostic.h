#pragma once

#include "compiler/support/Source.h"

#include <string>
#include <vector>

namespace deft::support {

enum class Severity { Error, Warning };

/// A place that explains a diagnostic: an inherited definition, the `{` of an unclosed block.
struct DiagnosticNote {
  SourceRange range;
  std::string message;
};

/// One finding. Messages are lower case, have no final period and state the observed value and the limit.
struct Diagnostic {
  Severity severity = Severity::Error;
  SourceRange range;
  std::string message;
  std::string hint; ///< empty: none
  std::vector<DiagnosticNote> notes;

  Diagnostic &withHint(std::string text) {
    hint = std::move(text);
    return *this;
  }
  Diagnostic &withNote(SourceRange where, std::string text) {
    notes.push_back({where, std::move(text)});
    return *this;
  }
};

/// Collects the findings of a compilation. It is passed to functions, never global.
class DiagnosticSink {
public:
  /// A broken file can have an error per byte; readers need only the first ones.
  static constexpr std::size_t kMaxKept = 50;

  /// The reference is valid until the next report. Beyond kMaxKept it refers to a value that is discarded.
  Diagnostic &report(Diagnostic diagnostic);
  Diagnostic &error(SourceRange range, std::string message) {
    return report({Severity::Error, range, std::move(message), {}, {}});
  }
  Diagnostic &warning(SourceRange range, std::string message) {
    return report({Severity::Warning, range, std::move(message), {}, {}});
  }

  const std::vector<Diagnostic> &diagnostics() const { return diagnostics_; }
  std::size_t errorCount() const { return errorCount_; }
  bool hasErrors() const { return errorCount_ > 0; }
  std::size_t suppressedCount() const { return suppressedCount_; }
  /// Sorts by file and position; findings at one position keep their order.
  void sortByPosition();

private:
  std::vector<Diagnostic> diagnostics_;
  Diagnostic discarded_;
  std::size_t errorCount_ = 0;
  std::size_t suppressedCount_ = 0;
};

} // namespace deft::support
