#pragma once

/// The contract between host and device for selection: the worth of tokens, the lists chosen by worth, and
/// the paths that turn positions into places in the cache. Plain structs without includes, like abi.h.
/// specs/LANGUAGE.md, rules K, defines the terms.
///
/// Here, a query is always named by the caller's index.
namespace deft::abi {

/// Consecutive tokens of a query's path that are adjacent in the page table (runtime/plan/Paths.h).
struct PathStretch {
  int position; ///< kv_pos of the first token
  int tokens;
  int location; ///< of the first token, as in abi::Run
  int depth;
};
static_assert(sizeof(PathStretch) == 16);

/// The key of a token that is hidden from all heads of a group. Other keys are the bits of their score,
/// ordered as unsigned numbers; NaN counts as the lowest finite number.
constexpr unsigned kHiddenKey = 0;

/// The memory of one selection, and the paths of its queries. It is on the device: attending kernels find it
/// through AttendArgs::selected; selecting kernels also receive it as their argument.
struct Selected {
  /// [query][group][worthStride], a key for each position. All keys are kHiddenKey before a layer that
  /// selects, and after its selection: keys of hidden tokens are never written.
  unsigned *worth;
  const PathStretch *stretches; ///< by rising positions
  const int *stretchBegin;      ///< for each query, and the end of the last one
  const int *pageTable;         ///< null: contiguous
  int *positions;               ///< [query][list][budget], rising; then -1
  int *places;                  ///< the same: page * page size + place in the page; contiguous: the token
  int *counts;                  ///< [query][list]
  int worthStride;              ///< the most positions of a path; a multiple of 4
  int budget;                   ///< the most tokens of a list
};

/// The arguments of deft_<variant>_select. The launch has the number of blocks per list that its text states
/// (codegen::cuda::SelectShape), each of 1,024 threads; several form a cluster. Lists follow each other.
struct SelectArgs {
  Selected selected;
  int queries;
  int keepFirst, keepLast; ///< tokens at both ends of a path that are in every list, if they are visible
};

// A sparse plan is a list of items (abi.h) that depends only on queries, budget and split, so it serves every
// step. An item has one query and a part of its list: `tokens` of it from `commonTokens` on, the same for all
// KV heads; `runBegin` is the caller's index. If a list is shorter, the missing tokens are skipped. Partials
// are merged as in other plans.

// Lists from a caller (rule K7) replace the page table in AttendArgs: for each query, by the caller's index,
// `budget` cache slots as in `places`, in any order, with -1 for no token at any place. The items are the
// same; Selected has only `budget`.

/// The arguments of deft_check_lists, which has a block for each query.
struct ListCheckArgs {
  const int *lists; ///< [query][budget]
  int budget;
  int reserved;              ///< 0
  long long slots;           ///< in the cache
  unsigned long long *wrong; ///< in the host's memory: a query + 1 and, above 32 bits, the wrong slot
};

} // namespace deft::abi
