#pragma once

#include "compiler/spec/Ast.h"
#include "compiler/support/Diagnostic.h"

#include <set>
#include <tuple>

namespace deft::spec {

/// How the checker reports to the sink. An inherited expression is checked again for every heir: reports that
/// repeat an earlier one are dropped, and new ones name the heir.
class Reporter {
public:
  explicit Reporter(support::DiagnosticSink &sink) : sink_(sink) {}

  support::Diagnostic &error(support::SourceRange range, const std::string &message) {
    return report(support::Severity::Error, range, message);
  }
  support::Diagnostic &warning(support::SourceRange range, const std::string &message) {
    return report(support::Severity::Warning, range, message);
  }

  /// Call it before checks of `owner` for `heir`, which inherits from it. Equal: nothing is inherited.
  void setInheritance(const AstAttention *owner, const AstAttention *heir) {
    owner_ = owner;
    heir_ = heir;
  }

  /// Call it before the body of a function is expanded for a call. Functions are checked alone first, so any
  /// further finding depends on the call.
  void enterCall(support::SourceRange call) { calls_.push_back(call); }
  void leaveCall() { calls_.pop_back(); }

private:
  support::Diagnostic &report(support::Severity severity, support::SourceRange range,
                              const std::string &message) {
    if (!said_.emplace(range.file, range.begin, range.end, message).second) {
      discarded_ = {};
      return discarded_;
    }
    support::Diagnostic diagnostic{severity, range, message, {}, {}};
    if (!calls_.empty())
      diagnostic.withNote(calls_.back(), "in this call");
    if (owner_ != heir_)
      diagnostic.withNote(heir_->name.range, "inherited by `" + heir_->name.text + "`");
    return sink_.report(std::move(diagnostic));
  }

  support::DiagnosticSink &sink_;
  support::Diagnostic discarded_;
  const AstAttention *owner_ = nullptr;
  const AstAttention *heir_ = nullptr;
  std::vector<support::SourceRange> calls_;
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::string>> said_;
};

} // namespace deft::spec
