#pragma once

#include "templates/deft/abi.h"

/// The contract between a generated CPU kernel and the executor that calls it. A kernel is a constant table
/// of values and functions, so code from the JIT and code from a package's shared object look alike. Plain
/// structs without includes: a package outlives the compiler that wrote it. `version` identifies the layout
/// below.
///
/// Vectors of q and k have CpuKernel::keyDim elements; those of v, of sums and of results have valueDim.
///
/// The functions keep no state and access only the memory that a call names, so any number of threads may run
/// them at once. Every pointer needs only the alignment of its element.
namespace deft::abi {

constexpr int kCpuKernelVersion = 9;

/// Tokens come in fours: arrays of a block must be readable up to the next multiple of this.
constexpr int kCpuTokenPad = 4;

/// Converts query rows to the format for `attend`. If the variant has a hook for queries, the rows are those
/// of successive query heads of one query. Rows come in groups of CpuKernel::groupRows, a group in
/// packedGroupBytes bytes. Rows that fill up the last group must hold finite numbers, such as zeros.
struct CpuPackCall {
  const void *q; ///< [rows][keyDim], queryDtype, contiguous
  void *packed;  ///< of row 0
  int rowBegin;  ///< the rows become rows [rowBegin, rowBegin + rows) of `packed`
  int rows;
  int qPos;  ///< of the query
  int query; ///< caller's index
  int head;  ///< query head of the first row
  int reserved0;
  const ParamSlot *params;
};

/// Adds a block of at most CpuKernel::blockTokens tokens, from any runs, to the state of `rows` rows. Row r
/// may see token t if rowLow[t] <= r < rowHigh[t], unless the mask hides it. A row's bits do not depend on
/// the number of rows in the call.
///
/// The state of a row is (m, l, acc): the reference of the exponent, the sum of the weights and the
/// weighted sum of V, both unnormalised, in an order of columns that only `finish` knows. It starts
/// as (-inf, 0, 0); m stays -inf until the row sees a token. Sigmoid attention does not use m and l.
/// m, l, qPos, query and head have an entry for every row of a started group. Rows after `rows`
/// change m and l like rows that see every token; if `cut` is set, they follow their intervals
/// instead.
struct CpuAttendCall {
  const void *packed; ///< the group of the first row, which begins a group
  float *acc;         ///< [rows][valueDim]
  float *m;           ///< [rows], natural units
  float *l;           ///< [rows]
  const int *qPos;    ///< [rows]
  const int *query;   ///< [rows], caller's index
  const int *head;    ///< [rows], query head
  const void *k;      ///< the cache, at this KV head's offset
  const void *v;
  const long long *keyOffsets;   ///< [tokens], in elements from k; the padding repeats a token
  const long long *valueOffsets; ///< [tokens], in elements from v, likewise
  const int *kvPos;              ///< [tokens]
  const int *depth;              ///< [tokens]
  const int *rowLow;             ///< [tokens]; the padding is seen by no row
  const int *rowHigh;            ///< [tokens]
  const void *nextK;             ///< memory that a following call will read; a hint for prefetching
  const void *nextV;
  const long long *nextKeyOffsets; ///< [nextTokens], at least one entry
  const long long *nextValueOffsets;
  const ParamSlot *params;
  /// The final scores, written by kernels with CpuKernel::keepsScores; -inf if a row does not see a token;
  /// null: not written. [group of rows][quad of tokens, blockTokens / 4 of them][row of the group][token of
  /// the quad]. Entries of tokens that no row of a block sees stay unchanged. Other kernels ignore this.
  float *scores;
  /// [tokens], each token's index in arrays over tokens; the padding repeats a token. Null if
  /// CpuKernel::readsSlots is 0.
  const long long *slots;
  int rows;
  int tokens;
  int nextTokens;
  int kvHead;
  int masked; ///< 0: the mask is known to hold for every pair and is not evaluated
  int cut;    ///< 0: every row may see every token; rowLow and rowHigh are not needed
};

/// Inclusive bounds of the rows and tokens of one `attend`.
struct CpuTileCall {
  const ParamSlot *params;
  int qPosLow, qPosHigh;
  int kvPosLow, kvPosHigh;
  int depthLow, depthHigh;
  int queryLow, queryHigh;
  int headLow, headHigh;
  int kvHead;
  int reserved0;
};
constexpr int kCpuTileAny = 1; ///< some pair may be visible
constexpr int kCpuTileAll = 2; ///< every pair is surely visible

/// Normalises finished rows. With sinks or a hook for the output, they are those of successive query heads of
/// one query: `finish` adds the sinks and applies the hook, `finishPartial` does neither. A row without
/// weight gives 0, before that hook, and as lse -inf or the sink.
struct CpuFinishCall {
  const float *acc; ///< [rows][valueDim], from `attend`
  const float *m;
  const float *l;
  void *out;  ///< [rows][valueDim], output dtype (finish) or float (finishPartial)
  float *lse; ///< [rows], natural log; may be null
  int rows;
  int head; ///< query head of the first row
  const ParamSlot *params;
  int qPos;  ///< of the query
  int query; ///< caller's index
};

/// Reduces the partials of `rows` heads of one query in the order of `slots`, adds the sinks and applies the
/// hook for the output.
struct CpuMergeCall {
  const float *partialOut; ///< [slot][query_heads][valueDim], at the first of the rows
  const float *partialLse; ///< [slot][query_heads], likewise
  const int *slots;
  void *out;     ///< [rows][valueDim], output dtype
  float *lse;    ///< [rows]; may be null
  int slotCount; ///< 0: the output is 0 and lse is -inf or the sink
  int rows;
  const ParamSlot *params;
  int head;  ///< query head of the first row
  int qPos;  ///< of the query
  int query; ///< caller's index
  int reserved0;
};

struct CpuKernel {
  int version;    ///< kCpuKernelVersion
  int tableBytes; ///< sizeof(CpuKernel)
  int queryHeads;
  int kvHeads;
  int keyDim;
  int valueDim;
  int queryDtype; ///< spec::DType's number: 0 f16, 1 bf16
  int keyDtype;
  int valueDtype;
  int outputDtype;
  int sigmoid;     ///< 1: partials are plain sums, there is no lse
  int hasMask;     ///< 1: `tile` reports which blocks the mask cuts
  int paramCount;  ///< entries of every `params`
  int blockTokens; ///< most tokens in one `attend`
  int groupRows;   ///< rows that are packed together
  int packedGroupBytes;
  int isaLevel;     ///< 3: needs x86-64-v3; 4: x86-64-v4; checked by loaders
  int keepsScores;  ///< 1: `attend` writes scores on request
  int readsSlots;   ///< 1: the attention has arrays over tokens
  int byteProducts; ///< 1: q is packed, and weights are made, as numbers of e4m3
  void (*pack)(const CpuPackCall *);
  void (*attend)(const CpuAttendCall *);
  int (*tile)(const CpuTileCall *);
  void (*finish)(const CpuFinishCall *);
  void (*finishPartial)(const CpuFinishCall *);
  void (*merge)(const CpuMergeCall *);
};
static_assert(sizeof(CpuKernel) == 20 * 4 + 6 * 8);

/// The prefix before a variant's name that makes the name of its table in an object.
constexpr char kCpuKernelPrefix[] = "deft_cpu_";

} // namespace deft::abi
