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
  std::optional<PlanRoom> room; ///< and no more than that; none: it grows until a graph captures it
  /// Whether runs are refused, and replayed ones noticed, when the tree has changed since the plan was put on
  /// the stream; the tree's generation is to be stored in watch().treeGeneration().
  bool isWatched = false;
  /// Whether plans follow lengths that are on the device: see follow().
  std::optional<GrowthRules> growth = {};
  /// Whether each run is preceded by a look at the pages that it will read, as far as the cache is paged, or
  /// at the lists that it is handed.
  bool checksPages = false;
  /// So many runs of a plan, layers as a rule, are replayed once for it: they may find the tree changed
  /// already, because the host has gone on to the next step. 0: it never does while a run is under way.
  int freeRuns = 0;
  /// Tokens of a list, where runs are to select: see runSelecting(). 0: none does.
  int budget = 0;
  /// Of lists that a caller hands over: UnionShape::overlap. 0: each is read by itself.
  double listOverlap = 0;
  /// Whether what is read of lists is cut alike for every number of queries.
  bool isInvariant = false;
  /// What lists are cut by in place of what the kernels were loaded with; for who measures.
  std::optional<std::vector<config::SparseCut>> sparseCuts = {};
};

/// The plan that a device has at hand, and the scratch memory of its runs. Plans have two buffers of
/// page-locked memory: while one is copied, the next is written in the other; one that has been copied is
/// changed where it is.
///
///   lendRoom(runs)   before the plan is made, so that write() need not copy its runs
///   write(plan)      on the host only
///   upload(stream)   one copy on the stream
///   run(..., stream) as often as there are layers; can be captured, and then replayed after every upload
///
/// A plan is on one stream at a time: uploads and runs, replayed ones too, follow each other there. Calls are
/// for one thread at a time, but several of these on one device know nothing of each other.
class CudaPlan {
public:
  /// For the kernels of this variant and config, and those of others that differ in hooks alone.
  static support::Result<std::unique_ptr<CudaPlan>> create(std::shared_ptr<const CudaKernels> kernels,
                                                           const CudaPlanOptions &options);
  ~CudaPlan(); ///< waits for its copies, and for the device, which may be running it
  CudaPlan(const CudaPlan &) = delete;
  CudaPlan &operator=(const CudaPlan &) = delete;

  /// Before a plan is made or advanced that write() is to take: its runs may then stand where they are copied
  /// from, once. Only one plan at a time, and one that is not written after all is gone with the next call.
  void lendRoom(plan::RunList &runs);

  /// Takes this plan for the next upload, in place of one that was not uploaded yet. Waits only where the
  /// copy of the last plan but one has not been made yet. Where there is no room, and it may grow, that waits
  /// for the device; else it is an error that says of what there is too much, and nothing has changed.
  /// `drafts` are those that the plan has room for.
  support::Result<void> write(const plan::Plan &plan, const plan::DraftTables &drafts = {});

  /// Puts the plan that was written on the stream, to be used by the runs behind it; nothing where none was.
  /// Not on a stream that is being captured.
  support::Result<void> upload(cu::Stream stream);

  /// Lets the plan on the device follow its queries: for runs behind it on the stream, each sees as many
  /// tokens as `lengths`, which are on the device, say by then, up to what the plan serves. Can be captured.
  support::Result<void> follow(const int *lengths, cu::Stream stream);

  /// Makes the plan on the device that of the trees that the drafts have there: for runs behind it on the
  /// stream, and before them where the plan has drafts. Can be captured.
  support::Result<void> draft(const DraftInput &input, cu::Stream stream);

  /// Puts the attention of all queries on the stream. Waits for nothing, allocates nothing, touches no other
  /// stream. A captured one keeps the pointers, parameters and room that it had: the room is fixed then.
  support::Result<void> run(const CudaKernels &kernels, const CudaPointers &pointers, cu::Stream stream);

  /// The same, and lists of what each query's tokens are worth, which stay until the next such run. Can be
  /// captured as run().
  support::Result<void> runSelecting(const CudaKernels &kernels, const CudaPointers &pointers,
                                     cu::Stream stream);

  /// The attention of all queries to the tokens of their lists alone, of the last run that selected, which
  /// was of the same plan and page table: an error where there is none since the last upload. A captured one
  /// reads those of the run that was captured before it. Of an attention whose lists are a caller's it reads
  /// CudaPointers::lists, which hold by then what they are to have.
  support::Result<void> runSparse(const CudaKernels &kernels, const CudaPointers &pointers,
                                  cu::Stream stream);

  /// An error where the tree has changed since the plan on the device was made. Each run asks this, too;
  /// callers ask before they look at what belongs to the tree as it is now.
  support::Result<void> checkFresh(const CudaKernels &kernels) const;

  /// Copies the lists to the host, when the stream has done what is on it.
  support::Result<void> readLists(Selection &selection, cu::Stream stream) const;

  /// The plan on the device is of no tree any more: the next one is another's.
  void forget() { onDevice_.isValid = isWritten_ = false; }

  /// How the lists of the plan on the device are cut, of those that are not read as unions; null: none
  /// selects.
  const SparseSplit::Cut *sparseCut() const { return selecting_ ? &onDevice_.sparseCut : nullptr; }

  /// For tests: fills the scratch memory, also that of larger plans, with NaN, so that what is read there
  /// without having been written is seen. No run may be under way.
  support::Result<void> poison();

  /// An error where a replayed run has found that its plan was older than the tree, or a length that its plan
  /// does not serve, or where any run has met a page that the cache does not have; told once.
  support::Result<void> checkReplays();

  /// What this plan needs, and no more.
  PlanRoom roomOf(const plan::Plan &plan);

  PlanWatch *watch() { return watch_ ? &*watch_ : nullptr; }
  const PlanRoom &room() const { return room_; }
  bool isFixed() const { return isFixed_; }
  /// Makes the room exactly this, captured or not; what was written or uploaded is gone. Waits for the
  /// device. Graphs that captured the former room are not to be replayed any more.
  support::Result<void> setRoom(PlanRoom room);
  /// Whether one was written or uploaded, and not lost with its room since.
  bool hasPlan() const { return isWritten_ || onDevice_.isValid; }

private:
  struct Facts { ///< of a plan, for who launches
    std::uint64_t generation = 0;
    std::size_t bytes = 0;
    std::vector<int> items; ///< of each phase
    int queries = 0;
    int mergedQueries = 0;
    bool areByHead = false;                            ///< as abi::AttendArgs has it
    int sparseItems = 0, sparseMerged = 0;             ///< of a plan that selects
    SparseSplit::Cut sparseCut = {};                   ///< likewise
    int unions = 0, unitedItems = 0, largestUnion = 0; ///< likewise
    bool hasDrafts = false;
    bool needsMask = false; ///< of its drafts
    bool isValid = false;
  };
  struct Slot {
    explicit Slot(const std::shared_ptr<device::Device> &device)
        : memory(std::make_shared<device::HostMemory>(device)), copied(device) {}
    std::shared_ptr<device::HostMemory> memory; ///< of plans that have their runs there, too
    device::Mark copied;
    Facts facts;
  };

  explicit CudaPlan(std::shared_ptr<const CudaKernels> kernels);
  /// Which lists the device has: the page table that they were made with.
  struct Lists {
    bool areThere = false;
    const int *pageTable = nullptr;
  };
  /// Lists of queries, and of partials for each, as abi::MergeArgs has them.
  struct Merged {
    std::size_t query, begin, slot; ///< sections
    int count;
  };

  support::Result<void> checkOnDevice() const;
  support::Result<void> checkSelecting(const CudaKernels &kernels) const;
  /// An error where lists are a caller's and there are none, or the other way round.
  support::Result<void> checkGiven(const CudaKernels &kernels, const CudaPointers &pointers) const;
  /// An error where there are no lists of the plan, or lists of another page table.
  support::Result<void> checkLists(const CudaPointers &pointers, bool isCaptured) const;
  support::Result<void> lookAtLists(const CudaKernels &kernels, const CudaPointers &pointers,
                                    cu::Stream stream);
  /// An error where the plan has larger unions than kernels take, or a captured one may have.
  support::Result<void> checkUnions(const SelectingCudaKernels &own, bool isCaptured) const;
  /// What all runs begin with: whether the stream is being captured.
  support::Result<bool> beginRun(const CudaKernels &kernels, const CudaPointers &pointers, cu::Stream stream);
  abi::AttendArgs argsOf(const CudaKernels &kernels, const CudaPointers &pointers, bool isCaptured) const;
  /// The full attention's kernels, or those that select.
  support::Result<void> launchPhases(const CudaKernels &kernels, const CudaPointers &pointers,
                                     const SelectingCudaKernels *selecting, bool isCaptured,
                                     cu::Stream stream);
  support::Result<void> launchMerge(const CudaKernels &kernels, const CudaPointers &pointers,
                                    const Merged &merged, bool isCaptured, cu::Stream stream);
  Merged mergedQueries(bool isCaptured) const;
  support::Result<void> checkRun(const CudaKernels &kernels, const CudaPointers &pointers) const;
  /// Has the hook `query` make what attend kernels are to read, where these kernels have one.
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
  // Runs under way write to these marks: memory of the device, which waits for them, is given back before.
  std::optional<PlanWatch> watch_;
  std::optional<PlanGrowth> growth_;
  std::optional<PageCheck> pageCheck_;
  std::optional<ListCheck> listCheck_;
  std::optional<PlanDrafts> drafts_; ///< as soon as there is a plan with any
  device::Buffer plan_, partialOut_, partialLse_;
  device::Buffer queries_; ///< that a hook has made, by caller's index
  std::optional<PlanSelecting> selecting_;
  Lists lists_, capturedLists_; ///< of the last run, and of the last captured one
};

} // namespace deft::exec
