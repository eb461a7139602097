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

/// Makes a captured step (runtime/capture) from handles after a run.
namespace deft::api {

/// Reads the memory of tensors: on the host, or after the work on a GPU's stream.
class MemoryReader {
public:
  virtual ~MemoryReader() = default;
  virtual Result<void> read(const void *from, std::size_t bytes, void *to) const = 0;
};

class HostMemoryReader : public MemoryReader {
public:
  Result<void> read(const void *from, std::size_t bytes, void *to) const override;
};

/// A run of a program: its attention, values and tensors.
struct SeenRun {
  std::shared_ptr<const Attention> attention;
  /// One for each parameter; without a value if it is unknown. For arrays, it may name memory of the GPU
  /// instead of values.
  std::vector<exec::ParamValue> params;
  capture::RunFacts facts;
  const void *q = nullptr, *k = nullptr, *v = nullptr; ///< as in RunTensors
  PageEntries pageTable;

  const spec::Variant &variant() const { return attention->variant(); }
};

/// The facts of a run with these tensors.
SeenRun seenRun(std::shared_ptr<const Attention> attention, capture::RunKind kind, int budget,
                const RunTensors &tensors);

/// The data that a plan keeps while captures are on.
class PlanCapture {
public:
  /// The plan is now of this tree; making or advancing it took `planUs`.
  void noteTree(const deft_tree &tree, double planUs);
  /// A mask of drafts that a plan on the host has taken.
  Result<void> noteMask(const DraftMask &mask);
  /// A mask that a plan on a GPU will read; its memory is read when a step is written.
  void noteMaskOnDevice(const DraftMask &mask);
  void noteLengthsOnDevice(const int *lengths);
  /// A captured graph contains this run.
  void noteGraph(SeenRun run);
  std::optional<SeenRun> graph() const;

  /// Whether to write this step with a run of the attention. True once for each.
  bool claim(const Attention &attention);

  /// Writes the step of the plan with this run, if there is a tree. `reader` reads the memory of the run's
  /// tensors; null: writes only the host's facts. Returns the path of the file.
  Result<std::string> write(const Plan &plan, const config_cache::DeviceKey &device, capture::Moment moment,
                            const SeenRun &run, const MemoryReader *reader, std::optional<double> runUs);

private:
  Result<void> addDevice(capture::Step &step, const MemoryReader &reader) const;

  mutable std::mutex mutex_; ///< runs on other threads also claim
  std::optional<tree::KvTree> tree_;
  std::shared_ptr<const TreeStamp> stamp_; ///< of that tree
  std::uint64_t generation_ = 0;
  std::vector<tree::DraftedRequest> drafted_;
  std::vector<capture::Drafts> hostDrafts_; ///< with the mask; empty: no mask yet
  long long steps_ = 0;
  std::vector<const Attention *> claimed_; ///< of this step
  std::optional<double> planUs_;
  std::optional<SeenRun> graph_;
  const int *lengths_ = nullptr;
  std::optional<DraftMask> mask_; ///< on the device
};

/// Notes the tree if captures are on.
void noteTree(Plan &plan, const deft_tree &tree, double planUs);

/// Called after a run on the host with these `params`. Never fails.
void captureRun(const Plan &plan, const deft_attention &attention, const deft_params &params,
                const RunTensors &tensors, capture::RunKind kind, int budget, double runUs) noexcept;

/// The run's q, k and v as .npy files, in the order of the tree's nodes. `pages` are the pages of
/// capture::entriesOf(tree, pageSize).
struct TensorsOfStep {
  const SeenRun &run;
  const tree::KvTree &tree;
  const std::vector<int> &entries, &pages;
  const MemoryReader &reader;

  std::int64_t bytes() const;
  Result<std::int64_t> writeTo(const std::string &folder) const;
  /// Reads elements of an array over tokens, each of 4 bytes, `each` of them per token.
  Result<void> readTokenParam(const void *array, int each, void *to) const;
};

} // namespace deft::api
