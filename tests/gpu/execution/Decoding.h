#pragma once

#include "runtime/exec/Inputs.h"
#include "runtime/tree/KvTree.h"
#include "tests/gpu/execution/Rig.h"

#include <deft/sequence_tree.hpp>

#include <memory>
#include <random>

namespace deft::gpu_test {

/// A small server: sequences that grow, fork, end and arrive, a cache of some layers on the GPU with a copy
/// on the host, and the steps that were computed, which the oracle judges afterwards. The cache is full of
/// values from the start, so that a token has some wherever the pool puts it.
class Decoding {
public:
  struct Options {
    int layers = 2;
    int branches = 6;
    std::uint64_t seed = 1;
  };

  static constexpr int kMostQueries = 48;
  static constexpr int kTablePages = 1 << 17; ///< more than its pool can name
  /// For plans of any of its trees.
  static GpuRoom largeRoom() {
    return {.queries = kMostQueries, .items = 3000, .runs = 6000, .partials = 6000};
  }

  Decoding(const Subject &subject, Findings &findings, const Stream &stream, const Options &options);

  const SequenceTree &sequences() const { return sequences_; }
  const Tree &tree() const { return sequences_.tree(); }
  int layers() const { return options_.layers; }

  /// Every branch gains some tokens.
  void grow();
  /// One of: a branch forks, one ends, a request arrives, a prompt is shared from its middle on.
  void restructure();

  /// Uploads the step's queries and poison for its outputs; the stream is then ready for runs.
  void beginStep();
  /// The runs of all layers.
  bool enqueueRuns(GpuPlan &plan, const GpuPageTable &table);
  /// Takes the outputs as they are behind the runs, and what the oracle needs of this moment.
  void endStep();

  /// Waits, and judges the steps since the last time. False when one is wrong.
  bool judge(const std::string &what);
  int judgedSteps() const { return judgedSteps_; }

private:
  struct Layer {
    explicit Layer(const std::shared_ptr<device::Device> &device)
        : k(device), v(device), out(device), lse(device) {}
    exec::Inputs inputs;
    device::Buffer k, v, out, lse;
  };
  struct Step {
    explicit Step(const std::shared_ptr<device::Device> &device) : memory(device) {}
    device::HostMemory memory; ///< queries, poison, then outputs and lse of each layer
    tree::KvTree tree;
    std::vector<int> pageTable;
    int queries = 0;
    bool isWhole = false; ///< its outputs are taken
  };

  void fillCache();
  void judgePending(const std::string &what);
  void apply(const std::vector<TokenCopy> &copies);
  void append(int leaf, int tokens);
  void setQueries();
  std::size_t qBytes() const;
  std::size_t lseBytes() const;
  Step &freeStep();
  void judgeStep(const Step &step, const std::string &what);

  const Subject &subject_;
  Findings &findings_;
  const Stream &stream_;
  Options options_;
  std::mt19937_64 random_;
  SequenceTree sequences_;
  std::vector<int> leaves_;
  int prompt_ = 0;
  std::vector<Layer> layers_;
  device::Buffer q_;
  std::vector<std::unique_ptr<Step>> steps_; ///< since the last judging
  std::vector<std::unique_ptr<Step>> spare_;
  int judgedSteps_ = 0;
};

} // namespace deft::gpu_test
