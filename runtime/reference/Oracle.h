#pragma once

#include "runtime/exec/Selection.h"
#include "runtime/reference/Evaluate.h"
#include "runtime/tree/KvTree.h"

#include <limits>
#include <vector>

/// The definition of the result, as slow and plain as it can be said: for each query, the tokens on its
/// path, a score each, softmax or sigmoid, and the weighted sum of the values. It knows no plan and no
/// tile, so nothing of what it checks is also what it uses.
namespace deft::reference {

/// A row: one query head of one query.
struct Row {
  std::vector<double>
      out;             ///< a value a column; 0 when no token is visible. In the output dtype but for `Exact`
  double lse = 0;      ///< softmax: natural logarithm; -inf when no token is visible, or the sink
  double noise = 0;    ///< `Exact`: how far roundings may move it (RowNoise), relative to its norm
  double lseNoise = 0; ///< `Exact`: how far lse, of elements that `query` and `key` make (EitherWay)
  bool seesNothing = false; ///< all tokens are hidden, or there is none

  /// Whether the formula has a value: a NaN or an infinity in a score, or in what it reads, leaves none.
  bool isDefined() const;
};

/// The rows of one query (caller's index) for the query heads of one KV head, in their order. The tree
/// must carry the locations by which `inputs` lies in the cache.
/// With `selection`, heads see what is in their lists alone.
std::vector<Row> evaluateGroup(const spec::Variant &variant, const tree::KvTree &tree,
                               const exec::Inputs &inputs, int query, int kvHead, Precision precision,
                               const exec::Selection *selection = nullptr);

/// The final scores of a row, by position on the query's path; -inf where a token is hidden. `bounds` gets,
/// where it is wanted, how far roundings of f32 arithmetic may move each.
std::vector<double> evaluateScores(const spec::Variant &variant, const tree::KvTree &tree,
                                   const exec::Inputs &inputs, int query, int head,
                                   std::vector<double> *bounds = nullptr);

/// What a row gives to each token where all keys are 0, or, with a hook `key` and none of q, all queries:
/// what masks, scores and the normalization make of s = 0. K is not read.
struct Weights {
  std::vector<double> ofToken; ///< by position on the query's path, with the factors that V has of each
                               ///< token; before these a softmax's sum to 1, with the sink's, or are all 0
  double topWeight = 0;        ///< the largest, before factors
  double lse = 0;              ///< as Row's
  double topScore = -std::numeric_limits<double>::infinity();
};
Weights weightsOfZeroKeys(const spec::Variant &variant, const tree::KvTree &tree, const exec::Inputs &inputs,
                          int query, int head);

} // namespace deft::reference
