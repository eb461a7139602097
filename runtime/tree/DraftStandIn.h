#pragma once

#include <algorithm>

namespace deft::tree {

/// A request whose last queries are drafts, of which the host does not know which see which.
struct DraftedRequest {
  int request = 0;    ///< its number in the batch
  int firstQuery = 0; ///< caller's index of the first draft's query; the others follow
  int count = 0;      ///< drafts
  int length = 0;     ///< tokens before them
  int location = 0;   ///< of the token behind those: the first draft's slot; the others follow

  bool operator==(const DraftedRequest &) const = default;
};

/// What stands in a tree for drafts: a leaf for each kBlock of a request's places (abi::DraftRequest), below
/// the end of the request, with a query for each, which sees all of it. Its tokens are first those that stand
/// for all drafts before the block's, of which the block's queries will see few, and then one for each of the
/// block's. So whatever partition covers the stand-ins covers every pair of a draft and one that it may see
/// once, and what that costs is about what it will cost.
struct DraftStandIn {
  static constexpr int kBlock = 16;
  static constexpr int kMostAbove = 8; ///< drafts seen of those before a block: no guess is good for all

  int firstPlace = 0;
  int count = 0; ///< of the block's places
  int above = 0; ///< tokens for all before

  static int blocks(int drafts) { return (drafts + kBlock - 1) / kBlock; }
  static DraftStandIn of(int drafts, int block) {
    const int first = block * kBlock;
    return {first, std::min(drafts - first, kBlock), std::min(first, kMostAbove)};
  }

  int tokens() const { return above + count; }
  /// The first place that the tokens from this one on stand for; never falls, and ends behind the block's.
  int placeAt(int token) const {
    return token < above ? token * firstPlace / above : firstPlace + token - above;
  }
};

} // namespace deft::tree
