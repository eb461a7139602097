#pragma once

#include "runtime/exec/Selection.h"
#include "runtime/reference/Evaluate.h"
#include "runtime/tree/KvTree.h"

#include <limits>
#include <vector>

/// The definition of the result, as slow and plain as possible: for each query, the tokens on its path, a
/// score for each, softmax or sigmoid, and the weighted sum of the values. It uses no plan and no tile, so it
/// shares no code with the results that it checks.
namespace deft::reference {

/// A row: one query head of one query.
struct Row {
  std::vector<double>
      out;             ///< a value a column; 0 when no token is visible. In the output dtype but for `Exact`
  double lse = 0;      ///< softmax: natural logarithm; without visible tokens -inf, or the sink
  double noise = 0;    ///< `Exact`: the possible movement by roundings (RowNoise), relative to its norm
  double lseNoise = 0; ///< `Exact`: the same for lse, by elements that `query` and `key` make (EitherWay) or
                       ///< that have scales
  bool seesNothing = false; ///< all tokens are hidden, or there are none

  /// Whether the formula has a value: a NaN or an infinity in a score or in its inputs leaves none.
  bool isDefined() const;
};

/// The rows of one query (caller's index) for the query heads of one KV head, in their order. The tree must
/// have the locations by which `inputs` lies in the cache. With `selection`, heads see only the tokens of
/// their lists.
std::vector<Row> evaluateGroup(const spec::Variant &variant, const tree::KvTree &tree,
                               const exec::Inputs &inputs, int query, int kvHead, Precision precision,
                               const exec::Selection *selection = nullptr);

/// The final scores of a row, by position on the query's path; -inf for a hidden token. `bounds`, if not
/// null, receives the possible error of each score in f32 arithmetic.
std::vector<double> evaluateScores(const spec::Variant &variant, const tree::KvTree &tree,
                                   const exec::Inputs &inputs, int query, int head,
                                   std::vector<double> *bounds = nullptr);

/// The weight of each token in a row if all keys are 0 or, with a hook `key` and without `query`, if all
/// queries are 0: the result of masks, scores and normalisation for s = 0. K is not read.
struct Weights {
  std::vector<double> ofToken; ///< by position on the query's path, with the factors that V has of each
                               ///< token; before these a softmax's sum to 1, with the sink's, or are all 0
  double topWeight = 0;        ///< the largest, before factors
  double lse = 0;              ///< as in Row
  double topScore = -std::numeric_limits<double>::infinity();
};
Weights weightsOfZeroKeys(const spec::Variant &variant, const tree::KvTree &tree, const exec::Inputs &inputs,
                          int query, int head);

} // namespace deft::reference
