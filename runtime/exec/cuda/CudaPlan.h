#pragma once

#include "runtime/exec/cuda/CacheBoxes.h"
#include "runtime/exec/cuda/CudaKernels.h"
#include "runtime/exec/cuda/CudaPointers.h"
#include "runtime/exec/cuda/ListCheck.h"
#include "runtime/exec/cuda/PageCheck.h"
#include "runtime/exec/cuda/PlanDrafts.h"
#include "runtime/exec/cuda/PlanGrowth.h"
#include "runtime/exec/cuda/PlanRoom.h"
#include "runtime/exec/cuda/PlanSelecting.h"
#include "runtime/exec/cuda/PlanWatch.h"

#include <array>
#include <optional>

namespace deft::exec {

namespace cu = device::cu;

struct CudaPlanOptions {
  std::optional<PlanRoom> room; ///< a fixed room; none: the room grows until a graph captures it
  /// Runs fail, and replayed runs are detected, if the tree has changed since the plan was uploaded. Store
  /// the tree's generation in watch().treeGeneration().
  bool isWatched = false;
  /// If set, plans can follow lengths that are on the device: see follow().
  std::optional<GrowthRules> growth = {};
  /// Before each run, a kernel checks the pages that the run will read, if the cache is paged, or the lists
  /// that the caller gives.
  bool checksPages = false;
  /// The number of runs (usually layers) of one plan that may find a newer tree in a replay, because the host
  /// already prepares the next step. 0: the host never changes the tree while a run is in progress.
  int freeRuns = 0;
  /// Tokens of a list for runs that select: see runSelecting(). 0: no run selects.
  int budget = 0;
  /// Of lists that a caller hands over: UnionShape::overlap. 0: each is read by itself.
  double listOverlap = 0;
  /// Whether what is read of lists is cut alike for every number of queries.
  bool isInvariant = false;
  /// For benchmarks: cuts of lists that replace those of the loaded kernels.
  std::optional<std::vector<config::SparseCut>> sparseCuts = {};
};

/// The current plan on a device, and the scratch memory of its runs. There are two buffers of page-locked
/// memory: while one is copied, the next plan is written to the other. A plan that has been copied may be
/// changed in place.
///
///   lendRoom(runs)   before the plan is made, so that write() need not copy its runs
///   write(plan)      on the host only
///   upload(stream)   one copy on the stream
///   run(..., stream) as often as there are layers; can be captured, and then replayed after every upload
///
/// A plan belongs to one stream at a time: uploads and runs, including replayed ones, follow each other
/// there. Calls are for one thread at a time; several objects on one device are independent.
class CudaPlan {
public:
  /// For kernels of this variant and config, and kernels of variants that differ only in hooks.
  static support::Result<std::unique_ptr<CudaPlan>> create(std::shared_ptr<const CudaKernels> kernels,
                                                           const CudaPlanOptions &options);
  ~CudaPlan(); ///< waits for its copies and the device
  CudaPlan(const CudaPlan &) = delete;
  CudaPlan &operator=(const CudaPlan &) = delete;

  /// Call it before you make or advance a plan for write(): its runs may then be stored, once, where the
  /// upload reads them. For one plan at a time: the next call drops a plan that was not written.
  void lendRoom(plan::RunList &runs);

  /// Takes this plan for the next upload, and drops one that was not uploaded yet. Waits only if the copy of
  /// the last plan but one is not finished. If the room is too small and may grow, waits for the device; if
  /// it is fixed, this is an error that names the excess, and nothing changes. `drafts` are the drafts that
  /// the plan has room for.
  support::Result<void> write(const plan::Plan &plan, const plan::DraftTables &drafts = {});

  /// Puts the upload of the written plan on the stream, for all later runs there. Does nothing if no plan was
  /// written. The stream must not be capturing.
  support::Result<void> upload(cu::Stream stream);

  /// Makes the plan on the device follow its queries: later runs on the stream see as many tokens as the
  /// device memory `lengths` then says, within the plan's limits. Can be captured.
  support::Result<void> follow(const int *lengths, cu::Stream stream);

  /// Fits the plan on the device to the trees of its drafts, which only the device knows, for later runs on
  /// the stream. If the plan has drafts, this must come before its runs. Can be captured.
  support::Result<void> draft(const DraftInput &input, cu::Stream stream);

  /// Puts the attention of all queries on the stream. Does not wait or allocate, and uses no other stream. A
  /// captured run keeps its pointers, parameters and room, so the room is fixed from then on.
  support::Result<void> run(const CudaKernels &kernels, const CudaPointers &pointers, cu::Stream stream);

  /// The same, and makes the lists from each query's worth of its tokens. They stay until the next such run.
  /// Can be captured like run().
  support::Result<void> runSelecting(const CudaKernels &kernels, const CudaPointers &pointers,
                                     cu::Stream stream);

  /// The attention of all queries to the listed tokens only. The lists are those of the last selecting run,
  /// which must have used the same plan and page table; an error if there was none since the last upload. A
  /// captured run reads the lists of the selecting run that was captured before it. If callers give the
  /// lists, it reads CudaPointers::lists, which must be complete when it runs.
  support::Result<void> runSparse(const CudaKernels &kernels, const CudaPointers &pointers,
                                  cu::Stream stream);

  /// An error if the tree has changed since the plan on the device was made. Every run checks this; callers
  /// check before they read anything that belongs to the current tree.
  support::Result<void> checkFresh(const CudaKernels &kernels) const;

  /// Copies the lists to the host after the work that is already on the stream.
  support::Result<void> readLists(Selection &selection, cu::Stream stream) const;

  /// Drops the plan on the device: the next plan belongs to another tree.
  void forget() { onDevice_.isValid = isWritten_ = false; }

  /// How the lists of the plan on the device are cut, except lists that are read as unions; null: no run
  /// selects.
  const SparseSplit::Cut *sparseCut() const { return selecting_ ? &onDevice_.sparseCut : nullptr; }

  /// For tests: fills the scratch memory, including room for larger plans, with NaN, so that a read of a
  /// value that was not written is detected. No run may be in progress.
  support::Result<void> poison();

  /// An error if a replayed run found that its plan was older than the tree or did not serve a length, or if
  /// any run found a page that the cache does not have. Reports each fault once.
  support::Result<void> checkReplays();

  /// The smallest room for this plan.
  PlanRoom roomOf(const plan::Plan &plan);

  PlanWatch *watch() { return watch_ ? &*watch_ : nullptr; }
  const PlanRoom &room() const { return room_; }
  bool isFixed() const { return isFixed_; }
  /// Sets the room to exactly this, even after a capture. Drops written and uploaded plans, and waits for the
  /// device. Do not replay graphs that captured the old room.
  support::Result<void> setRoom(PlanRoom room);
  /// Whether a plan was written or uploaded, and a change of the room has not dropped it since.
  bool hasPlan() const { return isWritten_ || onDevice_.isValid; }

private:
  struct Facts { ///< counts of a plan, for launches
    std::uint64_t generation = 0;
    std::size_t bytes = 0;
    std::vector<int> items; ///< of each phase
    int queries = 0;
    int mergedQueries = 0;
    bool areByHead = false;                            ///< as in abi::AttendArgs
    int sparseItems = 0, sparseMerged = 0;             ///< of a plan that selects
    SparseSplit::Cut sparseCut = {};                   ///< likewise
    int unions = 0, unitedItems = 0, largestUnion = 0; ///< likewise
    bool hasDrafts = false;
    bool needsMask = false; ///< its drafts are not placed yet
    bool isValid = false;
  };
  struct Slot {
    explicit Slot(const std::shared_ptr<device::Device> &device)
        : memory(std::make_shared<device::HostMemory>(device)), copied(device) {}
    std::shared_ptr<device::HostMemory> memory; ///< shared with plans whose runs it holds
    FilledCounts filled;                        ///< of the memory
    device::Mark copied;
    Facts facts;
  };

  explicit CudaPlan(std::shared_ptr<const CudaKernels> kernels);
  /// The lists on the device, and the page table that they were made with.
  struct Lists {
    bool areThere = false;
    const int *pageTable = nullptr;
  };
  /// The queries to merge and their partials, as in abi::MergeArgs.
  struct Merged {
    std::size_t query, begin, slot; ///< sections
    int count;
  };

  support::Result<void> checkOnDevice() const;
  support::Result<void> checkSelecting(const CudaKernels &kernels) const;
  /// An error if callers give the lists but there are none, or if there are lists that no caller should give.
  support::Result<void> checkGiven(const CudaKernels &kernels, const CudaPointers &pointers) const;
  /// An error if there are no lists of the plan, or only lists of another page table.
  support::Result<void> checkLists(const CudaPointers &pointers, bool isCaptured) const;
  support::Result<void> lookAtLists(const CudaKernels &kernels, const CudaPointers &pointers,
                                    cu::Stream stream);
  /// An error if the plan, or a captured one of its room, may have larger unions than the kernels take.
  support::Result<void> checkUnions(const SelectingCudaKernels &own, bool isCaptured) const;
  /// The beginning of every run. Returns whether the stream is being captured.
  support::Result<bool> beginRun(const CudaKernels &kernels, const CudaPointers &pointers, cu::Stream stream);
  abi::AttendArgs argsOf(const CudaKernels &kernels, const CudaPointers &pointers, bool isCaptured) const;
  /// Launches the kernels of the full attention, or those that select.
  support::Result<void> launchPhases(const CudaKernels &kernels, const CudaPointers &pointers,
                                     const SelectingCudaKernels *selecting, bool isCaptured,
                                     cu::Stream stream);
  support::Result<void> launchMerge(const CudaKernels &kernels, const CudaPointers &pointers,
                                    const Merged &merged, bool isCaptured, cu::Stream stream);
  Merged mergedQueries(bool isCaptured) const;
  support::Result<void> checkRun(const CudaKernels &kernels, const CudaPointers &pointers) const;
  /// Launches the hook `query`, if these kernels have one, to make the queries that attend kernels read.
  support::Result<void> makeQueries(const CudaKernels &kernels, bool isCaptured, void *params,
                                    abi::AttendArgs &attend, cu::Stream stream) const;
  support::Result<void> waitForCopies() const;
  support::Result<void> reserve(const PlanRoom &room);

  std::shared_ptr<const CudaKernels> kernels_;
  PlanRoom room_;
  PlanSections sections_;
  bool isFixed_ = false;
  std::array<Slot, 2> slots_;
  std::size_t next_ = 0; ///< slot of the next write
  bool isWritten_ = false;
  Facts onDevice_;
  CacheBoxes cacheBoxes_;
  // Running kernels write to these marks. Memory below is destroyed before them and waits for the device.
  std::optional<PlanWatch> watch_;
  std::optional<PlanGrowth> growth_;
  std::optional<PageCheck> pageCheck_;
  std::optional<ListCheck> listCheck_;
  std::optional<PlanDrafts> drafts_; ///< created for the first plan with drafts
  device::Buffer plan_, partialOut_, partialLse_;
  device::Buffer queries_; ///< results of a hook, by caller's index
  std::optional<PlanSelecting> selecting_;
  Lists lists_, capturedLists_; ///< of the last run, and of the last captured one
};

} // namespace deft::exec
