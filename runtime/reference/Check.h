#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/Inputs.h"
#include "runtime/tree/KvTree.h"

#include <functional>
#include <string>

/// Is a result right? The error of a row is its relative L2 distance to the oracle. The largest over a
/// run may be at most twice that of a plain evaluation which rounds each step to the dtype, plus 1e-6:
/// the bound follows the data and the formula, so it never has to be loose. lse: within 1e-3.
namespace deft::reference {

inline constexpr double kPlainFactor = 2;
inline constexpr double kErrorSlack = 1e-6;
inline constexpr double kLseTolerance = 1e-3;

/// Distance of `actual` to `exact`, relative to the norm of `exact`. Where that norm is 0 (a row without
/// visible tokens) only exact zeros are right: 0 then, else infinity. NaN counts as infinity.
double relativeError(const std::vector<double> &exact, const std::vector<double> &actual);

/// Two equal infinities are 0 apart; a NaN or one infinity alone is infinitely far.
double lseDistance(double exact, double actual);

struct CheckOptions {
  int threads = 1;
  /// Above this many (row, token) pairs only some queries are checked, evenly spread over the caller's
  /// indices, first and last included; 0: no bound.
  long long mostRowTokens = 0;
  /// Told after each query how many of how many are done, by any of the threads.
  std::function<void(long long, long long)> progress = {};
};

struct CheckReport {
  double error = 0;      ///< largest of the checked rows
  double plainError = 0; ///< largest of the plain evaluation, over the same rows
  double allowed = 0;
  int worstQuery = -1; ///< caller's index
  int worstHead = -1;
  bool hasLse = false;
  double lseError = 0; ///< largest absolute distance
  int worstLseQuery = -1;
  int worstLseHead = -1;
  int queriesChecked = 0;
  int queries = 0;

  bool passed() const { return error <= allowed && lseError <= kLseTolerance; }
};

CheckReport check(const spec::Variant &variant, const tree::KvTree &tree, const exec::Inputs &inputs,
                  const exec::Outputs &outputs, const CheckOptions &options = {});

/// "query 3, head 7: error 0.2, allowed 0.01": the facts of a failed check.
std::string explainFailure(const CheckReport &report);

} // namespace deft::reference
