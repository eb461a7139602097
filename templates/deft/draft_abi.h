#pragma once

/// What host and device agree on of drafts: queries of a request whose tree only the device knows. A plan has
/// room for any tree of so many, and deft_draft_plan writes into it what the tree is.
///
/// A request's drafts have *places*: depth-first, siblings in the order of their numbers, so that who sees a
/// draft is an interval. Its queries stand in the plan by their places, too.
namespace deft::abi {

struct Item; // of abi.h
struct Run;

constexpr int kMostDrafts = 256; ///< of a request

/// What the host knows of a request.
struct DraftRequest {
  int request;    ///< its number: of its rows in the mask, and of its length
  int count;      ///< of its drafts; 0: it ends the list
  int firstQuery; ///< caller's index of the first one's query; the others follow
  int length;     ///< tokens before the drafts, as planned
  int mostGain;   ///< of these, at most
  int location;   ///< of the token behind those planned
  int reserved[2];
};
static_assert(sizeof(DraftRequest) == 32);

/// Some places of a request's that an item reads for some of the request's queries.
struct DraftPart {
  int request; ///< index into DraftArgs::requests
  int placeBegin, placeEnd;
  int queryBegin, queryEnd; ///< relative to the item's first
  int firstPlace;           ///< of the query at queryBegin
  int readsGain;            ///< 1: also the tokens that the request has gained
  int reserved;
};
static_assert(sizeof(DraftPart) == 32);

/// An item that reads drafts, with room for a run of each behind its other runs.
struct DraftItem {
  int item; ///< by its place among all; -1 ends the list
  int runBegin;
  int runCount; ///< before those of drafts
  int tokens;   ///< of these runs
  int partBegin, partCount;
  int reserved[2];
};
static_assert(sizeof(DraftItem) == 32);

/// What deft_draft_plan reads and writes. It begins with what was planned each time, so that it may run as
/// often as one likes.
struct DraftArgs {
  const unsigned *bits; ///< [request][draft][(rows + 31) / 32]: bit j of row i: draft i sees draft j
  const int *depths;    ///< [request][draft]; null: a draft has as many above it as it sees
  const int *lengths;   ///< [request], tokens before the drafts; null: as planned
  const DraftRequest *requests;
  const DraftItem *draftItems;
  const DraftPart *parts;
  const int *queryAt; ///< the query of the plan's order at a request's place, from firstQuery on
  Item *items;
  Run *runs;
  int *callerIndex;
  int *queryPos;
  unsigned long long *unserved; ///< in the host's memory: request + 1 and, above 32 bits, its length
  unsigned long long *noTree;   ///< likewise: request + 1 and, above 32 bits, a draft whose row is wrong
  int rows;                     ///< drafts that a request has in the arrays
  int mostRequests, mostItems;  ///< of the lists
  int reserved;
};

} // namespace deft::abi
