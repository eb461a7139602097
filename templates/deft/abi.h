#pragma once

/// What host and device agree on: the work list, the merge map and the arguments of every kernel.
/// Plain structs without includes, so that NVRTC, nvcc and the host's compiler read the same text.
///
/// Words: a *query* is named by its place in the plan's order (depth-first), unless it says
/// "caller's index". A *row* of an item is query * ratio + head within the group.
namespace deft::abi {

/// Raised whenever something here changes its shape or meaning: kernels of another version cannot be called.
constexpr int kVersion = 12;

/// One entry of the work list. The grid expands it over the KV heads. One of no tokens ends the list: a
/// captured graph is launched for as many items as a plan may have, and a step's plan has fewer. (Where heads
/// follow each other, it ends a head's.)
///
/// Tokens of an item of 49 to 64 rows may be *dealt* to the four warps that have these: what the rows of one
/// warp alone see stands behind what is common to several, warp by warp. Kernels for such plans read tiles of
/// the common tokens and dealt tiles, of which each warp has a group of 16 tokens, in turn; for all others it
/// is an item like any other.
struct Item {
  int queryBegin; ///< first query, in plan order
  int queryCount; ///< queryCount * ratio rows, at most the tile_q of the item's phase
  int runBegin;   ///< first run, index into AttendArgs::runs
  int runCount;
  int tokens;       ///< sum over the runs
  int partialBegin; ///< slot of the first query's partial; -1: the rows are complete, write the output
  int dealtTiles;   ///< as many as the warp with the most tokens needs; 0: nothing is dealt
  int commonTokens; ///< where some are dealt: those before them
};
static_assert(sizeof(Item) == 32);

/// A stretch of cache tokens that the same queries see; or, with a slope, a causal stretch: each token is
/// seen by one query less than the token before it, and by one at least. Runs of an item are not empty; their
/// order is the planner's (plan::RunOrder).
struct Run {
  int begin; ///< tokens of the item before this run
  int tokens;
  int location;   ///< first token's place in the page table, in tokens (contiguous: token index in the cache)
  int position;   ///< kv_pos of the first token
  int depth;      ///< depth of the tokens' node
  int queryBegin; ///< queries that see it: [queryBegin, queryEnd), relative to the item's first
  int queryEnd;
  int slope : 2;       ///< token t of the run is seen by [queryBegin + slope * t, queryEnd): 0 or 1
  int dealtBegin : 30; ///< of the first four runs of an item with dealt tokens: its runs before that warp's
};
static_assert(sizeof(Run) == 32);

/// Rows of q and out, tokens, pages and heads of K and V are multiples of so many elements apart, or of half.
constexpr int kStrideElements = 16;

/// Where the tokens of K or of V lie, in elements. Token at `location` t is at
///   pageTable[t / pageSize] * pageStride + (t % pageSize) * tokenStride + kvHead * headStride,
/// or, contiguous (pageSize 0), at t * tokenStride + kvHead * headStride.
struct CacheLayout {
  long long pageStride;
  long long tokenStride;
  long long headStride;
};

/// The same for kernels, in units of these (kRowUnit), of which 32 bits reach 128 GiB: 64 would take twice
/// the shared memory, or twice the shuffles, for where each token lies. A sum that is there wraps around to
/// itself.
struct CachePlaces {
  unsigned pageStride;
  unsigned tokenStride;
  unsigned headStride;
};

struct Selected; // of select_abi.h

/// A driver's tensor map (CUtensorMap): how a bulk copy finds rows of the cache.
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

struct AttendArgs {
  // What a block asks for first is a line of 64 bytes: arguments come from memory by such lines, too.
  const Item *items;
  const Run *runs;
  const int *callerIndex; ///< of each query of the plan's order; the first one of the plan's lists
  const int *pageTable;
  const void *q; ///< [query, caller's index: qStride][query_heads][head_dim], dtype
  int itemBegin; ///< the items of this launch: [itemBegin, itemBegin + itemCount)
  int itemCount;
  int hasMaps;
  int planLines;  ///< so many lines of the plan and
  int tableLines; ///< of the page table are asked for ahead of their use (plan_ahead.cuh)
  int byHead;     ///< 1: kernels that deal do all items for one head, then for the next

  const int *queryPos; ///< q_pos of each query of the plan's order
  const void *k;
  const void *v;
  void *out;         ///< [query, caller's index: outStride][query_heads][head_dim], output dtype
  float *lse;        ///< [query, caller's index][query_heads], natural log; may be null
  void *partialOut;  ///< [slot][query_heads][head_dim], deft::Partial
  float *partialLse; ///< [slot][query_heads], natural log
  int qStride;       ///< elements from a query to the next one
  int outStride;
  CachePlaces kCache, vCache;
  const Selected *selected; ///< of kernels that select or are sparse; else not read. Lies where padding was
  /// Boxes of one KV head: of 16 and of 32 tokens and 64 columns, and of 64 tokens and all columns, 64 by 64,
  /// where these and the pages are multiples of 64. Valid where hasMaps is set.
  TensorMap kBoxes[3], vBoxes[3];
};

/// Bytes of a line of AttendArgs::planLines and tableLines.
constexpr int kLineBytes = 128;

/// By which a run in a replayed graph, that no host sees coming, notices that the plan on the device is not
/// the tree's any more. In host memory that the device can read and write; the host's side is
/// runtime/exec/cuda/PlanWatch.h.
struct PlanWatch {
  unsigned long long treeGeneration; ///< of the tree now: the host stores it with every change
  unsigned long long planGeneration; ///< of the plan that was last put on the stream
  unsigned long long staleSeen;      ///< a kernel stores the tree's generation here where the plan is older
  unsigned long long freeRuns;       ///< so many runs of a plan may find it older: the host plans ahead
};

/// Merged query m (plan order mergeQuery[m]) sums the partials in slots
/// mergeSlot[mergeBegin[m]] .. mergeSlot[mergeBegin[m + 1] - 1], in this order.
/// A query that no item covers has an empty list: its output is 0 and its lse -inf.
/// A merged query of -1 ends the list, as an item of no tokens does.
struct MergeArgs {
  void *out; ///< as in AttendArgs, with outStride
  float *lse;
  const void *partialOut;
  const float *partialLse;
  const int *callerIndex;
  const int *mergeQuery;
  const int *mergeBegin;
  const int *mergeSlot;
  int mergeCount;
  int outStride;
  PlanWatch *watch;               ///< null: nobody watches; else the launch has one block more
  unsigned long long *runsOfPlan; ///< on the device, 0 in a new plan: counted where there is a watch
  const int *queryPos;            ///< as in AttendArgs: what a hook of the output may read
};

/// By which a plan on the device follows lengths that only the device knows: a leaf of one request whose
/// query sees all of it, and how far it may grow.
struct GrowingLeaf {
  int request;
  int length;   ///< of the request, as planned
  int mostGain; ///< tokens that the plan may gain here
  int reserved; ///< 0
};
static_assert(sizeof(GrowingLeaf) == 16);

/// Of each run or query of the plan: the growing leaf that it ends with, or -1, and its tokens, or q_pos, as
/// planned.
struct Grown {
  int leaf;
  int planned;
};

/// What deft_grow_plan writes and reads. It begins with what was planned each time, so that it may run as
/// often as one likes.
struct GrowArgs {
  const int *lengths; ///< of each request
  const GrowingLeaf *leaves;
  const int *growingItems; ///< those with a run that grows, by their place among all; -1 behind them
  const Grown *grownRuns, *grownQueries;
  Item *items;
  Run *runs;
  int *queryPos;
  int mostItems;   ///< of growingItems
  int mostQueries; ///< grownQueries, of which those behind the plan's have no leaf
  unsigned long long
      *unserved; ///< in the host's memory: request + 1 and, above 32 bits, a length too long or too short
};

/// What deft_check_pages reads and writes.
struct PageCheckArgs {
  const Item *items;
  const Run *runs;
  const int *pageTable;
  int itemCount; ///< those of no tokens are passed over, wherever they stand
  int pageSize;
  int pages; ///< of the cache
  unsigned long long
      *wrong; ///< in the host's memory: an entry + 1 and, above 32 bits, the page that it names
};

/// What deft_merge_states reads and writes: partial attentions of the same rows, each (a query, a head).
struct StatesArgs {
  static constexpr int kMost = 16; ///< parts
  const void *outs[kMost];         ///< [row][dim], packed, all of one element type
  const float *lses[kMost];        ///< [row], natural log; -inf: it saw no token
  int count;
  int dim;
  long long rows;
  void *out;      ///< as outs; may be one of them, and lse one of lses
  float *lse;     ///< may be null
  int lanesOfRow; ///< of a warp, a power of two
};

/// Parameters reach a kernel as one 8-byte slot each, in the order of their declaration:
/// a scalar in the low 4 bytes, an array as a pointer.
union ParamSlot {
  float f32;
  int i32;
  const float *f32Array;
  const int *i32Array;
  unsigned long long bits;
};
static_assert(sizeof(ParamSlot) == 8);

} // namespace deft::abi
