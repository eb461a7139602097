#pragma once

#include <deft/attention.hpp>
#include <deft/c/plan.h>
#include <deft/tree.hpp>

/// How the work of a step is divided among the threads.
namespace deft {

/// The strategy that groups the cache with the queries that read it. All of them give the same result up to
/// rounding.
enum class Partition {
  Query = DEFT_PARTITION_QUERY,          ///< each query reads its whole path: nothing is shared
  Node = DEFT_PARTITION_NODE,            ///< each node is read once, by all queries that see it
  NodeChunk = DEFT_PARTITION_NODE_CHUNK, ///< each node is read once, a long one in chunks
  Flatten = DEFT_PARTITION_FLATTEN,      ///< the depth-first sequence of all tokens in even chunks
  Cascade = DEFT_PARTITION_CASCADE,      ///< level by level
  Greedy = DEFT_PARTITION_GREEDY,        ///< short nodes join their children's work if that is cheaper
  Union = DEFT_PARTITION_UNION,          ///< neighbouring queries over the union of their paths
  Auto = DEFT_PARTITION_AUTO,            ///< the cheapest by the cost model
};

/// Tokens of a chunk of an invariant plan: enough that starting an item costs next to nothing.
inline constexpr int kInvariantChunk = DEFT_INVARIANT_CHUNK;

struct PlanOptions {
  /// None: the tuned config's, else that of the spec's schedule, else Auto.
  std::optional<Partition> partition = {};
  /// Most tokens of a piece of work. None: the tuned config's, else the spec's; 0: the largest that keeps all
  /// workers busy.
  std::optional<int> chunkTokens = {};
  int workers = 0;                ///< as deft_plan_options::workers
  bool invariant = false;         ///< as deft_plan_options::is_invariant
  const Params *params = nullptr; ///< as deft_plan_options::params
  bool checkPlaces = false;       ///< as deft_plan_options::checks_places
};

/// Which drafts of a PagedBatch see which, in memory of the plan's device: deft_draft_mask.
struct DraftMask {
  const std::uint32_t *bits = nullptr; ///< [request][draft][(drafts + 31) / 32]
  int drafts = 0;                      ///< rows of a request in the mask, at least as many as it has drafts
  int requests = 0;                    ///< rows of requests in the mask, to detect larger batches; 0: unknown
  const int *depths = nullptr;         ///< [request][draft]; null: the number of its ancestors
  const int *lengths = nullptr;        ///< [request]: tokens before the drafts; null: as planned
};

/// The cost of a plan in a few numbers.
struct PlanSummary {
  int items = 0;               ///< pieces of work, for each KV head
  int directItems = 0;         ///< of these: write the output, no partial result
  int dealtItems = 0;          ///< of these: tokens that few rows see are dealt to these rows' warps
  std::int64_t tokensRead = 0; ///< by all items, for each KV head: a shared token as often as it is read
  int partials = 0;            ///< partial results written, for each query head
  int mergedQueries = 0;       ///< queries whose result is merged from several partials
};

/// The config of a plan: the partition and sizes that `deftc tune` found or, without these, an
/// analytic choice. PlanOptions override it. Tuned configs are read when an attention makes its first
/// plan.
struct ConfigChoice {
  std::string rule;      ///< "override", "exact", "sibling", "nearby" or "heuristic": see specs/CONFIGS.md
  std::string treeClass; ///< of the tree, as `deftc classify` explains it
  std::string file;      ///< its origin; empty: the heuristic
  std::string why;       ///< in words
};

/// What advance() did.
enum class Advanced {
  Nothing = DEFT_ADVANCED_NOTHING,  ///< the tree has not changed
  InPlace = DEFT_ADVANCED_IN_PLACE, ///< leaves grew, in a plan that can follow them; microseconds
  Remade = DEFT_ADVANCED_REMADE,    ///< anything else
};

namespace detail {

inline deft_plan_options optionsOf(const PlanOptions &options) {
  deft_plan_options own{};
  own.size = sizeof own;
  own.params = handleOf(options.params);
  own.partition = options.partition ? static_cast<std::int32_t>(*options.partition) : DEFT_PARTITION_DEFAULT;
  if (options.chunkTokens)
    own.chunk_tokens = *options.chunkTokens == 0 ? DEFT_CHUNK_FILL : *options.chunkTokens;
  own.workers = options.workers;
  own.is_invariant = options.invariant;
  own.checks_places = options.checkPlaces;
  return own;
}

inline PlanSummary summaryOf(const deft_plan_summary &own) {
  return {own.items, own.direct_items, own.dealt_items, own.tokens_read, own.partials, own.merged_queries};
}

template <typename Call> ConfigChoice choiceOf(Call &&call) {
  const Owned<deft_config_choice, deft_free> own(filled<deft_config_choice *>(call).value());
  return {own->rule, own->tree_class, own->file, own->why};
}

inline Result<Advanced> advancedOf(deft_status status, deft_advanced advanced) {
  return status == DEFT_OK ? Result<Advanced>(static_cast<Advanced>(advanced)) : errorOf(status);
}

/// A mask as tensors.
class Mask {
public:
  explicit Mask(const DraftMask &of) : requests_(of.requests > 0 ? of.requests : -1), drafts_(of.drafts) {
    mask_.size = sizeof mask_;
    if (of.bits)
      mask_.bits = tensor(0, of.bits, DEFT_U32, {requests_, drafts_, (drafts_ + 31) / 32}, 3);
    if (of.depths)
      mask_.depths = tensor(1, of.depths, DEFT_I32, {requests_, drafts_, 0}, 2);
    if (of.lengths)
      mask_.lengths = tensor(2, of.lengths, DEFT_I32, {requests_, 0, 0}, 1);
  }
  Mask(const Mask &) = delete;
  Mask &operator=(const Mask &) = delete;

  const deft_draft_mask *get() const { return &mask_; }

private:
  struct Shape {
    std::int64_t sizes[3];
  };

  const deft_tensor *tensor(int index, const void *data, deft_dtype dtype, Shape shape, std::int32_t ndim) {
    shapes_[index] = shape;
    deft_tensor &own = tensors_[index];
    own.size = sizeof own;
    own.data = const_cast<void *>(data);
    own.shape = shapes_[index].sizes;
    own.dtype = dtype;
    own.ndim = ndim;
    return &own;
  }

  std::int64_t requests_, drafts_;
  Shape shapes_[3] = {};
  deft_tensor tensors_[3] = {};
  deft_draft_mask mask_ = {};
};

} // namespace detail

/// The work list of one tree. Make it once a step and use it for every layer: it serves all attentions with
/// the same numbers of heads whose masks hide no less. For one thread at a time, but many runs may read it at
/// once.
///
/// Pages that a mask hides from all queries are never read: you may free them, and their entries of a page
/// table may be -1. (An invariant plan reads whole chunks, so less than a chunk before the visible tokens.)
class Plan {
public:
  /// An error if a node with tokens is not placed.
  static Result<Plan> make(const Attention &attention, const Tree &tree, const PlanOptions &options = {}) {
    const deft_plan_options own = detail::optionsOf(options);
    return detail::made<Plan, deft_plan>(
        [&](auto to) { return deft_plan_make(attention.handle(), tree.handle(), &own, to); });
  }
  /// Takes a handle of <deft/deft.h>.
  explicit Plan(deft_plan *handle) : handle_(handle) {}

  /// Updates the plan to the tree's current state, with the same options and memory. That is quick if only
  /// leaves of the plan's own tree grew, except for configs of order `mixed`. After an error the plan fits no
  /// tree.
  Result<Advanced> advance(const Tree &tree) {
    deft_advanced advanced = 0;
    const deft_status status = deft_plan_advance(handle(), tree.handle(), &advanced);
    return detail::advancedOf(status, advanced);
  }

  /// For a batch with drafts: sets which drafts see which, before the runs of each step. If rows are not a
  /// tree's, this is an error, and the plan waits for another mask. Reads the mask only during the call.
  Result<void> draft(const DraftMask &mask) {
    return detail::done(deft_plan_draft(handle(), detail::Mask(mask).get()));
  }

  /// Whether the tree has not changed since the plan. A run with a stale plan is an error.
  bool isCurrent() const { return deft_plan_is_current(handle()) != 0; }

  int queryCount() const { return deft_plan_query_count(handle()); }
  PlanSummary summary() const {
    return detail::summaryOf(
        detail::factsOf<deft_plan_summary>([&](auto to) { return deft_plan_get_summary(handle(), to); }));
  }

  /// The plan's config, and the reason for it. If the tree moves to another class, advance() may change the
  /// config.
  ConfigChoice choice() const {
    return detail::choiceOf([&](auto to) { return deft_plan_get_choice(handle(), to); });
  }

  /// The plan as a picture (SVG, UTF-8) for people: the tree with a colour for each item, and the work of
  /// each worker. `tree` is the one that the plan was made or advanced for, unchanged.
  Result<std::string> picture(const Tree &tree) const {
    return detail::text([&](auto to) { return deft_plan_get_picture(handle(), tree.handle(), to); });
  }

  /// The plan as a page (HTML, UTF-8) for a browser, self-contained: the tree and its readers, workers over
  /// time by the cost model, and the bytes of each node. `tree` is the one that the plan was made or advanced
  /// for.
  Result<std::string> page(const Tree &tree) const {
    return detail::text(
        [&](auto to) { return deft_plan_get_page(handle(), tree.handle(), nullptr, nullptr, to); });
  }
  /// The same with another plan next to it.
  Result<std::string> page(const Tree &tree, const Plan &other, const Tree &otherTree) const {
    return detail::text([&](auto to) {
      return deft_plan_get_page(handle(), tree.handle(), other.handle(), otherTree.handle(), to);
    });
  }

  const deft_plan *handle() const { return handle_.get(); } ///< for <deft/deft.h>
  deft_plan *handle() { return handle_.get(); }

private:
  detail::Owned<deft_plan, deft_plan_destroy> handle_;
};

} // namespace deft
