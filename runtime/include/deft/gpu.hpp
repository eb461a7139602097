#pragma once

#include <deft/c/capture.h>
#include <deft/c/gpu.h>
#include <deft/c/selection.h>
#include <deft/plan.hpp>
#include <deft/run_tensors.hpp>
#include <deft/selection.hpp>
#include <deft/sequence_tree.hpp>

/// Runs on NVIDIA GPUs of compute capability 8.0 and newer. The driver is loaded at run time: programs linked
/// with the library also start on machines without one.
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
///   plan.advance(tree).value();                           // on the host, while the GPU still works
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
  int index = 0; ///< CUDA's number
  std::string name;
  int major = 0; ///< compute capability
  int minor = 0;
  int multiprocessors = 0;
  std::uint64_t memoryBytes = 0;
  std::string architecture; ///< of its kernels, "sm_90a"; empty: the GPU is too old
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
/// call of the library changes a thread's current device.
class Gpu {
public:
  /// Lists all GPUs of the driver; an Environment error without a driver or a GPU.
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
  /// A tree like those to come: loads the kernels that are tuned for its class. If nothing was tuned, loads
  /// the package's (or default) kernels that are cheapest for it by the cost model. Its nodes need not be
  /// placed. Null: the first.
  const Tree *typicalTree = nullptr;
  /// Null: the defaults. Set missing values by GpuAttention::withParams() before a run.
  const Params *params = nullptr;
  /// For plans with PlanOptions::invariant: a single kernel, which always adds in the same
  /// order.
  bool invariant = false;
};

/// An attention's kernels on a GPU, with values of its parameters. Immutable and cheap to copy; all threads
/// and streams may use it.
class GpuAttention {
public:
  /// Takes the package's kernels for the GPU. If it has none, NVRTC compiles them, or they come from the
  /// cache of compiled kernels (DEFT_CACHE_DIR). Waits for the device.
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

  /// Makes the same kernels with other values. Waits for the device if the attention has arrays.
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

/// The inputs of a run, in memory of the GPU that must stay until the run is done. q, k and v begin at
/// multiples of 16 bytes; strides are multiples of 16 elements, or of 8 if 16 does not divide head_dim. The
/// cache of one layer spans at most 128 GiB, or 64 GiB with strides of 8 or with 8-bit floats.
struct GpuInputs {
  const void *q =
      nullptr; ///< [query][query_heads][dim of q], queries in the tree's order; see Inputs::qStride
  const void *k = nullptr; ///< the cache of one layer; see CacheStrides
  const void *v = nullptr;
  /// See Inputs::pageTable; a GpuPageTable can hold one. Entries of pages that a mask hides from all queries
  /// are not read (see Plan).
  const int *pageTable = nullptr;
  std::optional<CacheStrides> strides = {}; ///< none: Attention::strides
  /// See Inputs::cachePages. In a contiguous cache, a read beyond them is an error. The entries of a page
  /// table on the device are checked only by plans with GpuPlanOptions::checksPages. Required for an array
  /// over the tokens of a paged cache, which must be as long as the cache.
  std::optional<std::int64_t> cachePages = {};
  std::optional<CacheStrides> vStrides = {}; ///< V's own; none: `strides` are those of both
  std::int64_t qStride = 0;                  ///< see Inputs::qStride
  /// The number of entries of pageTable; if given, too few for the plan's tokens are an error.
  std::optional<std::int64_t> tableEntries = {};
  RunSettings settings = {}; ///< all zero: the defaults
  /// The rotary columns of a latent cache, if they are a separate tensor; k then has only the others.
  const void *kRope = nullptr;
  std::optional<CacheStrides> kRopeStrides = {}; ///< of kRope; none: packed
  /// For GpuPlan::runSparse() if the spec says `by = caller`: deft_inputs::lists, [query][budget].
  const int *lists = nullptr;
  int budget = 0; ///< entries of a list; equals GpuPlanOptions::budget
};

/// The outputs of a run, in memory of the GPU; out begins at a multiple of 16 bytes.
struct GpuOutputs {
  void *out = nullptr;        ///< [query][query_heads][dim of out]; see outStride
  float *lse = nullptr;       ///< [query][query_heads]; null: not written
  std::int64_t outStride = 0; ///< elements between consecutive queries in out, as qStride; 0: packed
};

/// The largest plan, as in deft_gpu_room; roomFor() computes it for batches.
struct GpuRoom {
  int queries = 0;
  int items = 0;    ///< PlanSummary::items; for each kernel, if the config has two
  int runs = 0;     ///< stretches of tokens that items read
  int partials = 0; ///< PlanSummary::partials
  /// For plans with GpuPlanOptions::budget: tokens of the longest path, and stretches of consecutive tokens
  /// (usually nodes) of all queries' paths.
  int positions = 0, stretches = 0;
};

/// The same as deft_gpu_plan_options, which explains each field.
struct GpuPlanOptions {
  PlanOptions plan = {}; ///< `workers` is not used
  int runsAhead = 0;
  bool followsLengths = false; ///< whether requests grow on the GPU: see GpuPlan::follow
  int slack = 0;
  bool checksPages = false;
  int budget = 0;      ///< of lists of selected tokens; 0: no selection
  int longestPath = 0; ///< for roomFor()
  int listOverlap = 0; ///< of lists by `caller`, in percent
};

/// A room, and the memory of a plan with that room.
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

/// Works like deft_gpu_room_for: computes room for the plans of all batches of at most `requests` requests,
/// `queries` queries in all, and `tokens` tokens (a shared one counted once), for GpuPlan::reserve.
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
  /// Makes a plan on the host. Call upload() next.
  static Result<GpuPlan> make(const GpuAttention &attention, const Tree &tree,
                              const GpuPlanOptions &options = {}) {
    const detail::GpuOptionsOfC of(options);
    return detail::made<GpuPlan, deft_gpu_plan>(
        [&](auto to) { return deft_gpu_plan_make(attention.handle(), tree.handle(), &of.own, to); });
  }
  /// Takes a handle of <deft/deft.h>.
  explicit GpuPlan(deft_gpu_plan *handle) : handle_(handle) {}

  /// Updates the plan to the tree's current state, only on the host: the GPU may still be running the plan
  /// before. It is an error if the plan exceeds the room of a captured graph.
  Result<Advanced> advance(const Tree &tree) {
    deft_advanced advanced = 0;
    const deft_status status = deft_gpu_plan_advance(handle(), tree.handle(), &advanced);
    return detail::advancedOf(status, advanced);
  }

  /// Enqueues one copy of the plan on the stream, for later runs and replays. Does nothing if the GPU already
  /// has it. The stream must not be capturing.
  Result<void> upload(GpuStream stream) { return detail::done(deft_gpu_plan_upload(handle(), stream)); }

  /// In later runs on the stream, the path of each query has as many tokens as `lengths` says at that time:
  /// one int32 for each query in the tree's order, in memory of the GPU. So a step in which all requests have
  /// grown needs nothing from the host: capture one call before the step's layers,
  ///
  ///   plan.follow(lengths, stream); for (each layer) { ... plan.run(...) ... }
  ///
  /// and each replay reads the current lengths. deft_gpu_plan_follow describes the limits.
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

  /// Sets for later runs on the stream which drafts of a PagedBatch see which: the mask in memory of
  /// the GPU, as it is at that time. Call it before the runs of each step. Like follow(), it can be
  /// captured with them: a replay reads the current mask and lengths. If rows are no tree, each of the
  /// request's drafts sees only itself and its request, and checkReplays() reports it, as it does for
  /// lengths.
  Result<void> draft(const DraftMask &mask, GpuStream stream) {
    return detail::done(deft_gpu_plan_draft(handle(), detail::Mask(mask).get(), stream));
  }

  /// Computes the attention of all queries. `attention` is the one of make(), or another layer's with the
  /// same heads, tiles and head_dim whose mask hides no less, with the same values of the parameters in the
  /// plan's bounds. Errors are found before anything is enqueued: a plan of an older tree, one that was not
  /// uploaded, memory that is missing or not aligned.
  Result<void> run(const GpuAttention &attention, const GpuInputs &inputs, const GpuOutputs &outputs,
                   GpuStream stream) {
    return runBy(deft_gpu_plan_run, attention, inputs, outputs, stream);
  }

  /// Runs like run(), for an attention whose spec says `select`, with a plan that has a budget. The plan then
  /// holds lists of the tokens of most worth, which other layers read with runSparse(). The host does not
  /// need them, so both can be captured together with all other layers of a step.
  Result<void> runSelecting(const GpuAttention &attention, const GpuInputs &inputs, const GpuOutputs &outputs,
                            GpuStream stream) {
    return runBy(deft_gpu_plan_run_selecting, attention, inputs, outputs, stream);
  }

  /// Computes the attention of all queries only to the tokens of their lists. The lists may come from another
  /// layer. It is an error if no run has selected since the last upload, or only one with another page table.
  /// In a graph it reads the lists of the selecting run before it: capture one before the first sparse run.
  /// If the spec says `by = caller`, it reads the current GpuInputs::lists and needs no selecting run.
  Result<void> runSparse(const GpuAttention &attention, const GpuInputs &inputs, const GpuOutputs &outputs,
                         GpuStream stream) {
    return runBy(deft_gpu_plan_run_sparse, attention, inputs, outputs, stream);
  }

  /// Copies the lists to the host, for inspection; waits for the stream. The selection must have the same
  /// attention and budget. No Runtime can run over it.
  Result<void> readLists(Selection &selection, GpuStream stream) const {
    return detail::done(deft_gpu_plan_read_lists(handle(), selection.handle(), stream));
  }

  /// Works like deft_gpu_plan_check_replays: returns an error if a replayed graph exceeded its plan's limits.
  Result<void> checkReplays() { return detail::done(deft_gpu_plan_check_replays(handle())); }

  /// Writes the step with the GPU's values. Call it between replays of a captured graph, if steps are
  /// captured (capture.hpp). It waits for the stream.
  Result<void> captureReplay(GpuStream stream) {
    return detail::done(deft_gpu_plan_capture_replay(handle(), stream));
  }

  /// Makes room for at least this (see roomFor), so that a graph captured now serves larger trees. Waits for
  /// the device; call upload() afterwards. It is an error if a graph has captured the room.
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

  /// The plan's config and the reason for it. A tuned config is used if the loaded kernels can run it. Once a
  /// graph has captured the plan's room, the config stays; `why` says so if a tree fits only when it is cut
  /// like the captured one and read from the root.
  ConfigChoice choice() const {
    return detail::choiceOf([&](auto to) { return deft_gpu_plan_get_choice(handle(), to); });
  }

  /// Works like Plan::picture.
  Result<std::string> picture(const Tree &tree) const {
    return detail::text([&](auto to) { return deft_gpu_plan_get_picture(handle(), tree.handle(), to); });
  }

  /// Works like Plan::page.
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
    memory.settings = inputs.settings;
    memory.lists = inputs.lists, memory.budget = inputs.budget;
    memory.out = outputs.out, memory.lse = outputs.lse;
    const detail::RunTensors tensors(attention.attention(), queryCount(), memory);
    return detail::done(call(handle(), attention.handle(), tensors.inputs(), tensors.outputs(), stream));
  }

  detail::Owned<deft_gpu_plan, deft_gpu_plan_destroy> handle_;
};

/// A page table on a GPU, of a SequenceTree or of your own pages, at a fixed address, so that graphs may
/// capture it. Use it on one stream at a time, together with plans, and in one thread at a time.
class GpuPageTable {
public:
  /// Makes room for `pages` entries (SequenceTree::pageTable). Branches that share a page have an entry each,
  /// so this may need to be more than the pool has pages. Costs 20 bytes per page.
  static Result<GpuPageTable> make(const Gpu &gpu, int pages) {
    return detail::made<GpuPageTable, deft_gpu_page_table>(
        [&](auto to) { return deft_gpu_page_table_make(gpu.handle(), pages, to); });
  }
  /// Takes a handle of <deft/deft.h>.
  explicit GpuPageTable(deft_gpu_page_table *handle) : handle_(handle) {}

  /// Updates it to the sequences' current state, for later runs and replays; only changes are copied. Always
  /// use a table with the same sequences. The stream must not be capturing.
  Result<void> upload(const SequenceTree &sequences, GpuStream stream) {
    return detail::done(deft_gpu_page_table_upload(handle_.get(), sequences.handle(), stream));
  }

  /// For your own pages: sets the entries from `first` on, for later runs and replays; only changed entries
  /// are copied. An entry that was never uploaded is undefined. A table serves sequences or your own pages,
  /// not both. The stream must not be capturing.
  Result<void> upload(std::span<const int> entries, GpuStream stream, int first = 0) {
    return detail::done(
        deft_gpu_page_table_upload_entries(handle_.get(), first, entries.data(), entries.size(), stream));
  }

  const int *data() const { return deft_gpu_page_table_data(handle_.get()); } ///< for GpuInputs::pageTable

private:
  detail::Owned<deft_gpu_page_table, deft_gpu_page_table_destroy> handle_;
};

} // namespace deft
