#pragma once

#include "runtime/exec/Inputs.h"
#include "runtime/tree/KvTree.h"
#include "tests/gpu/execution/Rig.h"
#include "tests/support/DraftTrees.h"

#include <deft/paged_batch.hpp>

#include <random>
#include <vector>

namespace deft::gpu_test {

/// An engine with a block table: requests with a shared prompt, drafts behind each, and on the GPU the cache
/// of one layer, masks and lengths. What a step computes the oracle judges by a tree of each request alone.
class DraftedServer {
public:
  struct Options {
    int requests = 6;
    int promptTokens = 300; ///< that all share, in whole pages
    int ownTokens = 200;    ///< of each, at first
    int roomTokens = 1600;  ///< of a row
    int mostDrafts = 256;   ///< rows of a request in the mask
    std::uint64_t seed = 1;
  };

  DraftedServer(const Subject &subject, Findings &findings, const Stream &stream, const Options &options);

  std::mt19937 &random() { return random_; }
  int requests() const { return options_.requests; }
  int length(int request) const { return lengths_[index(request)]; }
  void lengthen(int request, int tokens) { lengths_[index(request)] += tokens; }
  bool isFull(int request, int more) const {
    return lengths_[index(request)] + more + options_.mostDrafts > rowTokens_;
  }
  void setTree(int request, test::DraftParents tree) { trees_[index(request)] = std::move(tree); }
  const test::DraftParents &tree(int request) const { return trees_[index(request)]; }
  int queryCount() const;

  /// The host's idea: lengths as they are now, and how many drafts there are.
  void updateBatch();
  const PagedBatch &batch() const { return batch_; }
  /// The batch with every tree of drafts known to the host, sharing as the batch finds it.
  Tree knownTree() const;

  /// Masks and lengths on the GPU, and queries and poison for the outputs.
  void beginStep();
  DraftMask mask() const;
  bool enqueueDraft(GpuPlan &plan);
  bool enqueueRun(GpuPlan &plan);
  /// Waits, and judges what the step has computed. False when it is wrong.
  bool judge(const std::string &what);

private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  PagedRequests asked() const;
  std::size_t rowElements(int queries) const;

  const Subject &subject_;
  Findings &findings_;
  const Stream &stream_;
  Options options_;
  std::mt19937 random_;
  int pageSize_, rowPages_, rowTokens_;
  std::vector<int> table_, lengths_, drafts_;
  std::vector<test::DraftParents> trees_;
  std::vector<std::uint32_t> bits_;
  exec::Inputs inputs_;
  device::Buffer k_, v_, q_, out_, lse_, tableOnGpu_, bitsOnGpu_, lengthsOnGpu_;
  PagedBatch batch_;
};

} // namespace deft::gpu_test
