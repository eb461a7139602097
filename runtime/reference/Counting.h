#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/Inputs.h"
#include "runtime/tree/KvTree.h"

#include <functional>
#include <string>
#include <vector>

/// Does every row see every token of its path, each once? Random values cannot tell: of 30,000 tokens that
/// weigh about the same, one is 1 / sqrt(30,000) = 0.6 % of a row's norm, no more than bf16 rounds away.
/// Counting inputs can. All keys are 0, so what a token weighs follows from masks and scores alone. V is 1 in
/// one column of each token and 0 in the others: neighbours of a path share a column, so few that the loss of
/// one is more than all roundings of their sum, and what finds no column in one pass has one in another.
///
/// How many: the sum X of a column's weights moves by at most u X in each of three roundings (Roundings),
/// each weight's, the partials' and the output's. Of c tokens that weigh the same, one is X / c. It is lost
/// for certain, and seen for certain, where X / c is more than twice what may move: c < 1 / (2 * 3 u), which
/// is 42 in bf16 and 341 in f16. A fault of several tokens moves the sum the same way, so it is seen, too.
/// Where weights differ within a column, what is far below the others does not count as told.
namespace deft::reference {

struct CountOptions {
  int threads = 1;
  /// As CheckOptions::mostRowTokens.
  long long mostRowTokens = 0;
  /// Of more passes so many are made, evenly spread over the paths; 0: all.
  int mostPasses = 0;
  /// Which come first where some are left out: another one by the next number.
  int firstPass = 0;
};

struct CountReport {
  int passes = 0;    ///< made
  int allPasses = 0; ///< that see every token
  long long pairs =
      0;              ///< (row, token) pairs with a weight, of the rows and the stretches that were looked at
  long long told = 0; ///< of these: lost or seen twice alone, it would have been noticed
  long long wrongRows = 0;
  std::string fault; ///< of the first wrong row: "query 3, head 7: ..."; empty: none
  double worst = 0;  ///< the largest difference of a column from what it should be, over what is allowed

  bool passed() const { return wrongRows == 0; }
};

/// Inputs and judgement in steps, for those who run now and judge later. What it is made of may go.
class Counting {
public:
  /// `inputs`: where the tree lies, and parameters; its values do not matter.
  Counting(const spec::Variant &variant, tree::KvTree tree, const exec::Inputs &inputs,
           const CountOptions &options = {});

  int passes() const { return static_cast<int>(stretches_.size()); }
  /// The inputs of a pass; valid until the next call.
  const exec::Inputs &inputs(int pass);
  /// What came of the pass that was asked for last.
  void take(const exec::Outputs &outputs);
  /// After the last pass: the cache is needed no more.
  void dropInputs();
  CountReport judge() const;

private:
  struct Stretch { ///< positions [begin, end) of all paths
    int begin, end;
  };
  struct Judge;

  /// Of the column that a position has in a stretch, for a KV head: each has its columns in another place, so
  /// that one read for another is seen.
  int columnOf(const Stretch &stretch, int position, int kvHead) const {
    return ((position - stretch.begin) / columnTokens_ + kvHead) % variant_.headDim;
  }
  void mark(const Stretch &stretch, std::uint16_t value);

  spec::Variant variant_;
  tree::KvTree tree_;
  exec::Inputs inputs_;
  CountOptions options_;
  int columnTokens_ = 1;
  int allPasses_ = 0;
  std::vector<Stretch> stretches_;
  int marked_ = -1;          ///< the pass whose inputs are made
  std::vector<int> queries_; ///< caller's indices of those that are judged
  /// Of each pass, the outputs of queries_.
  std::vector<exec::Outputs> outputs_;
};

/// All at once. `run` gives the outputs of what it is given.
using Run = std::function<support::Result<void>(const exec::Inputs &, exec::Outputs &)>;
support::Result<CountReport> countTokens(const spec::Variant &variant, const tree::KvTree &tree,
                                         const exec::Inputs &inputs, const Run &run,
                                         const CountOptions &options = {});

} // namespace deft::reference
