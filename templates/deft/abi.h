#pragma once

/// The contract between host and device: the work list, the merge map and the arguments of every kernel.
/// Plain structs without includes, so that NVRTC, nvcc and the host's compiler read the same text.
///
/// Words: a *query* is named by its place in the plan's order (depth-first), unless a comment says "caller's
/// index". A *row* of an item is query * ratio + head within the group.
namespace deft::abi {

/// Raised when anything here changes its layout or meaning: kernels of other versions cannot be called.
constexpr int kVersion = 12;

/// One entry of the work list. The grid expands it over the KV heads. An item without tokens ends the list: a
/// captured graph is launched for the most items that a plan may have, and a step's plan has fewer. (If the
/// items of a head follow each other, it ends that head's list.)
///
/// Tokens of an item of 49 to 64 rows may be *dealt* to its four warps. Tokens that several warps see come
/// first; then, warp by warp, tokens that only the rows of that warp see. Kernels for such plans alternate
/// between tiles of common tokens and dealt tiles, where each warp has a group of 16 tokens. For other
/// kernels it is an ordinary item.
struct Item {
  int queryBegin; ///< first query, in plan order
  int queryCount; ///< queryCount * ratio rows, at most the tile_q of the item's phase
  int runBegin;   ///< first run, index into AttendArgs::runs
  int runCount;
  int tokens;       ///< sum over the runs
  int partialBegin; ///< slot of the first query's partial; -1: the rows are complete, write the output
  int dealtTiles;   ///< as many as the warp with the most tokens needs; 0: no tokens are dealt
  int commonTokens; ///< if some are dealt: the tokens before those
};
static_assert(sizeof(Item) == 32);

/// A stretch of cache tokens that the same queries see. With a slope, it is a causal stretch: each token has
/// one viewer less than the token before it, and at least one. Runs of an item are not empty; the planner
/// chooses their order (plan::RunOrder).
struct Run {
  int begin; ///< tokens of the item before this run
  int tokens;
  int location;   ///< first token's place in the page table, in tokens (contiguous: token index in the cache)
  int position;   ///< kv_pos of the first token
  int depth;      ///< depth of the tokens' node
  int queryBegin; ///< its viewers: [queryBegin, queryEnd), relative to the item's first query
  int queryEnd;
  int slope : 2;       ///< the viewers of token t are [queryBegin + slope * t, queryEnd): 0 or 1
  int dealtBegin : 30; ///< in the first four runs of an item with dealt tokens: its runs before that warp's
};
static_assert(sizeof(Run) == 32);

/// Rows of q and out, and tokens, pages and heads of K and V have strides in multiples of this, or of half.
constexpr int kStrideElements = 16;

/// Where the tokens of K or V are, in elements. The token at `location` t is at
///   pageTable[t / pageSize] * pageStride + (t % pageSize) * tokenStride + kvHead * headStride,
/// or, contiguous (pageSize 0), at t * tokenStride + kvHead * headStride.
struct CacheLayout {
  long long pageStride;
  long long tokenStride;
  long long headStride;
};

/// The same for kernels, in larger units (kRowUnit), so that 32 bits reach 128 GiB: 64 bits would take twice
/// the shared memory, or twice the shuffles, for each token's place. A sum may wrap around on the way; the
/// result is still correct.
struct CachePlaces {
  unsigned pageStride;
  unsigned tokenStride;
  unsigned headStride;
};

struct Selected; // see select_abi.h

/// A driver's tensor map (CUtensorMap): it describes the rows of the cache to the copy engine.
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

struct AttendArgs {
  // A block's first reads are in one line of 64 bytes, since arguments are loaded from memory in such lines.
  const Item *items;
  const Run *runs;
  const int *callerIndex; ///< of each query in the plan's order; the first one of the plan's lists
  const int *pageTable;
  const void *q; ///< [query, caller's index: qStride][query_heads][head_dim], dtype
  int itemBegin; ///< the items of this launch: [itemBegin, itemBegin + itemCount)
  int itemCount;
  int hasMaps;
  int planLines;  ///< number of lines of the plan to prefetch
  int tableLines; ///< the same for the page table (plan_ahead.cuh)
  int byHead;     ///< 1: kernels that deal finish all items of one head, then the next head

  const int *queryPos; ///< q_pos of each query in the plan's order
  const void *k;
  const void *v;
  void *out;         ///< [query, caller's index: outStride][query_heads][head_dim], output dtype
  float *lse;        ///< [query, caller's index][query_heads], natural log; may be null
  void *partialOut;  ///< [slot][query_heads][head_dim], deft::Partial
  float *partialLse; ///< [slot][query_heads], natural log
  int qStride;       ///< elements from a query to the next one
  int outStride;
  CachePlaces kCache, vCache;
  const Selected *selected; ///< only for kernels that select or are sparse; placed in former padding
  /// Boxes of one KV head: 16 or 32 tokens by 64 columns; and 64 tokens by all columns, in blocks of 64, if
  /// columns and pages are multiples of 64. Valid if hasMaps is set.
  TensorMap kBoxes[3], vBoxes[3];
};

/// Bytes in a line of AttendArgs::planLines and tableLines.
constexpr int kLineBytes = 128;

/// Lets a run in a replayed graph, which the host cannot see, detect that the plan on the device is older
/// than the tree. In host memory that the device can read and write. The host's side is
/// runtime/exec/cuda/PlanWatch.h.
struct PlanWatch {
  unsigned long long treeGeneration; ///< of the current tree: the host stores it with every change
  unsigned long long planGeneration; ///< of the last plan that was put on the stream
  unsigned long long staleSeen;      ///< a kernel stores the tree's generation here if the plan is older
  unsigned long long freeRuns;       ///< this many runs may find the plan older, since the host plans ahead
};

/// Merged query m (plan order mergeQuery[m]) sums the partials in slots
/// mergeSlot[mergeBegin[m]] .. mergeSlot[mergeBegin[m + 1] - 1], in this order.
/// A query that no item covers has an empty list: its output is 0 and its lse -inf.
/// A merged query of -1 ends the list, like an item without tokens.
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
  PlanWatch *watch;               ///< null: no watch; otherwise the launch has one more block
  unsigned long long *runsOfPlan; ///< on the device, 0 in a new plan: counted if there is a watch
  const int *queryPos;            ///< as in AttendArgs: for hooks of the output
};

/// A leaf of one request whose query sees all of it, and the limit of its growth. With it, a plan on the
/// device follows lengths that only the device knows.
struct GrowingLeaf {
  int request;
  int length;   ///< of the request, as planned
  int mostGain; ///< tokens that the plan may gain here
  int reserved; ///< 0
};
static_assert(sizeof(GrowingLeaf) == 16);

/// For each run or query of the plan: the growing leaf at its end, or -1, and its planned tokens or
/// q_pos.
struct Grown {
  int leaf;
  int planned;
};

/// The arguments of deft_grow_plan. It always starts from the planned values, so it may run any number of
/// times.
struct GrowArgs {
  const int *lengths; ///< of each request
  const GrowingLeaf *leaves;
  const int *growingItems; ///< indices of the items with a run that grows; then -1
  const Grown *grownRuns, *grownQueries;
  Item *items;
  Run *runs;
  int *queryPos;
  int mostItems;   ///< of growingItems
  int mostQueries; ///< grownQueries; those after the plan's queries have no leaf
  unsigned long long
      *unserved; ///< in the host's memory: request + 1 and, above 32 bits, a length too long or too short
};

/// The arguments of deft_check_pages.
struct PageCheckArgs {
  const Item *items;
  const Run *runs;
  const int *pageTable;
  int itemCount; ///< items without tokens are skipped at any place
  int pageSize;
  int pages; ///< in the cache
  unsigned long long
      *wrong; ///< in the host's memory: an entry + 1 and, above 32 bits, the page that it names
};

/// The arguments of deft_merge_states: partial attentions of the same rows, each for a query and a head.
struct StatesArgs {
  static constexpr int kMost = 16; ///< parts
  const void *outs[kMost];         ///< [row][dim], packed, all of one element type
  const float *lses[kMost];        ///< [row], natural log; -inf: the part saw no token
  int count;
  int dim;
  long long rows;
  void *out;      ///< in the format of outs; may be one of them, and lse one of lses
  float *lse;     ///< may be null
  int lanesOfRow; ///< lanes for a row, a power of two
};

/// Each parameter reaches a kernel in one 8-byte slot, in the order of declaration: a scalar in the low 4
/// bytes, or the pointer to an array.
union ParamSlot {
  float f32;
  int i32;
  const float *f32Array;
  const int *i32Array;
  unsigned long long bits;
};
static_assert(sizeof(ParamSlot) == 8);

} // namespace deft::abi
