#pragma once

#include "runtime/api/Plan.h"
#include "runtime/api/RunTensors.h"
#include "runtime/capture/Capture.h"
#include "runtime/exec/Inputs.h"

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

/// What a captured step (runtime/capture) is made of: handles as they are behind a run.
namespace deft::api {

/// Reads memory that tensors are in. Of the host, or behind what is on a stream of a GPU.
class MemoryReader {
public:
  virtual ~MemoryReader() = default;
  virtual Result<void> read(const void *from, std::size_t bytes, void *to) const = 0;
};

class HostMemoryReader : public MemoryReader {
public:
  Result<void> read(const void *from, std::size_t bytes, void *to) const override;
};

/// A run that a program has made: its attention, values and tensors.
struct SeenRun {
  std::shared_ptr<const Attention> attention;
  /// One for each parameter; without a value where nobody knows it. Of arrays, memory of the GPU may be named
  /// in place of values.
  std::vector<exec::ParamValue> params;
  capture::RunFacts facts;
  const void *q = nullptr, *k = nullptr, *v = nullptr; ///< as RunTensors has them
  PageEntries pageTable;

  const spec::Variant &variant() const { return attention->variant(); }
};

/// The facts of a run with these tensors.
SeenRun seenRun(std::shared_ptr<const Attention> attention, capture::RunKind kind, int budget,
                const RunTensors &tensors);

/// What a plan keeps for captures while they are on.
class PlanCapture {
public:
  /// The plan is of this tree now, and was made or advanced in that time.
  void noteTree(const deft_tree &tree, double planUs);
  /// The mask of drafts that a plan of the host has taken.
  Result<void> noteMask(const DraftMask &mask);
  /// That a plan of a GPU will read; its memory is read where a step is written.
  void noteMaskOnDevice(const DraftMask &mask);
  void noteLengthsOnDevice(const int *lengths);
  /// A captured graph has this run.
  void noteGraph(SeenRun run);
  std::optional<SeenRun> graph() const;

  /// Whether this step is to be written with a run of the attention. Once for each.
  bool claim(const Attention &attention);

  /// Writes the step of the plan with this run, if there is a tree. `reader` reads the memory of the run's
  /// tensors; null: nothing but the host's facts is written. Gives the path of the file.
  Result<std::string> write(const Plan &plan, const config_cache::DeviceKey &device, capture::Moment moment,
                            const SeenRun &run, const MemoryReader *reader, std::optional<double> runUs);

private:
  Result<void> addDevice(capture::Step &step, const MemoryReader &reader) const;

  mutable std::mutex mutex_; ///< runs of other threads claim, too
  std::optional<tree::KvTree> tree_;
  std::shared_ptr<const TreeStamp> stamp_; ///< of that tree
  std::uint64_t generation_ = 0;
  std::vector<tree::DraftedRequest> drafted_;
  std::vector<capture::Drafts> hostDrafts_; ///< with the mask; empty: there is none yet
  long long steps_ = 0;
  std::vector<const Attention *> claimed_; ///< of this step
  std::optional<double> planUs_;
  std::optional<SeenRun> graph_;
  const int *lengths_ = nullptr;
  std::optional<DraftMask> mask_; ///< on the device
};

/// Notes the tree where captures are on.
void noteTree(Plan &plan, const deft_tree &tree, double planUs);

/// Behind a run on the host; `params` are those that it had. Never fails.
void captureRun(const Plan &plan, const deft_attention &attention, const deft_params &params,
                const RunTensors &tensors, capture::RunKind kind, int budget, double runUs) noexcept;

/// The run's q, k and v as .npy files, in the order of the tree's nodes. What `pages` are the pages of:
/// capture::entriesOf(tree, pageSize).
struct TensorsOfStep {
  const SeenRun &run;
  const tree::KvTree &tree;
  const std::vector<int> &entries, &pages;
  const MemoryReader &reader;

  std::int64_t bytes() const;
  Result<std::int64_t> writeTo(const std::string &folder) const;
  /// Elements of an array over tokens, of 4 bytes each, `each` of a token.
  Result<void> readTokenParam(const void *array, int each, void *to) const;
};

} // namespace deft::api
