#pragma once

#include "runtime/api/Call.h"
#include "runtime/peers/Agreement.h"

#include <deft/c/peers.h>

#include <span>
#include <string>

namespace deft::api {

/// The data that a rank of a group compares with the others.
struct RanksAgreement {
  peers::Agreement hashes;
  std::string kind;             ///< "page" or "node"
  std::span<const int> holders; ///< of pages or nodes, in the caller's tree
};

Result<peers::Agreement> hashesOf(const deft_agreement *given);
/// An error if the tree belongs to another rank.
Result<RanksAgreement> agreementOf(const deft_agreement *given, int count, int rank);

} // namespace deft::api
