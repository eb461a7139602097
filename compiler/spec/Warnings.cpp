#include "compiler/spec/Warnings.h"

#include "compiler/spec/VisibleBounds.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

namespace deft::spec {
namespace {

class Warner {
public:
  Warner(const support::SourceManager &sources, std::uint32_t file, support::DiagnosticSink &sink)
      : sources_(sources), file_(file), sink_(sink) {}

  /// Once for a place, however many attentions inherit it; a file that is imported is not this one's
  /// business.
  void warn(const char *rule, const support::SourceRange &range, const std::string &message) {
    if (range.file != file_ || isAllowed(rule, range) || !said_.insert({range.begin, rule}).second)
      return;
    sink_.warning(range, message)
        .withHint(std::string("rule ") + rule + "; `// allow " + rule + "` on its line silences it");
  }

private:
  bool isAllowed(const std::string &rule, const support::SourceRange &range) const {
    const std::string_view line = sources_.text(sources_.lineRange(range.file, range.begin));
    const std::size_t comment = line.find("//");
    return comment != std::string_view::npos && line.find("allow " + rule, comment) != std::string_view::npos;
  }

  const support::SourceManager &sources_;
  std::uint32_t file_;
  support::DiagnosticSink &sink_;
  std::set<std::pair<std::uint32_t, std::string>> said_;
};

bool hidesEverything(const Variant &variant) { return visibleBounds(variant).intervals.empty(); }

/// Whether rounding has no say in it: of a whole number, as f32.
bool isWhole(const Expr &expr) {
  return expr.op == ExprOp::Floor || expr.op == ExprOp::ToF32 ||
         (expr.op == ExprOp::Constant && expr.value == std::floor(expr.value));
}

bool comparesFloats(const Variant &variant, const Expr &expr) {
  if (expr.op != ExprOp::Eq && expr.op != ExprOp::Ne)
    return false;
  const Expr &left = variant.exprs[expr.operands[0]], &right = variant.exprs[expr.operands[1]];
  return left.type == ScalarType::F32 && !(isWhole(left) && isWhole(right));
}

bool reads(const Variant &variant, int param) {
  return std::any_of(variant.exprs.begin(), variant.exprs.end(), [&](const Expr &expr) {
    return expr.param == param; // -1 where it reads none
  });
}

/// Of one budget at least.
bool keepsAll(const SelectSpec &select) {
  const std::vector<int> &budgets = select.budget.values;
  return std::find(budgets.begin(), budgets.end(), select.keepFirst + select.keepLast) != budgets.end();
}

bool isSamePlace(const support::SourceRange &a, const support::SourceRange &b) {
  return a.file == b.file && a.begin == b.begin;
}

/// A parameter may be there for heirs: it is unused where no attention of the file reads it.
bool isReadSomewhere(const std::vector<Variant> &variants, const Param &param) {
  for (const Variant &variant : variants)
    for (std::size_t i = 0; i < variant.params.size(); ++i)
      if (isSamePlace(variant.params[i].range, param.range) && reads(variant, static_cast<int>(i)))
        return true;
  return false;
}

} // namespace

void warnOf(const std::vector<Variant> &variants, const support::SourceManager &sources, std::uint32_t file,
            support::DiagnosticSink &sink) {
  Warner warner(sources, file, sink);
  for (const Variant &variant : variants) {
    if (variant.mask && hidesEverything(variant))
      warner.warn("W1", variant.exprs[*variant.mask].range, "this mask hides every token");
    for (const Expr &expr : variant.exprs)
      if (comparesFloats(variant, expr))
        warner.warn("W2", expr.range, "floats are compared for equality, which rounding decides");
    if (const auto &select = variant.select; select && keepsAll(*select))
      warner.warn("W4", select->budget.range,
                  "`keep_first` and `keep_last` use up this budget, so nothing is selected");
    for (const Param &param : variant.params)
      if (!isReadSomewhere(variants, param))
        warner.warn("W3", param.range, "parameter `" + param.name + "` is never read");
  }
}

} // namespace deft::spec
