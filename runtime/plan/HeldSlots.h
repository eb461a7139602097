#pragma once

#include "runtime/tree/DraftStandIn.h"
#include "runtime/tree/Ranks.h"
#include "templates/deft/draft_abi.h"

#include <cstdint>
#include <span>
#include <vector>

namespace deft::plan {

/// Where the tokens lie that come after those of a request: gained ones, and then its drafts.
struct DraftRoom {
  int mostGain = 0;                   ///< the most tokens that a request may gain
  const tree::Ranks *ranks = nullptr; ///< null: in this cache. Else not by node
  bool mayJoin = false;               ///< as in VisibleTree::read()
};

/// The slots of requests (abi::Spread) that lie in this cache.
struct HeldSlots {
  struct OfRequest {
    abi::Spread spread = abi::kWhole;
    int location = 0;     ///< as in abi::DraftRequest, as is `begin`
    int begin = 0;        ///< its first word
    int mostGain = 0;     ///< as far as pages have a holder
    int mostGainRuns = 1; ///< of gained tokens
    int first = 0;        ///< location of the first slot that this cache has, if there are any
    int end = 0;          ///< the end of its drafts in this cache, if nothing is gained; 0: it has none
    bool areAny = true;   ///< whether this cache has any slot
  };
  std::vector<OfRequest> requests;
  std::vector<unsigned> words; ///< of all requests (abi::DraftArgs::held)
  /// For each query by caller's index: whether this cache has any slot of its request. Empty without ranks.
  std::vector<std::uint8_t> standIns;

  /// All queries must be drafts of these requests.
  static HeldSlots of(std::span<const tree::DraftedRequest> requests, const DraftRoom &room);
};

} // namespace deft::plan
