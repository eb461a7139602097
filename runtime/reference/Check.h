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

/// Is a result right? The error of a row (one head of one query) is its relative L2 distance from the oracle.
/// It may be at most twice the error of a plain evaluation of the same row that rounds each step to the
/// dtype, plus the row's noise (RowNoise), because the roundings of the plain one may cancel by chance. So
/// the bound depends only on the row and the formula, and is never arbitrary. lse must be within 1e-3, plus
/// the row's own noise if hooks make elements or the cache has scales.
namespace deft::reference {

inline constexpr double kPlainFactor = 2;
inline constexpr double kLseTolerance = 1e-3;

/// The distance of `actual` from `exact`, relative to the norm of `exact`. If that norm is 0 (a row without
/// visible tokens), only exact zeros are right: the distance is 0, else infinity. NaN counts as infinity.
double relativeError(const std::vector<double> &exact, const std::vector<double> &actual);

/// The distance of two equal infinities is 0; of a NaN, or of an infinity and another value, infinity.
double lseDistance(double exact, double actual);

/// A row of the oracle, and the error that is allowed for it.
struct BoundedRow {
  Row exact;
  double plainError = 0; ///< 0 if even f32 cannot evaluate the row
  double allowed = 0;
};
/// As evaluateGroup. If the dtype's roundings break the plain evaluation (f16 overflows), an evaluation that
/// rounds to f32 replaces it.
std::vector<BoundedRow> boundGroup(const spec::Variant &variant, const tree::KvTree &tree,
                                   const exec::Inputs &inputs, int query, int kvHead,
                                   const exec::Selection *selection = nullptr);

/// Caller's indices, evenly spread, including the first and the last: as many as have `mostRowTokens` (row,
/// token) pairs, but at least two; 0: all.
std::vector<int> queriesToCheck(const spec::Variant &variant, const tree::KvTree &tree,
                                long long mostRowTokens);

struct CheckOptions {
  int threads = 1;
  /// With more (row, token) pairs than this, only some queries are checked (queriesToCheck); 0: no limit.
  long long mostRowTokens = 0;
  /// No query is started after it, except the first one; none: all are checked.
  Deadline deadline = {};
  /// Called after each query, by any thread, with the numbers of queries that are done and of all queries.
  std::function<void(long long, long long)> progress = {};
  /// For sparse attention: heads see only the tokens of their lists. Null: all tokens.
  const exec::Selection *selection = nullptr;
};

struct CheckReport {
  double error = 0;      ///< of the row with the largest share of its bound
  double plainError = 0; ///< of the plain evaluation of that row
  double allowed = 0;    ///< of that row
  int worstQuery = -1;   ///< caller's index
  int worstHead = -1;
  bool hasLse = false;
  double lseError = 0;               ///< absolute distance, of the row with the largest share of its bound
  double lseAllowed = kLseTolerance; ///< of that row
  int worstLseQuery = -1;
  int worstLseHead = -1;
  int queriesChecked = 0;
  int queries = 0;
  long long rows = 0;          ///< rows that were checked
  long long blindRows = 0;     ///< of these: rows that see no token, so 0 is right whatever was read
  long long undefinedRows = 0; ///< of these: rows for which the spec gives NaN or an infinity; not compared
  int undefinedQuery = -1, undefinedHead = -1; ///< the first of them
  /// The result of a search for NaN and infinities in the run's inputs and outputs (exec::findNotFinite), if
  /// there was one; empty: all values are finite.
  std::string notFinite;
  std::optional<CountReport> count; ///< of counting inputs, if they were also run

  double share() const { return error == 0 ? 0 : error / allowed; } ///< of the allowed error
  double lseShare() const { return lseError / lseAllowed; }
  bool isDefined() const { return undefinedRows == 0 && notFinite.empty(); }
  bool passed() const {
    return isDefined() && share() <= 1 && lseShare() <= 1 && (!count || count->passed());
  }
};

CheckReport check(const spec::Variant &variant, const tree::KvTree &tree, const exec::Inputs &inputs,
                  const exec::Outputs &outputs, const CheckOptions &options = {});

/// The facts of a failed check: "query 3, head 7: error 0.2, allowed 0.01".
std::string explainFailure(const CheckReport &report);

} // namespace deft::reference
