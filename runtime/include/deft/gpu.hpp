#pragma once

#include <deft/attention.hpp>
#include <deft/plan.hpp>
#include <deft/selection.hpp>
#include <deft/sequence_tree.hpp>
#include <deft/tree.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// On NVIDIA GPUs of compute capability 8.0 and newer. The driver is looked for at run time: programs that
/// are linked with the library start on machines without one.
///
///   auto gpu = deft::Gpu::open(0).value();
///   auto attention = deft::GpuAttention::load(gpu, deft::loadPackage("my_model.deftpkg").value()).value();
///   auto plan = deft::GpuPlan::make(attention, tree).value();
///
///   plan.upload(stream).value();                          // one small copy on the stream
///   for (each layer)
///     plan.run(attention, {.q = q, .k = k, .v = v}, {.out = out}, stream).value();
///
///   tree.append(first, 1).value();                        // the next step
///   plan.advance(tree).value();                           // on the host, beside what the GPU still does
///   plan.upload(stream).value();
///
/// All pointers are to memory of the GPU. Everything that a call puts on the stream happens behind what is
/// there and before what comes; run() waits for nothing, allocates nothing and touches no other stream, so it
/// can be captured in a CUDA graph. A replay of the graph computes the plan that was uploaded last:
///
///   cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
///   ... all layers, with their plan.run(...) ...
///   cudaStreamEndCapture(stream, &graph);
///   for (each step) { change the tree; plan.advance(tree); plan.upload(stream); cudaGraphLaunch(exec,
///   stream); }
///
/// A capture fixes pointers, parameters and the room for plans (GpuPlan::reserve). A step that needs more
/// room is an error of advance(), and the graph must be captured again with a new plan. How large the memory
/// is that pointers lead to, nobody sees in a replay: it is to serve each plan that is uploaded for one, and
/// GpuAttentions with arrays of their own, which the graph reads, live as long as it.
namespace deft {

/// A stream of the device: a CUstream, or cudaStream_t, which is the same. Null: the default stream.
using GpuStream = void *;

struct GpuFacts {
  int index = 0; ///< as CUDA counts them
  std::string name;
  int major = 0; ///< compute capability
  int minor = 0;
  int multiprocessors = 0;
  std::uint64_t memoryBytes = 0;
  std::string architecture; ///< of the kernels that it gets, "sm_90a"; empty: it is too old for any
};

/// A GPU and its primary context, the one that the CUDA runtime uses, too. Cheap to copy; all threads may use
/// one. No call of the library changes which device a thread has current.
class DEFT_API Gpu {
public:
  /// All that the driver shows; an Environment error without a driver or a GPU.
  static Result<std::vector<GpuFacts>> list();
  static Result<Gpu> open(int index = 0);

  const GpuFacts &facts() const;

  struct Impl;
  explicit Gpu(std::shared_ptr<const Impl> impl); ///< for the library itself, as is impl()
  const Impl &impl() const { return *impl_; }

private:
  std::shared_ptr<const Impl> impl_;
};

struct GpuLoadOptions {
  /// A tree like those to come: the kernels are those that are tuned for its class; where nothing was tuned,
  /// of those that a package has (or of the default ones) the cheaper for it by the cost model. Its nodes
  /// need not be placed. Null: the first.
  const Tree *typicalTree = nullptr;
  /// Null: the defaults. What has no value yet gets one by GpuAttention::withParams() before a run.
  const Params *params = nullptr;
  /// For plans with PlanOptions::invariant: one kernel, whose sums have the same order whoever shares them.
  bool invariant = false;
};

/// An attention's kernels on a GPU, with values of its parameters. Immutable and cheap to copy; all threads
/// and streams may use one.
class DEFT_API GpuAttention {
public:
  /// Takes the kernels that the package has for the GPU; else they are compiled by NVRTC, or taken out of the
  /// cache of kernels that were (DEFT_CACHE_DIR). Waits for the device.
  static Result<GpuAttention> load(const Gpu &gpu, const Attention &attention,
                                   const GpuLoadOptions &options = {});

  /// These kernels with other values. Waits for the device where the attention has arrays.
  Result<GpuAttention> withParams(const Params &params) const;

  const Attention &attention() const;
  const Gpu &gpu() const;

  struct Impl;
  explicit GpuAttention(std::shared_ptr<const Impl> impl); ///< for the library itself, as is impl()
  const Impl &impl() const { return *impl_; }

private:
  std::shared_ptr<const Impl> impl_;
};

/// What a run reads, in memory of the GPU; it must stay until the run is done. q, k and v begin at multiples
/// of 16 bytes, and the strides are multiples of 16 elements, or of 8 where 16 does not divide head_dim; the
/// cache of a layer reaches over 128 GiB at most, or 64, which is that of 8-bit floats, too.
struct GpuInputs {
  const void *q =
      nullptr; ///< [query][query_heads][dim of q], queries in the tree's order; see Inputs::qStride
  const void *k = nullptr; ///< the cache of one layer; see CacheStrides
  const void *v = nullptr;
  /// See Inputs::pageTable; GpuPageTable keeps one. Entries of pages that a mask hides from all queries are
  /// not used (see Plan).
  const int *pageTable = nullptr;
  std::optional<CacheStrides> strides = {}; ///< none: Attention::strides
  /// See Inputs::cachePages. Of a contiguous cache what the run would read beyond them is an error; what a
  /// page table on the device says is looked at by plans with GpuPlanOptions::checksPages alone. Given where
  /// an attention has an array over the tokens of a paged cache, which must be as long as that.
  std::optional<std::int64_t> cachePages = {};
  std::optional<CacheStrides> vStrides = {}; ///< V's own; none: `strides` are those of both
  std::int64_t qStride = 0;                  ///< see Inputs::qStride
  /// Entries of pageTable: where it is given, fewer than the plan's tokens lie in are an error.
  std::optional<std::int64_t> tableEntries = {};
  /// See Inputs::checksFinite. Such a run waits for the stream and copies to the host what it has read and
  /// written, so it is an error in a capture. Keys and values of what requests have gained on the GPU alone
  /// (GpuPlan::follow), and of drafts, are not looked at.
  bool checksFinite = false;
};

/// Where a run writes, in memory of the GPU; out begins at a multiple of 16 bytes.
struct GpuOutputs {
  void *out = nullptr;        ///< [query][query_heads][dim of out]; see outStride
  float *lse = nullptr;       ///< [query][query_heads]; null: not wanted
  std::int64_t outStride = 0; ///< elements from a query to the next one in out, as qStride; 0: packed
};

/// The most that a plan may have: roomFor() says what batches need. Memory for partial results: partials *
/// query_heads * (2 * head_dim + 4) bytes.
struct GpuRoom {
  int queries = 0;
  int items = 0; ///< PlanSummary::items; where the config has two kernels, for each of them
  /// Stretches of tokens that items read: about (items + nodes + queries), three times as many where pages
  /// are of 16 tokens, and five of 32 or more. Where the config's order is `mixed`, one more for each 16
  /// tokens of each item that few queries see. Without room for these, the plan is in the order of the tree.
  int runs = 0;
  int partials = 0; ///< PlanSummary::partials
  /// Of plans with GpuPlanOptions::budget: tokens of the longest path, and stretches of tokens that lie side
  /// by side, a node's as a rule, of all queries' paths.
  int positions = 0, stretches = 0;
};

struct GpuPlanOptions {
  PlanOptions plan = {}; ///< `workers` is not used
  /// How many runs a replayed graph makes of a plan, one for each layer as a rule, where the host goes on to
  /// the next step's tree while they are under way. 0: it waits for them before it changes the tree, and any
  /// run that finds the tree changed is noticed as stale.
  int runsAhead = 0;
  /// Whether requests grow on the GPU, where only the GPU knows how long they are: see GpuPlan::follow. Makes
  /// a plan somewhat larger to copy.
  bool followsLengths = false;
  /// Tokens that a request may gain there before the next plan, at most 64. 0: to the end of its page, but at
  /// least 16.
  int slack = 0;
  /// For who suspects a page table that only the device has: before each run one kernel more looks at the
  /// pages that it will read, and GpuPlan::checkReplays says which entry names none that the cache has. Runs
  /// give GpuInputs::cachePages. It cannot keep the run from reading there.
  bool checksPages = false;
  /// For runs that select, and sparse ones, of an attention that selects: tokens of a list at most, one of
  /// the spec's (Attention::selects). 0: there are no such runs. Takes 4 bytes for each query, list and token
  /// of the longest path, and 8 for each token of a list. Not together with followsLengths, nor with drafts
  /// whose trees only the GPU knows.
  int budget = 0;
  /// For roomFor(), with a budget or of invariant plans: tokens of a path at most. 0: with a budget, one may
  /// have all the tokens; of an invariant plan's paths nothing is known.
  int longestPath = 0;
};

/// Room, and the memory that a plan of it takes.
struct GpuRoomSize {
  GpuRoom room;
  std::uint64_t deviceBytes = 0;
  std::uint64_t hostBytes = 0; ///< page-locked
};

/// Room for the plans of all batches of at most so many requests with so many queries in all, whose prefixes
/// are shared in whatever way, and of so many tokens, a shared one counted once: for GpuPlan::reserve, before
/// a graph is captured that is to serve them. A tree whose best plan needs more is planned in a way for which
/// this is enough; one whose paths have more than 32 nodes in the mean may not be, nor, where longestPath
/// does not say how long they are, an invariant plan of long paths that many queries share. (A Tree has as
/// many requests as it has leaves and nodes that queries end with.) The bytes are those of a plan without
/// drafts: the tables of PagedRequests::drafts come with the first that has some, for all that there is room
/// for.
DEFT_API Result<GpuRoomSize> roomFor(const GpuAttention &attention, int requests, int queries,
                                     std::int64_t tokens, const GpuPlanOptions &options = {});

/// The work list of one tree, made on the host and kept on the GPU. It is on one stream at a time: uploads,
/// runs and replays follow each other there. For one thread at a time; others, of the same tree and GPU too,
/// go on independently.
class DEFT_API GpuPlan {
public:
  /// Plans on the host; upload() comes next.
  static Result<GpuPlan> make(const GpuAttention &attention, const Tree &tree,
                              const GpuPlanOptions &options = {});

  GpuPlan(GpuPlan &&) noexcept;
  GpuPlan &operator=(GpuPlan &&) noexcept;
  ~GpuPlan(); ///< waits for the device

  /// Makes the plan fit the tree as it is now, on the host alone: the GPU may still be running the one
  /// before. An error where it exceeds the room that a graph has captured.
  Result<Advanced> advance(const Tree &tree);

  /// Puts the plan on the stream, for runs and replays behind it: one copy, which is not waited for. Does
  /// nothing where it is there already. Not on a stream that is being captured.
  Result<void> upload(GpuStream stream);

  /// For runs behind it on the stream, the path of each query has as many tokens as `lengths` says by then:
  /// an int32 for each query in the tree's order, in memory of the GPU. So a step in which all requests have
  /// grown needs nothing of the host: one call before the step's layers, in the same captured graph,
  ///
  ///   plan.follow(lengths, stream); for (each layer) { ... plan.run(...) ... }
  ///
  /// and each replay reads what the lengths are then. Tokens that are gained have their pages behind the
  /// leaf's in the page table, as in an engine's (PagedBatch); a SequenceTree moves a leaf that outgrows its
  /// place there, which takes a new plan. The lengths of the host's tree, which plans are made or advanced
  /// for, may be older, by at most GpuPlanOptions::slack tokens, but not greater. Where a length is less than
  /// the plan's, or greater than its slack allows, or a query cannot grow because another one ends with the
  /// same node, the plan does not follow, and checkReplays() says so. What a window hides by then is read
  /// until the next plan.
  Result<void> follow(const int *lengths, GpuStream stream);

  /// For runs behind it on the stream, which drafts of a PagedBatch see which: the mask, in memory of the
  /// GPU, as it is by then. Before the runs of each step, and as follow(), it can be captured with them: the
  /// host does not see the trees, and a replay reads what the mask and the lengths are then. Where rows are
  /// not those of a tree, each of the request's drafts sees itself alone, and checkReplays() says so, as it
  /// does of lengths. Lengths are those of requests, and what follow() says of older ones on the host is true
  /// of them.
  Result<void> draft(const DraftMask &mask, GpuStream stream);

  /// Computes the attention of all queries. `attention` is the one of make(), or another with the same heads,
  /// tiles and head_dim, as of other layers, whose mask hides no less: where the plan's bounds ask for
  /// parameters, with the same values. Errors are found before anything is enqueued: a plan of an older
  /// tree, one that was not uploaded, memory that is missing or crooked.
  Result<void> run(const GpuAttention &attention, const GpuInputs &inputs, const GpuOutputs &outputs,
                   GpuStream stream);

  /// As run(), of an attention whose spec says `select`, by a plan with a budget: the plan then has lists of
  /// the tokens that were worth most, which other layers read by runSparse(). The host does not see them:
  /// both may be captured with all other layers of a step.
  Result<void> runSelecting(const GpuAttention &attention, const GpuInputs &inputs, const GpuOutputs &outputs,
                            GpuStream stream);

  /// The attention of all queries to the tokens of their lists alone, which may be another layer's. An error
  /// where no run has selected since the last upload, or one with another page table has. In a graph it reads
  /// the lists of the run that selects before it there: capture one before the first sparse run.
  Result<void> runSparse(const GpuAttention &attention, const GpuInputs &inputs, const GpuOutputs &outputs,
                         GpuStream stream);

  /// Copies the lists to the host, to be looked at; waits for the stream. The selection is of the same
  /// attention and budget; no Runtime runs over it.
  Result<void> readLists(Selection &selection, GpuStream stream) const;

  /// An error where a replayed graph has run while the tree had changed since the upload: its result is that
  /// of the older tree. Or where follow() or draft() has met a length that the plan does not serve, or rows
  /// of drafts that are no tree's, or any run a page that the cache does not have
  /// (GpuPlanOptions::checksPages). Told once. What is still under way is noticed later.
  Result<void> checkReplays();

  /// Room for at least this (see roomFor), so that a graph captured now serves larger trees. Waits for the
  /// device; upload() follows. An error once a graph has captured the room.
  Result<void> reserve(const GpuRoom &room);
  GpuRoom room() const;

  /// Whether the tree has not changed since make() or advance().
  bool isCurrent() const;
  int queryCount() const;
  PlanSummary summary() const;

  /// Which config the plan has, and why. A tuned config is taken where it runs by the kernels that are
  /// loaded; once a graph has captured the plan's room, the config stays, and `why` says so where a tree fits
  /// only cut as the captured one was and read from the root.
  ConfigChoice choice() const;

  /// As Plan::picture.
  Result<std::string> picture(const Tree &tree) const;

  struct Impl;

private:
  explicit GpuPlan(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A page table on a GPU, that of a SequenceTree or of a host with pages of its own, at one address for good,
/// so that graphs may capture it. On one stream at a time, beside the plans there; for one thread at a time.
class DEFT_API GpuPageTable {
public:
  /// Room for a table of so many pages (SequenceTree::pageTable). Branches that share a page have an entry
  /// each, so it may need more than the pool has pages. Costs 20 bytes a page.
  static Result<GpuPageTable> make(const Gpu &gpu, int pages);

  GpuPageTable(GpuPageTable &&) noexcept;
  GpuPageTable &operator=(GpuPageTable &&) noexcept;
  ~GpuPageTable(); ///< waits for the device

  /// Brings it to what the sequences have now, for runs and replays behind it; only what changed travels.
  /// Always of the same sequences. Not on a stream that is being captured.
  Result<void> upload(const SequenceTree &sequences, GpuStream stream);

  /// For pages that the host gives out itself: brings the entries from `first` on to these, for runs and
  /// replays behind it; only those travel that are others than in the last upload. An entry that nobody has
  /// uploaded says nothing. A table is of sequences or of these. Not on a stream that is being captured.
  Result<void> upload(std::span<const int> entries, GpuStream stream, int first = 0);

  const int *data() const; ///< for GpuInputs::pageTable

  struct Impl;

private:
  explicit GpuPageTable(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace deft
