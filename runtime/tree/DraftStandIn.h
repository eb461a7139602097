#pragma once

#include <algorithm>

namespace deft::tree {

/// A request whose last queries are drafts. The host does not know which drafts see which.
struct DraftedRequest {
  int request = 0;    ///< its number in the batch
  int firstQuery = 0; ///< caller's index of the first draft's query; the others follow
  int count = 0;      ///< drafts
  int length = 0;     ///< tokens before the drafts
  int location = 0;   ///< of the first draft's slot, behind those tokens; the others follow

  bool operator==(const DraftedRequest &) const = default;
};

/// Placeholder for drafts in a tree: one leaf below the request's end for each kBlock of its places
/// (abi::DraftRequest), with one query for each place, which sees the whole leaf. The leaf's first tokens
/// stand for all drafts before the block, of which its queries will see few; then each draft of the block has
/// a token. So every partition that covers the stand-ins covers each visible pair of drafts once, at about
/// the real cost.
struct DraftStandIn {
  static constexpr int kBlock = 16;
  static constexpr int kMostAbove = 8; ///< tokens for the drafts before a block; no estimate fits all trees

  int firstPlace = 0;
  int count = 0; ///< places of the block
  int above = 0; ///< tokens that stand for all places before it

  static int blocks(int drafts) { return (drafts + kBlock - 1) / kBlock; }
  static DraftStandIn of(int drafts, int block) {
    const int first = block * kBlock;
    return {first, std::min(drafts - first, kBlock), std::min(first, kMostAbove)};
  }

  int tokens() const { return above + count; }
  /// The first place that tokens from this one on stand for. Never decreases; ends behind the block.
  int placeAt(int token) const {
    return token < above ? token * firstPlace / above : firstPlace + token - above;
  }
};

} // namespace deft::tree
