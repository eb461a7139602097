#pragma once

/// What host and device agree on of unions: queries whose paths begin alike read the lists of all of them as
/// one, each token once. Plain structs without includes, as abi.h.
namespace deft::abi {

struct Item;
struct Selected;

constexpr int kMostUnited = 32; ///< queries of a union: one bit each
/// Where a caller hands over the lists, of a union: queries, and entries of their lists.
constexpr int kMostGivenUnited = 16, kMostGivenListed = 16384;

/// Queries that follow each other in the plan's order and whose paths are the same tokens up to a position.
struct Union {
  int queryBegin; ///< in the plan's order
  int queryCount; ///< 0: neither it nor one behind it is there
  int sharedEnd;  ///< past the last position of which all have the same token
  int before;     ///< queries of the unions before it
  int itemBegin;  ///< of its items
  int parts;      ///< that its tokens are cut into
};
static_assert(sizeof(Union) == 24);

constexpr int kNoTokens = -1; ///< in place of where an item's tokens begin

/// The tokens of unions. Lies behind the plan's abi::Selected. For each list of a query a union has one of
/// its own: first what is shared, by rising positions, then what each query has beside that, query by query.
/// So many tokens fit as its queries' lists have together: from (before * lists + list * queryCount) * budget
/// on.
struct Unions {
  const Union *unions;
  int *positions, *places; ///< as Selected's
  unsigned *readers;       ///< the queries of the union whose list has the token: bit i, query queryBegin + i
  int *counts;             ///< [union][list]
  const int *callerIndex;  ///< of each query of the plan's order
};

/// What deft_<variant>_unite is launched with: for each list of each union a block, or a cluster.
struct UniteArgs {
  const Selected *selected; ///< whose page table is not set, and of whom a caller's lists need the budget
  Unions unions;
  const int *pageTable; ///< or the lists that a caller hands over
  Item *items; ///< of unions, into which their tokens are written; null: the kernel that reads them finds it
};

// Of lists that a caller hands over (select_abi.h) a union has no positions, and its tokens stand in the
// order of its queries' lists, each where the first list has it.

// An item of a union (abi.h) has its queries and a part of the union's tokens: equal ones, cut on the device,
// where their number is known.
//   Family sm80   union `runBegin`, of `runCount` parts the one `commonTokens`, the same for all KV heads;
//                 `tokens` is not 0.
//   Family sm90   the device writes items: for each part one for each KV head, of `tokens` from token
//                 `commonTokens` of all unions' on. Where there are none it has one that nobody reads
//                 (kNoTokens), so that its partials are written. `runBegin` is 0, and AttendArgs::runs are
//                 the Unions.

} // namespace deft::abi
