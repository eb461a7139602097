#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/Inputs.h"
#include "runtime/reference/Oracle.h"
#include "runtime/tree/KvTree.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// Does every row see every token of its path exactly once? Random values cannot answer this: of 30,000
/// tokens with similar weights, one is 1 / sqrt(30,000) = 0.6 % of a row's norm, no more than the rounding of
/// bf16. Counting inputs can. All keys are 0, so a token's weight depends only on masks and scores (if V is
/// in K's memory, all queries are 0 as well). V is 1 in one column of each token and 0 in the others.
/// Neighbours on a path share a column, but so few that the loss of one exceeds all roundings of their sum.
/// Tokens without a column in one pass have one in another.
///
/// How many tokens share a column: the sum X of a column's weights moves by at most u X in each of three
/// roundings (Roundings): of each weight, of the partials and of the output. Of c tokens with equal weights,
/// one is X / c. Its loss is certain to be detected if X / c is more than twice the possible error: c < 1 /
/// (2 * 3 u), which is 42 in bf16 and 341 in f16. A fault of several tokens moves the sum in the same
/// direction, so it is detected as well. If weights differ within a column, those far below the others do not
/// count as noticeable.
namespace deft::reference {

struct CountOptions {
  int threads = 1;
  /// (row, token) pairs to check; see CheckOptions::mostRowTokens.
  long long mostRowTokens = 0;
};

struct CountReport {
  int passes = 0;           ///< passes that were made
  int allPasses = 0;        ///< passes that are needed to see every token
  long long pairs = 0;      ///< (row, token) pairs with a weight, in the rows and passes that were checked
  long long noticeable = 0; ///< of these: pairs for which a single loss or repetition would be detected
  long long wrongRows = 0;
  std::string fault; ///< of the first wrong row: "query 3, head 7: ..."; empty: no fault
  double worst = 0;  ///< the largest difference of a column from its expected value, over the allowed one

  bool passed() const { return wrongRows == 0; }
};

/// Inputs and check in separate steps, for callers that run now and check later. Keeps its own copies.
class Counting {
public:
  /// `inputs` gives the place of the tree in the cache, queries and parameters. Keys and values are ignored.
  Counting(const spec::Variant &variant, tree::KvTree tree, const exec::Inputs &inputs,
           const CountOptions &options = {});

  /// The number of passes that see every token; each covers a stretch of all paths.
  int passes() const { return static_cast<int>(outputs_.size()); }
  /// The inputs of a pass; valid until the next call.
  exec::Inputs &inputs(int pass);
  /// Takes the outputs of the pass that inputs() returned last.
  void take(const exec::Outputs &outputs);
  /// Checks the passes that were taken, and drops their outputs.
  CountReport judge();
  /// For callers that check often: computes the weight of each token once, now.
  void keepWeights();
  /// Call it after the last pass: frees the cache.
  void dropCache();

private:
  struct Stretch { ///< positions [begin, end) of all paths
    int begin, end;
  };
  struct Judge;

  int passTokens() const { return columnTokens_ * variant_.tensors.v.dim; }
  Stretch stretchOf(int pass) const;
  /// The column of a position in its pass. Each KV head has a different one, so that reading another head's
  /// values is detected.
  int columnOf(int position, int kvHead) const {
    return (position % passTokens() / columnTokens_ + kvHead) % variant_.tensors.v.dim;
  }
  void mark(int pass, std::uint16_t value);
  /// Calls `work` with every index of queries_, on several threads; `thread` is the thread's number.
  void forEachQuery(const std::function<void(int thread, std::size_t index)> &work) const;
  int threads() const;

  spec::Variant variant_;
  tree::KvTree tree_;
  exec::Inputs inputs_;
  CountOptions options_;
  int columnTokens_ = 1;
  int longest_ = 0;                                   ///< longest path, in tokens
  int marked_ = -1;                                   ///< the pass whose inputs exist
  std::vector<int> queries_;                          ///< caller's indices of the queries to check
  std::vector<std::optional<exec::Outputs>> outputs_; ///< for each pass taken, the outputs of queries_
  std::vector<Weights> weights_;                      ///< [queries_][query head], if keepWeights() was called
};

/// Runs all passes or, if there are more than `mostPasses`, that many, evenly spread. `turn` selects which:
/// after as many turns as there are passes, all have run. `run` computes the outputs of its inputs. After the
/// deadline only the first pass runs.
using Run = std::function<support::Result<void>(exec::Inputs &, exec::Outputs &)>;
using Deadline = std::optional<std::chrono::steady_clock::time_point>;
support::Result<void> runPasses(Counting &counting, const Run &run, int mostPasses = 0, int turn = 0,
                                const Deadline &deadline = std::nullopt);

} // namespace deft::reference
