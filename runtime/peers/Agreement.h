#pragma once

#include "compiler/support/Result.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace deft::peers {

/// Hashes that ranks must have in common; 0: not compared.
struct Agreement {
  enum Subject { Version, Attention, Options, Tree, kSubjects };

  std::array<std::uint64_t, kSubjects> hashes{};

  /// "another version of the library than" and so on, for the first subject in which they differ; null: they
  /// agree.
  const char *differenceFrom(const Agreement &other) const;
};

/// The hash of a text of an agreement.
std::uint64_t hashOf(const std::string &text);

/// "page 7 is claimed by rank 0 and by rank 2": the first page or node that two ranks both claim in their own
/// lists of holders; empty: none. `kind` is "page" or "node".
std::string claimedTwice(const std::string &kind, int rank, const std::vector<int> &holders, int other,
                         const std::vector<int> &otherHolders);

/// The error that two ranks differ in `difference`, with the page or node that both claim.
support::Error disagreement(const std::string &difference, const std::string &kind, int rank,
                            const std::vector<int> &holders, int other, const std::vector<int> &otherHolders);

} // namespace deft::peers
