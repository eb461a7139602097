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

/// Does every row see every token of its path, each once? Random values cannot tell: of 30,000 tokens that
/// weigh about the same, one is 1 / sqrt(30,000) = 0.6 % of a row's norm, no more than bf16 rounds away.
/// Counting inputs can. All keys are 0, so what a token weighs follows from masks and scores alone (where V
/// is in K's memory all queries are, too). V is 1 in one column of each token and 0 in the others: neighbours
/// of a path share a column, so few that the loss of one is more than all roundings of their sum, and what
/// finds no column in one pass has one in another.
///
/// How many tokens share a column: the sum X of a column's weights moves by at most u X in each of three
/// roundings (Roundings), each weight's, the partials' and the output's. Of c tokens that weigh the same, one
/// is X / c. It is lost for certain, and seen for certain, where X / c is more than twice what may move: c <
/// 1 / (2 * 3 u), which is 42 in bf16 and 341 in f16. A fault of several tokens moves the sum the same way,
/// so it is seen, too. Where weights differ within a column, what is far below the others does not count as
/// noticeable.
namespace deft::reference {

struct CountOptions {
  int threads = 1;
  /// (row, token) pairs that are judged; see CheckOptions::mostRowTokens.
  long long mostRowTokens = 0;
};

struct CountReport {
  int passes = 0;      ///< made
  int allPasses = 0;   ///< needed to see every token
  long long pairs = 0; ///< (row, token) pairs that have a weight, of the rows and passes that were judged
  long long noticeable = 0; ///< of these: lost or seen twice alone, the token would have been noticed
  long long wrongRows = 0;
  std::string fault; ///< of the first wrong row: "query 3, head 7: ..."; empty: none
  double worst = 0;  ///< the largest difference of a column from what it should be, over what is allowed

  bool passed() const { return wrongRows == 0; }
};

/// Inputs and judgement in steps, for those who run now and judge later. What it is made of may go.
class Counting {
public:
  /// `inputs`: where the tree lies, queries and parameters. Keys and values do not matter.
  Counting(const spec::Variant &variant, tree::KvTree tree, const exec::Inputs &inputs,
           const CountOptions &options = {});

  /// How many passes see every token, each a stretch of all paths.
  int passes() const { return static_cast<int>(outputs_.size()); }
  /// The inputs of a pass; valid until the next call.
  exec::Inputs &inputs(int pass);
  /// What came of the pass that was asked for last.
  void take(const exec::Outputs &outputs);
  /// What the passes show that were taken, which are then forgotten.
  CountReport judge();
  /// For those who judge often: what each token weighs is computed now, once.
  void keepWeights();
  /// After the last pass: the cache is needed no more.
  void dropCache();

private:
  struct Stretch { ///< positions [begin, end) of all paths
    int begin, end;
  };
  struct Judge;

  int passTokens() const { return columnTokens_ * variant_.tensors.v.dim; }
  Stretch stretchOf(int pass) const;
  /// The column that a position has in its pass. Each KV head has them in another place, so that one read for
  /// another is seen.
  int columnOf(int position, int kvHead) const {
    return (position % passTokens() / columnTokens_ + kvHead) % variant_.tensors.v.dim;
  }
  void mark(int pass, std::uint16_t value);
  /// Calls `work` with every index of queries_, from several threads; `thread` counts these.
  void forEachQuery(const std::function<void(int thread, std::size_t index)> &work) const;
  int threads() const;

  spec::Variant variant_;
  tree::KvTree tree_;
  exec::Inputs inputs_;
  CountOptions options_;
  int columnTokens_ = 1;
  int longest_ = 0;                                   ///< path, in tokens
  int marked_ = -1;                                   ///< the pass whose inputs are made
  std::vector<int> queries_;                          ///< caller's indices of those that are judged
  std::vector<std::optional<exec::Outputs>> outputs_; ///< of each pass that was taken: those of queries_
  std::vector<Weights> weights_;                      ///< [queries_][query head], where they are kept
};

/// All passes, or, of more than `mostPasses`, so many, evenly spread; which these are depends on `turn`, and
/// so many turns as there are passes have had them all. `run` gives the outputs of what it is given. After
/// the deadline no more than the first is made.
using Run = std::function<support::Result<void>(exec::Inputs &, exec::Outputs &)>;
using Deadline = std::optional<std::chrono::steady_clock::time_point>;
support::Result<void> runPasses(Counting &counting, const Run &run, int mostPasses = 0, int turn = 0,
                                const Deadline &deadline = std::nullopt);

} // namespace deft::reference
