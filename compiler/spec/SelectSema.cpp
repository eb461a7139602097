#include "compiler/spec/AttentionSema.h"
#include "compiler/spec/Limits.h"
#include "compiler/spec/Names.h"
#include "compiler/support/NearestName.h"

#include <algorithm>

/// The block that says which tokens a later layer may read alone: rules K.
namespace deft::spec {

void AttentionSema::checkSelect() {
  const AstProperty *property = enter("select");
  if (!property)
    return;
  blockScope_.owner = merged_.property("select").owner;
  if (variant_.bound == MaskBound::Path) {
    reporter_.error(property->key.range, "`select` does not go with a mask bound by `path`")
        .withHint("the last tokens of a path are defined only if it ends at the query's own");
    return;
  }
  const auto &ast = std::get<AstSelect>(property->value);
  SelectSpec select;
  select.range = property->key.range;
  const auto kept = [&](const std::optional<AstExprId> &expr, const char *key) {
    return expr ? scheduleNumber(*expr, key, {0, kMaxBudget, 1}).value_or(0) : 0;
  };
  select.keepFirst = kept(ast.keepFirst, "keep_first");
  select.keepLast = kept(ast.keepLast, "keep_last");
  if (ast.by) {
    if (const std::optional<SelectBy> by = parseSelectBy(ast.by->text))
      select.by = *by;
    else
      reporter_
          .error(ast.by->range, "unknown lists `" + ast.by->text +
                                    "`, they are by `kv_head`, `query_head`, `query` or `caller`")
          .withHint(support::didYouMean(ast.by->text, selectByNames()));
  }
  if (select.by == SelectBy::Caller && (ast.keepFirst || ast.keepLast)) {
    const AstExprId kept = ast.keepFirst ? *ast.keepFirst : *ast.keepLast;
    reporter_.error(parsed_.arena[kept].range, "lists by `caller` have the tokens that the caller put there")
        .withHint("remove `keep_first` and `keep_last`");
    return;
  }
  if (!ast.budget) {
    reporter_.error(property->key.range, "the selection has no `budget`")
        .withHint("for example `budget = 4096;`");
    return;
  }
  std::optional<TuneList> budget = tuneList(*ast.budget, "budget", {1, kMaxBudget, 1});
  if (!budget)
    return;
  select.budget = std::move(*budget);
  const int least = *std::min_element(select.budget.values.begin(), select.budget.values.end());
  if (select.keepFirst + select.keepLast > least) {
    reporter_.error(select.budget.range, "budget = " + std::to_string(least) +
                                             " is below keep_first + keep_last = " +
                                             std::to_string(select.keepFirst + select.keepLast));
    return;
  }
  variant_.select = std::move(select);
}

void AttentionSema::checkGivenLists() {
  const Expr *read = variant_.readsGivenLists() ? variant_.readOfPlace() : nullptr;
  if (!read)
    return;
  enter("select");
  reporter_
      .error(read->range,
             std::string("`") + toString(read->builtin) + "` is unknown for tokens of lists by `caller`")
      .withHint("such lists give places in the cache, not positions on a path");
}

} // namespace deft::spec
