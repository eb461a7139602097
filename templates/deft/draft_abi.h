#pragma once

/// The contract between host and device for drafts: queries of a request that form a tree known only to the
/// device. A plan has room for any tree of a given number of drafts, and deft_draft_plan writes the tree into
/// it.
///
/// A request's drafts have *places*: depth-first, siblings in the order of their numbers. So the viewers of a
/// draft form an interval. The plan orders its queries by their places as well.
namespace deft::abi {

struct Item; // see abi.h
struct Run;

constexpr int kMostDrafts = 256; ///< of a request

/// Which of a request's slots lie in this cache. The tokens after the planned ones have consecutive *slots*:
/// first those that the request has gained, then its drafts.
enum Spread : int {
  kWhole,   ///< all: slot i at location + i
  kInPlace, ///< those of this rank: slot i at location + i
  kPacked,  ///< those of this rank, one after the other from `location` on
  kJoined,  ///< likewise, and no kernel reads positions: gained tokens are one run, with gaps of other ranks
};

/// The host's data about a request.
struct DraftRequest {
  int request;    ///< its number, for its rows in the mask and its length
  int count;      ///< of its drafts; 0 ends the list
  int firstQuery; ///< caller's index of the first one's query; the others follow
  int length;     ///< tokens before the drafts, as planned
  int mostGain;   ///< the most tokens that these may gain
  int location;   ///< of the first slot
  int spread;     ///< a Spread
  int heldBegin;  ///< with ranks: its first word in DraftArgs::held
};
static_assert(sizeof(DraftRequest) == 32);

/// Some places of a request that an item reads for some of the request's queries.
struct DraftPart {
  int request; ///< index into DraftArgs::requests
  int placeBegin, placeEnd;
  int queryBegin, queryEnd; ///< relative to the item's first
  int firstPlace;           ///< of the query at queryBegin
  int readsGain;            ///< 1: also reads the tokens that the request has gained
  int reserved;
};
static_assert(sizeof(DraftPart) == 32);

/// An item that reads drafts, with room for one run per draft after its other runs.
struct DraftItem {
  int item; ///< its index among all items; -1 ends the list
  int runBegin;
  int runCount; ///< before those of drafts
  int tokens;   ///< of these runs
  int partBegin, partCount;
  int spare; ///< the location of a token that nobody sees, for an item that would have none
  int reserved;
};
static_assert(sizeof(DraftItem) == 32);

/// The arguments of deft_draft_plan. It always starts from the planned values, so it may run any number of
/// times.
struct DraftArgs {
  const unsigned *bits; ///< [request][draft][(rows + 31) / 32]: bit j of row i: draft i sees draft j
  const int *depths;    ///< [request][draft]; null: a draft's depth is the number of other drafts it sees
  const int *lengths;   ///< [request], tokens before the drafts; null: as planned
  const DraftRequest *requests;
  const DraftItem *draftItems;
  const DraftPart *parts;
  const unsigned *held; ///< bit i of a request's words: whether this rank holds its slot i
  const int *queryAt;   ///< the query in the plan's order at a request's place, from firstQuery on
  Item *items;
  Run *runs;
  int *callerIndex;
  int *queryPos;
  unsigned long long *unserved; ///< in the host's memory: request + 1 and, above 32 bits, its length
  unsigned long long *noTree;   ///< likewise: request + 1 and, above 32 bits, a draft whose row is wrong
  int rows;                     ///< drafts of a request in the arrays
  int mostRequests, mostItems;  ///< lengths of the lists
  int reserved;
};

} // namespace deft::abi
