#pragma once

#include "compiler/support/Result.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace deft::peers {

/// What ranks must have in common, as hashes; 0: not compared.
struct Agreement {
  enum Subject { Version, Attention, Options, Tree, kSubjects };

  std::array<std::uint64_t, kSubjects> hashes{};

  /// "another version of the library than" and so on, of the first subject in which they differ; null: they
  /// agree.
  const char *differenceFrom(const Agreement &other) const;
};

/// Of an agreement's texts.
std::uint64_t hashOf(const std::string &text);

/// "page 7 is claimed by rank 0 and by rank 2": the first page or node that each of two ranks has in its own
/// list of holders as its own; empty: there is none. `kind` is "page" or "node".
std::string claimedTwice(const std::string &kind, int rank, const std::vector<int> &holders, int other,
                         const std::vector<int> &otherHolders);

/// That two ranks have something else, `difference`, and what both claim.
support::Error disagreement(const std::string &difference, const std::string &kind, int rank,
                            const std::vector<int> &holders, int other, const std::vector<int> &otherHolders);

} // namespace deft::peers
