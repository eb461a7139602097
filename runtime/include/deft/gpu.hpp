#pragma once

#include <deft/c/capture.h>
#include <deft/c/gpu.h>
#include <deft/c/selection.h>
#include <deft/plan.hpp>
#include <deft/run_tensors.hpp>
#include <deft/selection.hpp>
#include <deft/sequence_tree.hpp>

/// On NVIDIA GPUs of compute capability 8.0 and newer. The driver is loaded at run time: programs linked with
/// the library also start on machines without one.
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
/// All pointers are to memory of the GPU. Calls enqueue their work on the stream, in stream order. run()
/// waits for nothing, allocates nothing and touches no other stream, so a CUDA graph can capture it. A replay
/// of the graph computes the plan that was uploaded last:
///
///   cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
///   ... all layers, with their plan.run(...) ...
///   cudaStreamEndCapture(stream, &graph);
///   for (each step) { change the tree; plan.advance(tree); plan.upload(stream); cudaGraphLaunch(exec,
///   stream); }
///
/// A capture fixes pointers, parameters and the room for plans (GpuPlan::reserve). A step that needs more
/// room is an error of advance(), and the graph must be captured again with a new plan. A replay cannot check
/// the size of memory behind pointers: make it large enough for each uploaded plan, and keep GpuAttentions
/// with arrays that the graph reads as long as the graph.
namespace deft {

/// A stream of the device: a CUstream, or cudaStream_t, which is the same. Null: the default stream.
using GpuStream = deft_gpu_stream;

struct GpuFacts {
  int index = 0; ///< as CUDA counts them
  std::string name;
  int major = 0; ///< compute capability
  int minor = 0;
  int multiprocessors = 0;
  std::uint64_t memoryBytes = 0;
  std::string architecture; ///< of its kernels, "sm_90a"; empty: it is too old
};

namespace detail {

inline GpuFacts publicOf(const deft_gpu_facts &own) {
  return {own.index,
          own.name ? own.name : "",
          own.capability_major,
          own.capability_minor,
          own.multiprocessors,
          own.memory_bytes,
          own.architecture ? own.architecture : ""};
}

} // namespace detail

/// A GPU and its primary context, which the CUDA runtime also uses. Cheap to copy; all threads may use it. No
/// call of the library changes which device a thread has current.
class Gpu {
public:
  /// All that the driver shows; an Environment error without a driver or a GPU.
  static Result<std::vector<GpuFacts>> list() {
    const auto made = detail::filled<deft_gpus *>(deft_gpu_list);
    if (!made)
      return made.error();
    const detail::Owned<deft_gpus, deft_free> own(*made);
    std::vector<GpuFacts> all;
    for (std::size_t i = 0; i < own->count; ++i)
      all.push_back(detail::publicOf(*own->gpus[i]));
    return all;
  }
  static Result<Gpu> open(int index = 0) {
    return detail::made<Gpu, deft_gpu>([&](auto to) { return deft_gpu_open(index, to); });
  }
  /// Takes a handle of <deft/deft.h>.
  explicit Gpu(deft_gpu *handle) : known_(std::make_shared<const Known>(handle)) {}

  const GpuFacts &facts() const { return known_->facts; }

  const deft_gpu *handle() const { return known_->handle.get(); } ///< for <deft/deft.h>

private:
  struct Known {
    detail::Owned<deft_gpu, deft_gpu_destroy> handle;
    GpuFacts facts;

    explicit Known(deft_gpu *of)
        : handle(of), facts(detail::publicOf(detail::factsOf<deft_gpu_facts>(
                          [&](auto to) { return deft_gpu_get_facts(of, to); }))) {}
  };
  std::shared_ptr<const Known> known_;
};

struct GpuLoadOptions {
  /// A tree like those to come: the kernels are those that are tuned for its class; where nothing was tuned,
  /// of those that a package has (or of the default ones) the cheaper for it by the cost model. Its nodes
  /// need not be placed. Null: the first.
  const Tree *typicalTree = nullptr;
  /// Null: the defaults. What has no value yet gets one by GpuAttention::withParams() before a run.
  const Params *params = nullptr;
  /// For plans with PlanOptions::invariant: one kernel, whose sums have the same order however they are
  /// shared.
  bool invariant = false;
};

/// An attention's kernels on a GPU, with values of its parameters. Immutable and cheap to copy; all threads
/// and streams may use one.
class GpuAttention {
public:
  /// Takes the kernels that the package has for the GPU; else they are compiled by NVRTC, or taken out of the
  /// cache of kernels that were (DEFT_CACHE_DIR). Waits for the device.
  static Result<GpuAttention> load(const Gpu &gpu, const Attention &attention,
                                   const GpuLoadOptions &options = {}) {
    deft_gpu_load_options own{};
    own.size = sizeof own;
    own.typical_tree = options.typicalTree ? options.typicalTree->handle() : nullptr;
    own.params = detail::handleOf(options.params);
    own.is_invariant = options.invariant;
    const auto made = detail::filled<deft_gpu_attention *>(
        [&](auto to) { return deft_gpu_attention_load(gpu.handle(), attention.handle(), &own, to); });
    return made ? Result<GpuAttention>(GpuAttention(*made, gpu, attention)) : made.error();
  }

  /// These kernels with other values. Waits for the device where the attention has arrays.
  Result<GpuAttention> withParams(const Params &params) const {
    const auto made = detail::filled<deft_gpu_attention *>(
        [&](auto to) { return deft_gpu_attention_with_params(handle(), params.handle(), to); });
    return made ? Result<GpuAttention>(GpuAttention(*made, gpu_, attention_)) : made.error();
  }

  const Attention &attention() const { return attention_; }
  const Gpu &gpu() const { return gpu_; }

  const deft_gpu_attention *handle() const { return handle_.get(); } ///< for <deft/deft.h>

private:
  GpuAttention(deft_gpu_attention *handle, Gpu gpu, Attention attention)
      : handle_(handle, deft_gpu_attention_destroy), gpu_(std::move(gpu)), attention_(std::move(attention)) {}

  std::shared_ptr<const deft_gpu_attention> handle_;
  Gpu gpu_;
  Attention attention_;
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
  /// Of a latent cache whose rotary columns lie in a tensor of their own: these, and k has the others alone.
  const void *kRope = nullptr;
  std::optional<CacheStrides> kRopeStrides = {}; ///< its own; none: its tokens lie side by side
  /// Of GpuPlan::runSparse() where the spec says `by = caller`: deft_inputs::lists, [query][budget].
  const int *lists = nullptr;
  int budget = 0; ///< entries of a list, as many as GpuPlanOptions::budget
};

/// Where a run writes, in memory of the GPU; out begins at a multiple of 16 bytes.
struct GpuOutputs {
  void *out = nullptr;        ///< [query][query_heads][dim of out]; see outStride
  float *lse = nullptr;       ///< [query][query_heads]; null: not wanted
  std::int64_t outStride = 0; ///< elements from a query to the next one in out, as qStride; 0: packed
};

/// The most that a plan may have, as deft_gpu_room: roomFor() says what batches need.
struct GpuRoom {
  int queries = 0;
  int items = 0;    ///< PlanSummary::items; where the config has two kernels, for each of them
  int runs = 0;     ///< stretches of tokens that items read
  int partials = 0; ///< PlanSummary::partials
  /// Of plans with GpuPlanOptions::budget: tokens of the longest path, and stretches of tokens that lie side
  /// by side, a node's as a rule, of all queries' paths.
  int positions = 0, stretches = 0;
};

/// As deft_gpu_plan_options, which says what each means.
struct GpuPlanOptions {
  PlanOptions plan = {}; ///< `workers` is not used
  int runsAhead = 0;
  bool followsLengths = false; ///< whether requests grow on the GPU: see GpuPlan::follow
  int slack = 0;
  bool checksPages = false;
  int budget = 0;      ///< of lists of selected tokens; 0: there are none
  int longestPath = 0; ///< for roomFor()
  int listOverlap = 0; ///< of lists by `caller`, in percent
};

/// Room, and the memory that a plan of it takes.
struct GpuRoomSize {
  GpuRoom room;
  std::uint64_t deviceBytes = 0;
  std::uint64_t hostBytes = 0; ///< page-locked
};

namespace detail {

/// Options of C, which point to each other.
struct GpuOptionsOfC {
  deft_plan_options plan;
  deft_gpu_plan_options own = {};

  explicit GpuOptionsOfC(const GpuPlanOptions &options) : plan(optionsOf(options.plan)) {
    own.size = sizeof own;
    own.plan = &plan;
    own.runs_ahead = options.runsAhead;
    own.follows_lengths = options.followsLengths;
    own.slack = options.slack;
    own.checks_pages = options.checksPages;
    own.budget = options.budget;
    own.longest_path = options.longestPath;
    own.list_overlap = options.listOverlap;
  }
  GpuOptionsOfC(const GpuOptionsOfC &) = delete;
  GpuOptionsOfC &operator=(const GpuOptionsOfC &) = delete;
};

inline GpuRoom publicOf(const deft_gpu_room &own) {
  return {own.queries, own.items, own.runs, own.partials, own.positions, own.stretches};
}

} // namespace detail

/// As deft_gpu_room_for: room for the plans of all batches of at most so many requests with so many queries
/// in all and of so many tokens, a shared one counted once, for GpuPlan::reserve.
inline Result<GpuRoomSize> roomFor(const GpuAttention &attention, int requests, int queries,
                                   std::int64_t tokens, const GpuPlanOptions &options = {}) {
  const detail::GpuOptionsOfC of(options);
  deft_gpu_room room{};
  deft_gpu_room_size bytes{};
  room.size = sizeof room;
  bytes.size = sizeof bytes;
  const auto found =
      detail::done(deft_gpu_room_for(attention.handle(), requests, queries, tokens, &of.own, &room, &bytes));
  if (!found)
    return found.error();
  return GpuRoomSize{detail::publicOf(room), bytes.device_bytes, bytes.host_bytes};
}

/// The work list of one tree, made on the host and kept on the GPU. It is on one stream at a time: uploads,
/// runs and replays follow each other there. For one thread at a time; other plans, also of the same tree and
/// GPU, are independent.
class GpuPlan {
public:
  /// Plans on the host; upload() comes next.
  static Result<GpuPlan> make(const GpuAttention &attention, const Tree &tree,
                              const GpuPlanOptions &options = {}) {
    const detail::GpuOptionsOfC of(options);
    return detail::made<GpuPlan, deft_gpu_plan>(
        [&](auto to) { return deft_gpu_plan_make(attention.handle(), tree.handle(), &of.own, to); });
  }
  /// Takes a handle of <deft/deft.h>.
  explicit GpuPlan(deft_gpu_plan *handle) : handle_(handle) {}

  /// Brings the plan to the tree's current state, only on the host: the GPU may still be running the one
  /// before. An error if it exceeds the room of a captured graph.
  Result<Advanced> advance(const Tree &tree) {
    deft_advanced advanced = 0;
    const deft_status status = deft_gpu_plan_advance(handle(), tree.handle(), &advanced);
    return detail::advancedOf(status, advanced);
  }

  /// Enqueues one copy of the plan on the stream, for later runs and replays. Does nothing if the GPU already
  /// has it. Not on a stream that is being captured.
  Result<void> upload(GpuStream stream) { return detail::done(deft_gpu_plan_upload(handle(), stream)); }

  /// For runs behind it on the stream, the path of each query has as many tokens as `lengths` says by then:
  /// an int32 for each query in the tree's order, in memory of the GPU. So a step in which all requests have
  /// grown needs nothing of the host: one call before the step's layers, in the same captured graph,
  ///
  ///   plan.follow(lengths, stream); for (each layer) { ... plan.run(...) ... }
  ///
  /// and each replay reads what the lengths are then. deft_gpu_plan_follow says how far a plan follows.
  Result<void> follow(const int *lengths, GpuStream stream) {
    const std::int64_t queries = queryCount();
    deft_tensor own{};
    own.size = sizeof own;
    own.data = const_cast<int *>(lengths);
    own.shape = &queries;
    own.dtype = DEFT_I32;
    own.ndim = 1;
    return detail::done(deft_gpu_plan_follow(handle(), &own, stream));
  }

  /// For runs behind it on the stream, which drafts of a PagedBatch see which: the mask, in memory of the
  /// GPU, as it is by then. Before the runs of each step, and as follow(), it can be captured with them: the
  /// host does not see the trees, and a replay reads what the mask and the lengths are then. Where rows are
  /// not those of a tree, each of the request's drafts sees itself alone, and checkReplays() says so, as it
  /// does of lengths.
  Result<void> draft(const DraftMask &mask, GpuStream stream) {
    return detail::done(deft_gpu_plan_draft(handle(), detail::Mask(mask).get(), stream));
  }

  /// Computes the attention of all queries. `attention` is the one of make(), or another with the same heads,
  /// tiles and head_dim, as of other layers, whose mask hides no less: where the plan's bounds ask for
  /// parameters, with the same values. Errors are found before anything is enqueued: a plan of an older
  /// tree, one that was not uploaded, memory that is missing or not aligned.
  Result<void> run(const GpuAttention &attention, const GpuInputs &inputs, const GpuOutputs &outputs,
                   GpuStream stream) {
    return runBy(deft_gpu_plan_run, attention, inputs, outputs, stream);
  }

  /// As run(), of an attention whose spec says `select`, by a plan with a budget: the plan then has lists of
  /// the tokens that were worth most, which other layers read by runSparse(). The host does not see them:
  /// both may be captured with all other layers of a step.
  Result<void> runSelecting(const GpuAttention &attention, const GpuInputs &inputs, const GpuOutputs &outputs,
                            GpuStream stream) {
    return runBy(deft_gpu_plan_run_selecting, attention, inputs, outputs, stream);
  }

  /// The attention of all queries to only the tokens of their lists, which may be another layer's. An error
  /// where no run has selected since the last upload, or one with another page table has. In a graph it reads
  /// the lists of the run that selects before it there: capture one before the first sparse run. Where the
  /// spec says `by = caller`, it reads what GpuInputs::lists hold by then, and needs nothing before it.
  Result<void> runSparse(const GpuAttention &attention, const GpuInputs &inputs, const GpuOutputs &outputs,
                         GpuStream stream) {
    return runBy(deft_gpu_plan_run_sparse, attention, inputs, outputs, stream);
  }

  /// Copies the lists to the host, to be looked at; waits for the stream. The selection is of the same
  /// attention and budget; no Runtime runs over it.
  Result<void> readLists(Selection &selection, GpuStream stream) const {
    return detail::done(deft_gpu_plan_read_lists(handle(), selection.handle(), stream));
  }

  /// As deft_gpu_plan_check_replays: an error where a replayed graph ran over what its plan did not serve.
  Result<void> checkReplays() { return detail::done(deft_gpu_plan_check_replays(handle())); }

  /// Between replays of a captured graph: writes the step as the GPU has it, where steps are captured
  /// (capture.hpp). Waits for the stream.
  Result<void> captureReplay(GpuStream stream) {
    return detail::done(deft_gpu_plan_capture_replay(handle(), stream));
  }

  /// Room for at least this (see roomFor), so that a graph captured now serves larger trees. Waits for the
  /// device; upload() follows. An error once a graph has captured the room.
  Result<void> reserve(const GpuRoom &room) {
    deft_gpu_room own{};
    own.size = sizeof own;
    own.queries = room.queries;
    own.items = room.items;
    own.runs = room.runs;
    own.partials = room.partials;
    own.positions = room.positions;
    own.stretches = room.stretches;
    return detail::done(deft_gpu_plan_reserve(handle(), &own));
  }
  GpuRoom room() const {
    return detail::publicOf(
        detail::factsOf<deft_gpu_room>([&](auto to) { return deft_gpu_plan_get_room(handle(), to); }));
  }

  /// Whether the tree has not changed since make() or advance().
  bool isCurrent() const { return deft_gpu_plan_is_current(handle()) != 0; }
  int queryCount() const { return deft_gpu_plan_query_count(handle()); }
  PlanSummary summary() const {
    return detail::summaryOf(
        detail::factsOf<deft_plan_summary>([&](auto to) { return deft_gpu_plan_get_summary(handle(), to); }));
  }

  /// The plan's config, and why. A tuned config is used if the loaded kernels can run it. Once a graph has
  /// captured the plan's room, the config stays; `why` says so if a tree fits only when it is cut like the
  /// captured one and read from the root.
  ConfigChoice choice() const {
    return detail::choiceOf([&](auto to) { return deft_gpu_plan_get_choice(handle(), to); });
  }

  /// As Plan::picture.
  Result<std::string> picture(const Tree &tree) const {
    return detail::text([&](auto to) { return deft_gpu_plan_get_picture(handle(), tree.handle(), to); });
  }

  /// As Plan::page.
  Result<std::string> page(const Tree &tree) const {
    return detail::text(
        [&](auto to) { return deft_gpu_plan_get_page(handle(), tree.handle(), nullptr, nullptr, to); });
  }
  Result<std::string> page(const Tree &tree, const GpuPlan &other, const Tree &otherTree) const {
    return detail::text([&](auto to) {
      return deft_gpu_plan_get_page(handle(), tree.handle(), other.handle(), otherTree.handle(), to);
    });
  }

  const deft_gpu_plan *handle() const { return handle_.get(); } ///< for <deft/deft.h>
  deft_gpu_plan *handle() { return handle_.get(); }

private:
  template <typename Call>
  Result<void> runBy(Call call, const GpuAttention &attention, const GpuInputs &inputs,
                     const GpuOutputs &outputs, GpuStream stream) {
    detail::RunMemory memory;
    memory.q = inputs.q, memory.k = inputs.k, memory.v = inputs.v;
    memory.pageTable = inputs.pageTable, memory.tableEntries = inputs.tableEntries;
    memory.cachePages = inputs.cachePages;
    memory.strides = inputs.strides, memory.vStrides = inputs.vStrides;
    memory.kRope = inputs.kRope, memory.kRopeStrides = inputs.kRopeStrides;
    memory.qStride = inputs.qStride, memory.outStride = outputs.outStride;
    memory.checksFinite = inputs.checksFinite;
    memory.lists = inputs.lists, memory.budget = inputs.budget;
    memory.out = outputs.out, memory.lse = outputs.lse;
    const detail::RunTensors tensors(attention.attention(), queryCount(), memory);
    return detail::done(call(handle(), attention.handle(), tensors.inputs(), tensors.outputs(), stream));
  }

  detail::Owned<deft_gpu_plan, deft_gpu_plan_destroy> handle_;
};

/// A page table on a GPU, that of a SequenceTree or of a host with pages of its own, at one address for good,
/// so that graphs may capture it. On one stream at a time, beside the plans there; for one thread at a time.
class GpuPageTable {
public:
  /// Room for a table of so many pages (SequenceTree::pageTable). Branches that share a page have an entry
  /// each, so it may need more than the pool has pages. Costs 20 bytes a page.
  static Result<GpuPageTable> make(const Gpu &gpu, int pages) {
    return detail::made<GpuPageTable, deft_gpu_page_table>(
        [&](auto to) { return deft_gpu_page_table_make(gpu.handle(), pages, to); });
  }
  /// Takes a handle of <deft/deft.h>.
  explicit GpuPageTable(deft_gpu_page_table *handle) : handle_(handle) {}

  /// Brings it to the sequences' current state, for later runs and replays; only changes are copied. Always
  /// of the same sequences. Not on a stream that is being captured.
  Result<void> upload(const SequenceTree &sequences, GpuStream stream) {
    return detail::done(deft_gpu_page_table_upload(handle_.get(), sequences.handle(), stream));
  }

  /// For pages that the host gives out itself: brings the entries from `first` on to these, for runs and
  /// replays behind it; only those travel that are others than in the last upload. An entry that nobody has
  /// uploaded says nothing. A table is of sequences or of these. Not on a stream that is being captured.
  Result<void> upload(std::span<const int> entries, GpuStream stream, int first = 0) {
    return detail::done(
        deft_gpu_page_table_upload_entries(handle_.get(), first, entries.data(), entries.size(), stream));
  }

  const int *data() const { return deft_gpu_page_table_data(handle_.get()); } ///< for GpuInputs::pageTable

private:
  detail::Owned<deft_gpu_page_table, deft_gpu_page_table_destroy> handle_;
};

} // namespace deft
