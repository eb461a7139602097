#pragma once

/// The contract between host and device for unions: queries whose paths share a prefix read all their lists
/// as one, each token once. Plain structs without includes, like abi.h.
namespace deft::abi {

struct Item;
struct Selected;

constexpr int kMostUnited = 32; ///< queries of a union: one bit each
/// The limits of a union of lists from a caller: queries, and entries of their lists.
constexpr int kMostGivenUnited = 16, kMostGivenListed = 16384;

/// Queries that are consecutive in the plan's order and whose paths have the same tokens up to a position.
struct Union {
  int queryBegin; ///< in the plan's order
  int queryCount; ///< 0: ends the list of unions
  int sharedEnd;  ///< after the last position at which all have the same token
  int before;     ///< queries of the unions before it
  int itemBegin;  ///< of its items
  int parts;      ///< parts into which its tokens are divided
};
static_assert(sizeof(Union) == 24);

constexpr int kNoTokens = -1; ///< instead of the place where an item's tokens begin

/// The tokens of unions, stored after the plan's abi::Selected. For each list of a query, a union has its own
/// list: first the shared tokens, by rising positions, then each query's other tokens, query by query. A
/// union has room for all tokens of its queries' lists: from (before * lists + list * queryCount) * budget
/// on.
struct Unions {
  const Union *unions;
  int *positions, *places; ///< as in Selected
  unsigned *readers;       ///< the union's queries whose list has the token: bit i, query queryBegin + i
  int *counts;             ///< [union][list]
  const int *callerIndex;  ///< of each query in the plan's order
};

/// The arguments of deft_<variant>_unite: a block or a cluster for each list of each union.
struct UniteArgs {
  const Selected *selected; ///< its page table is not set; for a caller's lists, only the budget is
  Unions unions;
  const int *pageTable; ///< or the lists from a caller
  Item *items;          ///< of unions; the kernel writes their tokens; null: the reading kernel computes them
};

// For lists from a caller (select_abi.h) a union has no positions. Its tokens are in the order of its
// queries' lists, each at its place in the first list that has it.

// An item of a union (abi.h) has its queries and a part of the union's tokens. Parts are equal; the device
// divides them, since it knows their number.
//   Family sm80   an item has part `commonTokens` of `runCount` parts of union `runBegin`, the same for
//                 all KV heads; `tokens` is not 0.
//   Family sm90   the device writes the items: one for each part and KV head, with `tokens` tokens from token
//                 `commonTokens` of all unions on. A part without tokens gets one that no query reads
//                 (kNoTokens), so that its partials are written. `runBegin` is 0, and AttendArgs::runs are
//                 the Unions.

} // namespace deft::abi
