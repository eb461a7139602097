#pragma once

#include "compiler/support/Result.h"
#include "runtime/tree/KvTree.h"

#include <cstdint>
#include <span>
#include <vector>

namespace deft::tree {

/// Consecutive tokens that the same beams see: the beams at the seats [beamBegin, beamEnd).
struct BeamStretch {
  int location; ///< of the first token in the page table, in tokens
  int tokens;
  int position;  ///< of the first token: tokens of the path before it
  int depth;     ///< stretches of the path before it
  int beamBegin; ///< seats
  int beamEnd;
  int page; ///< of the room; -1: of a history
};

/// The pages of the table that hold decoded tokens. The caller owns K and V of these pages, and their entries
/// of the page table, which must not change.
struct BeamRoom {
  int pageSize = 1; ///< tokens; 1 where the cache is contiguous
  int firstPage = 0;
  int pages = 0;
};

/// The beams of one search or of several. A beam shares its history with the other beams of its search. Its
/// later tokens it shares with all beams that descend from the same beams. In each step every beam continues
/// any beam of the step before and gains a token.
///
/// The caller numbers the beams. They also have seats: beams that share more sit closer together, so the
/// readers of any token are neighbours. A step renumbers seats but keeps this order, so it needs only one
/// pass over the stretches and never walks a tree.
///
/// The new tokens of a step are consecutive, in the order of seats, behind those of the step before. A page
/// is free as soon as no beam sees any of its tokens. Nothing is allocated unless there are more stretches
/// than ever before.
class BeamTree {
public:
  /// Tokens that are in the cache before the search, in path order.
  using History = std::vector<Stretch>;

  static support::Result<BeamTree> make(const BeamRoom &room);

  /// Checks that each history has tokens, at locations that a page table can have.
  static support::Result<void> checkHistories(std::span<const History> histories);
  /// Starts again with one beam for each history, in order. All pages are free. An error changes nothing.
  support::Result<void> start(std::span<const History> histories) { return start(histories, room_); }
  /// Starts in another room.
  support::Result<void> start(std::span<const History> histories, const BeamRoom &room);

  /// Checks that every parent is a beam of the step before.
  support::Result<void> checkParents(std::span<const int> parents) const;
  /// Beam i continues beam parents[i] of the step before and gains a token, whose place is in `pieces()`.
  /// Beams that no beam continues end. An error changes nothing.
  support::Result<void> advance(std::span<const int> parents);

  /// Adds pages to the room and returns their places in the table: places of pages that were taken away, then
  /// places behind all others.
  support::Result<std::vector<int>> addPages(int count);
  /// Takes away up to `most` free pages and returns their places in the table.
  std::vector<int> takePages(int most);

  int beams() const { return static_cast<int>(order_.size()); }
  /// Tokens of one step that lie in one page.
  struct Piece {
    int page; ///< of the room
    int offset, tokens;
  };
  /// The tokens of the last step, in the order of seats; none after start().
  std::span<const Piece> pieces() const { return pieces_; }
  /// The beam at each seat.
  std::span<const int> order() const { return order_; }
  /// For the beam at each seat: the tokens of its path.
  std::span<const int> lengths() const { return lengths_; }
  /// For the beam at each seat: the stretches of its path.
  std::span<const int> depths() const { return depths_; }
  /// Sorted by first seat; the stretches of one beam are in path order.
  std::span<const BeamStretch> stretches() const { return {stretches_.data(), stretchCount_}; }
  /// The tokens of each stretch of a history. All other stretches have one.
  std::span<const int> historyTokens() const { return historyTokens_; }
  /// For each search: its first seat. Its seats end where the next search begins, the last one's at beams().
  /// A search without beams is not listed.
  std::span<const int> searches() const { return searches_; }

  int freePages() const { return static_cast<int>(free_.size()); }
  /// Pages of the table in which the last step wrote first.
  std::span<const int> newPages() const { return newPages_; }
  /// Pages of the table that held visible tokens before the last step and hold none now. A page that the step
  /// freed and then used again is among newPages() instead.
  std::span<const int> freedPages() const { return freedPages_; }
  const BeamRoom &room() const { return room_; }
  std::uint64_t generation() const { return generation_; }

  /// The beams as a tree: a node for each stretch, a query for each beam, in the order of beams. For
  /// inspection, and for planners of any kind.
  KvTree toTree() const;

private:
  explicit BeamTree(const BeamRoom &room) : room_(room) {}
  void countHeirs(std::span<const int> parents);
  void freeUnseen();
  support::Result<void> placeTokens(int beams);
  void seatHeirs();
  void moveStretches();

  BeamRoom room_;
  std::vector<int> order_, seatOf_, lengths_, depths_, searches_;
  std::vector<int> historyTokens_;
  std::vector<BeamStretch> stretches_; ///< its memory may be larger than stretchCount_
  std::size_t stretchCount_ = 0;
  std::vector<int> live_;     ///< for each page of the room: tokens that some beam sees
  std::vector<int> free_;     ///< pages of the room; the last one is taken next
  std::vector<int> taken_;    ///< pages of the room that takePages() took away
  std::vector<Piece> pieces_; ///< of the last step
  std::uint64_t generation_ = 0;

  // During a step:
  std::vector<int> parentSeats_; ///< for each new beam: the seat of its parent
  std::vector<int> begin_;       ///< for each old seat, and the end: the first seat of its heirs
  std::vector<int> next_;        ///< likewise: the seat of its next heir
  std::vector<int> stayBefore_;  ///< for each new seat: stretches that stay and begin there or before
  std::vector<int> unseen_;      ///< pages of the room that lose their last token
  std::vector<int> newPages_, freedPages_; ///< of the table
  std::vector<int> newOrder_, newLengths_, newDepths_;
  std::vector<BeamStretch> newStretches_;
};

} // namespace deft::tree
