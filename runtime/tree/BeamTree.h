#pragma once

#include "compiler/support/Result.h"
#include "runtime/tree/KvTree.h"

#include <cstdint>
#include <span>
#include <vector>

namespace deft::tree {

/// Tokens that the same beams see: those at the seats [beamBegin, beamEnd).
struct BeamStretch {
  int location; ///< of the first token, in the page table, in tokens
  int tokens;
  int position;  ///< of the first token: tokens of the path before it
  int depth;     ///< stretches of the path before it
  int beamBegin; ///< seats
  int beamEnd;
  int page; ///< of the room; -1: a history's
};

/// Which pages of the table hold what beams decode. The caller has K and V of the pages, and their entries of
/// the page table, which stay as they are.
struct BeamRoom {
  int pageSize = 1; ///< tokens; 1 where the cache is contiguous
  int firstPage = 0;
  int pages = 0;
};

/// The beams of a search, or of several: each has a history that it shares with others of its search, and
/// tokens of its own, of which it shares those that the beams it comes from had. In each step every beam goes
/// on from one of those of the step before, whichever, and gains a token.
///
/// Beams have numbers, which the caller gives, and seats: in the order of seats those that share more are
/// closer, so whoever sees a token are neighbours. A step moves seats without a change of that order. It
/// therefore costs one pass over the stretches, and no tree is walked.
///
/// New tokens of a step lie side by side, in the order of seats, from the place where those of the step
/// before end. A page is free as soon as nobody sees any of its tokens. Nothing is allocated once there were
/// as many stretches.
class BeamTree {
public:
  /// Tokens that are in the cache before the search, in the order of the path.
  using History = std::vector<Stretch>;

  static support::Result<BeamTree> make(const BeamRoom &room);

  /// Whether each has tokens, at places that a page table can have.
  static support::Result<void> checkHistories(std::span<const History> histories);
  /// Begins anew: a beam for each history, in that order. All pages are free. An error changes nothing.
  support::Result<void> start(std::span<const History> histories) { return start(histories, room_); }
  /// The same, with another room.
  support::Result<void> start(std::span<const History> histories, const BeamRoom &room);

  /// Whether all of them are beams of the step before.
  support::Result<void> checkParents(std::span<const int> parents) const;
  /// Beam i goes on from beam parents[i] of the step before, and gains a token, whose K and V belong to slot
  /// `locations()[i]`. Beams that nobody goes on from end. An error changes nothing.
  support::Result<void> advance(std::span<const int> parents);

  /// Lets the room have more pages, and gives where they are in the table: behind the others, or where pages
  /// were taken away.
  support::Result<std::vector<int>> addPages(int count);
  /// Takes away up to so many pages that are free, and gives where they were in the table.
  std::vector<int> takePages(int most);

  int beams() const { return static_cast<int>(order_.size()); }
  /// Of each beam: where its last token lies. A beam of no token has -1.
  std::span<const int> locations() const { return locations_; }
  /// The beam at each seat.
  std::span<const int> order() const { return order_; }
  /// Tokens of the path of the beam at each seat.
  std::span<const int> lengths() const { return lengths_; }
  /// In the order of their first seat; of one beam in the order of its path.
  std::span<const BeamStretch> stretches() const { return {stretches_.data(), stretchCount_}; }
  /// The seats that have the same history begin there, and the last ones end at beams(). A history that
  /// nobody goes on from is none.
  std::span<const int> searches() const { return searches_; }

  int freePages() const { return static_cast<int>(free_.size()); }
  /// Pages of the table that the last step has begun.
  std::span<const int> newPages() const { return newPages_; }
  /// Pages of the table of which beams saw tokens before the last step, and nobody does now. Some that became
  /// free in the step and were taken again are among newPages() instead.
  std::span<const int> freedPages() const { return freedPages_; }
  const BeamRoom &room() const { return room_; }
  std::uint64_t generation() const { return generation_; }

  /// The same as a tree: a node for each stretch, a query for each beam, in the order of beams. For who
  /// looks, and for plans of any kind.
  KvTree toTree() const;

private:
  /// Tokens of a step that lie in one page.
  struct Piece {
    int page; ///< of the room
    int offset, tokens;
  };

  explicit BeamTree(const BeamRoom &room) : room_(room) {}
  void countHeirs(std::span<const int> parents);
  support::Result<void> placeTokens(int beams);
  void seatHeirs(std::span<const int> parents);
  void moveStretches();

  BeamRoom room_;
  std::vector<int> order_, seatOf_, lengths_, depths_, locations_, searches_;
  std::vector<BeamStretch> stretches_; ///< room for more
  std::size_t stretchCount_ = 0;
  std::vector<int> live_;     ///< of each page of the room: tokens that somebody sees
  std::vector<int> free_;     ///< pages of the room, the next to be taken last
  std::vector<int> taken_;    ///< pages of the room that takePages() took away
  std::vector<Piece> pieces_; ///< of the last step
  std::uint64_t generation_ = 0;

  // Of the step under way:
  std::vector<int> begin_; ///< of each seat before, and behind the last: where its heirs begin
  std::vector<int> next_;  ///< likewise: where its next heir goes
  std::vector<int> newPages_, freedPages_; ///< of the table
  std::vector<int> newOrder_, newLengths_, newDepths_;
  std::vector<BeamStretch> newStretches_;
};

} // namespace deft::tree
