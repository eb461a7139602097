#pragma once

#include "runtime/exec/Inputs.h"
#include "runtime/reference/Counting.h"
#include "runtime/tree/KvTree.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace deft::gpu_test {

/// What a case is counted under, and how it is run again.
struct CaseName {
  std::string text; ///< "d64_r3_plain, config 1, tree 7: wide fan, flatten, chunk 64, scattered"
  std::map<std::string, std::string> facts; ///< "head_dim" -> "64", ...
};

struct FinishedCase {
  CaseName name;
  const spec::Variant *variant = nullptr;
  tree::KvTree tree;
  exec::Inputs inputs;
  exec::Outputs outputs;
  /// With what came of counting inputs; null: none were run.
  std::unique_ptr<reference::Counting> counting;
};

/// (row, token) pairs of a case that are compared: some 0.3 s of one thread.
inline constexpr long long kMostRowTokens = 1'500'000;

/// What came of all cases.
struct Tally {
  int cases = 0;
  long long queriesChecked = 0;
  long long pairsCounted = 0, pairsNoticeable = 0; ///< of counting inputs (reference::CountReport)
  double worstCount = 0;                           ///< largest difference of a column over what is allowed
  double worstShare = 0;                           ///< largest error over what is allowed
  std::string worstCase;
  double worstLse = 0;
  std::map<std::string, std::map<std::string, int>> counts; ///< fact -> value -> cases
  std::vector<std::string> failures;
};

/// Compares results with the oracle on threads of its own, while the next cases run.
class CheckPool {
public:
  explicit CheckPool(int threads);
  ~CheckPool();
  CheckPool(const CheckPool &) = delete;
  CheckPool &operator=(const CheckPool &) = delete;

  /// Waits while many are waiting, which bounds the memory.
  void add(FinishedCase finished);
  /// A case whose judgement needs no oracle; `failure` empty: right.
  void count(const CaseName &name, const std::string &failure);
  /// After all that were added have been checked.
  Tally finish();

private:
  void work();
  void note(const CaseName &name); ///< under the lock

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<FinishedCase> waiting_;
  bool isClosed_ = false;
  Tally tally_;
  std::vector<std::thread> threads_;
};

} // namespace deft::gpu_test
