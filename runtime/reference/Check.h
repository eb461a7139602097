#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/Inputs.h"
#include "runtime/exec/Selection.h"
#include "runtime/reference/Counting.h"
#include "runtime/reference/Oracle.h"
#include "runtime/tree/KvTree.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

/// Is a result right? The error of a row, one head of one query, is its relative L2 distance to the oracle.
/// It may be at most twice that of a plain evaluation of the same row which rounds each step to the dtype,
/// plus the row's noise (RowNoise), since the plain one's roundings may happen to cancel. So the bound
/// follows from the row and the formula, and never has to be loose. lse: within 1e-3, and more by the
/// row's own noise where `query` makes q.
namespace deft::reference {

inline constexpr double kPlainFactor = 2;
inline constexpr double kLseTolerance = 1e-3;

/// Distance of `actual` to `exact`, relative to the norm of `exact`. Where that norm is 0 (a row without
/// visible tokens) only exact zeros are right: 0 then, else infinity. NaN counts as infinity.
double relativeError(const std::vector<double> &exact, const std::vector<double> &actual);

/// Two equal infinities are 0 apart; a NaN or one infinity alone is infinitely far.
double lseDistance(double exact, double actual);

/// A row of the oracle, and what is allowed of it.
struct BoundedRow {
  Row exact;
  double plainError = 0; ///< 0 where even f32 cannot evaluate the row
  double allowed = 0;
};
/// As evaluateGroup. Where rounding each step to the dtype breaks the plain evaluation (f16 overflows), one
/// that rounds to f32 takes its place.
std::vector<BoundedRow> boundGroup(const spec::Variant &variant, const tree::KvTree &tree,
                                   const exec::Inputs &inputs, int query, int kvHead,
                                   const exec::Selection *selection = nullptr);

/// Caller's indices, evenly spread, first and last included: as many as have `mostRowTokens` (row, token)
/// pairs, at least two; 0: all.
std::vector<int> queriesToCheck(const spec::Variant &variant, const tree::KvTree &tree,
                                long long mostRowTokens);

struct CheckOptions {
  int threads = 1;
  /// Above this many (row, token) pairs only some queries are checked (queriesToCheck); 0: no bound.
  long long mostRowTokens = 0;
  /// After that no query begins, except the first one; none: all are checked.
  Deadline deadline = {};
  /// Told after each query how many of how many are done, by any of the threads.
  std::function<void(long long, long long)> progress = {};
  /// Of sparse attention: heads see what is in their lists alone. Null: all.
  const exec::Selection *selection = nullptr;
};

struct CheckReport {
  double error = 0;      ///< of the row that has the largest share
  double plainError = 0; ///< of the plain evaluation of that row
  double allowed = 0;    ///< of that row
  int worstQuery = -1;   ///< caller's index
  int worstHead = -1;
  bool hasLse = false;
  double lseError = 0; ///< absolute distance, of the row that has the largest share of what is allowed
  double lseAllowed = kLseTolerance; ///< of that row
  int worstLseQuery = -1;
  int worstLseHead = -1;
  int queriesChecked = 0;
  int queries = 0;
  long long rows = 0;          ///< that were checked
  long long blindRows = 0;     ///< of these: see no token, so that a right result is 0 whatever was read
  long long undefinedRows = 0; ///< of these: the spec itself gives NaN or an infinity; not compared
  int undefinedQuery = -1, undefinedHead = -1; ///< the first of them
  /// What a search of the run's inputs and outputs found (exec::findNotFinite), where one was made; empty:
  /// all is finite.
  std::string notFinite;
  std::optional<CountReport> count; ///< of counting inputs, where they were run, too

  double share() const { return error == 0 ? 0 : error / allowed; } ///< of what is allowed
  double lseShare() const { return lseError / lseAllowed; }
  bool isDefined() const { return undefinedRows == 0 && notFinite.empty(); }
  bool passed() const {
    return isDefined() && share() <= 1 && lseShare() <= 1 && (!count || count->passed());
  }
};

CheckReport check(const spec::Variant &variant, const tree::KvTree &tree, const exec::Inputs &inputs,
                  const exec::Outputs &outputs, const CheckOptions &options = {});

/// "query 3, head 7: error 0.2, allowed 0.01": the facts of a failed check.
std::string explainFailure(const CheckReport &report);

} // namespace deft::reference
