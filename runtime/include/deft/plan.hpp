#pragma once

#include <deft/attention.hpp>
#include <deft/tree.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

/// How the work of a step is cut and laid on the threads.
namespace deft {

/// The strategy that groups the cache with the queries that read it. All of them give the same result up to
/// rounding.
enum class Partition {
  Query,     ///< each query reads its whole path: nothing is shared
  Node,      ///< each node is read once, by all who see it
  NodeChunk, ///< each node is read once by all who see it, a long one in chunks
  Flatten,   ///< the depth-first sequence of all tokens in even chunks
  Cascade,   ///< level by level
  Greedy,    ///< short nodes join their children's work where that is cheaper
  Union,     ///< neighbouring queries over the union of their paths
  Auto,      ///< the cheapest by the cost model
};

/// Tokens of a chunk of an invariant plan: enough that starting an item costs next to nothing.
inline constexpr int kInvariantChunk = 512;

struct PlanOptions {
  /// None: that of the tuned config, else what the spec's schedule says, and Auto where it says nothing.
  std::optional<Partition> partition = {};
  /// Most tokens of a piece of work. None: the tuned config's, else the spec's; 0: as large as keeps all
  /// workers busy.
  std::optional<int> chunkTokens = {};
  /// How many threads will run the plan, at most 1,024; 0: as many as a Runtime has by default.
  int workers = 0;
  /// The bits of a query's result do not change when other requests join or leave the tree (that a branch
  /// splits one of its nodes counts as a change; in a PagedBatch with PagedBatchOptions::invariantChunk none
  /// does). Takes partition Node; any other with it is an error. Chunks are of kInvariantChunk tokens, where
  /// neither `chunkTokens` nor the spec says how many.
  bool invariant = false;
  /// What a mask hides from all queries is not planned and not read; where its bounds ask for parameters, as
  /// the width of a window, these are their values, and a run with others is an error. Null: the defaults; a
  /// parameter without one bounds nothing. On a GPU those of the GpuAttention count, and this is not used.
  const Params *params = nullptr;
  /// Whether making and advancing a plan fail where two nodes share slots of the cache, as they do when a
  /// host places one wrongly: by default the locations that it gives are taken as they are. The error names
  /// both nodes. Costs a sort of the nodes a step.
  bool checkPlaces = false;
};

/// Which drafts of a PagedBatch see which, in the memory of who runs the plan.
struct DraftMask {
  /// [request][draft][(drafts + 31) / 32], requests in the batch's order: bit j % 32 of word j / 32 of row i
  /// says whether draft i sees draft j. Each sees itself and what is above it in a tree, and all of its
  /// request's tokens. Drafts have any order. Bits of drafts that a request has not say nothing.
  const std::uint32_t *bits = nullptr;
  int drafts = 0;   ///< that a request has rows for here, at least as many as it has drafts
  int requests = 0; ///< that there are rows for, by which a batch of more is noticed; 0: it is not said
  /// [request][draft]: how far behind the request's tokens a draft's position is, from 0 to one less than
  /// there are drafts, by which masks of the spec hide. Null: by as many drafts as are above it.
  const int *depths = nullptr;
  /// [request]: tokens before the drafts. They may be more than the plan was made for where it follows
  /// lengths (GpuPlanOptions::followsLengths); the drafts then lie behind these. Null: as planned.
  const int *lengths = nullptr;
};

/// What a plan costs.
struct PlanSummary {
  int items = 0;               ///< pieces of work, for each KV head
  int directItems = 0;         ///< of them: write the output, no partial result
  int dealtItems = 0;          ///< of them: tokens that few rows see are dealt to these rows' warps
  std::int64_t tokensRead = 0; ///< by all items, for each KV head: a shared token as often as it is read
  int partials = 0;            ///< partial results written, for each query head
  int mergedQueries = 0;       ///< queries whose result is merged of several partials
};

/// Which config a plan was made with, the partition and sizes that `deftc tune` found or, without it, an
/// analytic choice; PlanOptions goes before it. Tuned configs are read when an attention makes its first
/// plan.
struct ConfigChoice {
  std::string rule;      ///< "override", "exact", "sibling", "nearby" or "heuristic": see specs/CONFIGS.md
  std::string treeClass; ///< the tree's, as `deftc classify` explains it
  std::string file;      ///< that it is from; empty: the heuristic's
  std::string why;       ///< in words
};

/// What advance() had to do.
enum class Advanced {
  Nothing, ///< the tree has not changed
  InPlace, ///< leaves grew, in a plan that can follow them; microseconds
  Remade,  ///< anything else
};

/// The work list of one tree. Made once a step and used by every layer: it serves all attentions with the
/// same numbers of heads as the one it was made for, whose masks hide no less. For one thread at a time, but
/// many runs may read it at once.
///
/// Pages of which a mask shows no query anything are never read: a host may free them, and their entries of a
/// page table may be -1. (An invariant plan reads whole chunks: what it reads beside what is seen is less
/// than a chunk before it.)
class DEFT_API Plan {
public:
  /// An error where a node that has tokens is not placed.
  static Result<Plan> make(const Attention &attention, const Tree &tree, const PlanOptions &options = {});

  Plan(Plan &&) noexcept;
  Plan &operator=(Plan &&) noexcept;
  ~Plan();

  /// Makes the plan fit the tree as it is now, with the same options, in the memory that it has. Where only
  /// leaves grew since, and this is the tree it was made for, that is quick, but for configs of order
  /// `mixed`. After an error the plan fits no tree.
  Result<Advanced> advance(const Tree &tree);

  /// For a batch with drafts, before runs of each step: which of them see which. An error, and the plan waits
  /// for another mask, where rows are not those of a tree. Reads the mask during the call only.
  Result<void> draft(const DraftMask &mask);

  /// Whether the tree has not changed since. A run with a stale plan is an error.
  bool isCurrent() const;

  int queryCount() const;
  PlanSummary summary() const;

  /// Which config the plan has, and why. A tree that becomes one of another class may get another config from
  /// advance().
  ConfigChoice choice() const;

  /// The plan as a picture (SVG, UTF-8) for people: the tree with a colour for each piece of work, and what
  /// each worker gets. `tree` is the one that it was made or advanced for, and has not changed since.
  Result<std::string> picture(const Tree &tree) const;

  struct Impl;
  const Impl &impl() const { return *impl_; } ///< for the library itself

private:
  explicit Plan(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace deft
