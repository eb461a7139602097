#pragma once

/// What host and device agree on of selection: what tokens are worth, the lists that are chosen by it, and
/// the paths by which positions become places in the cache. Plain structs without includes, as abi.h. What
/// the words mean is in specs/LANGUAGE.md, rules K.
///
/// A query is named by the caller's index everywhere here.
namespace deft::abi {

/// Consecutive tokens of a query's path that lie side by side in the page table (runtime/plan/Paths.h).
struct PathStretch {
  int position; ///< kv_pos of the first token
  int tokens;
  int location; ///< of the first token, as abi::Run's
  int depth;
};
static_assert(sizeof(PathStretch) == 16);

/// Of a token that is hidden from all heads of a group. Other keys are their score's bits in an order that
/// unsigned numbers have, NaN as the lowest finite number.
constexpr unsigned kHiddenKey = 0;

/// Memory of one selection, and the paths of its queries. It lies on the device: kernels that attend get
/// where by AttendArgs::selected, those that select have it as their argument, too.
struct Selected {
  /// [query][group][worthStride], a key a position. All of it is kHiddenKey before a layer that selects, and
  /// a selection leaves it so: what nobody sees is never written.
  unsigned *worth;
  const PathStretch *stretches; ///< by rising positions
  const int *stretchBegin;      ///< of each query, and the end of the last one
  const int *pageTable;         ///< null: contiguous
  int *positions;               ///< [query][list][budget], rising; -1 behind the last one
  int *places;                  ///< likewise: page * page size + place in the page; contiguous: the token
  int *counts;                  ///< [query][list]
  int worthStride;              ///< positions that a path may have; a multiple of 4
  int budget;                   ///< tokens of a list, at most
};

/// What deft_<variant>_select is launched with: as many blocks of 1,024 threads for each list as its text
/// says (codegen::cuda::SelectShape), a cluster where there are several, one list after the other.
struct SelectArgs {
  Selected selected;
  int queries;
  int keepFirst, keepLast; ///< tokens at both ends of a path that are in every list, if they are seen
};

// A sparse plan is a list of items (abi.h) that follows from queries, budget and split alone, and so serves
// every step: an item has one query and a part of its list, `tokens` of it from `commonTokens` on, the same
// for all KV heads; `runBegin` is the caller's index. What a list has less is passed over; partials are
// merged as others.

// Lists that a caller hands over (rule K7) stand in place of the page table in AttendArgs: for each query, by
// the caller's index, `budget` slots of the cache as in `places`, in any order, and -1 for none anywhere. The
// items are the same; of Selected only `budget` is there.

/// What deft_check_lists reads and writes, with a block for each query.
struct ListCheckArgs {
  const int *lists; ///< [query][budget]
  int budget;
  int reserved;              ///< 0
  long long slots;           ///< of the cache
  unsigned long long *wrong; ///< in the host's memory: a query + 1 and, above 32 bits, what its list has
};

} // namespace deft::abi
