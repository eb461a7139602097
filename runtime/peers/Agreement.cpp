#include "runtime/peers/Agreement.h"

#include <algorithm>

namespace deft::peers {

const char *Agreement::differenceFrom(const Agreement &other) const {
  static constexpr const char *kNames[kSubjects] = {"version of the library", "attention",
                                                    "config or options of its plan", "tree or layout"};
  for (std::size_t i = 0; i < kSubjects; ++i)
    if (hashes[i] != other.hashes[i])
      return kNames[i];
  return nullptr;
}

std::uint64_t hashOf(const std::string &text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL; // FNV-1a
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return std::max<std::uint64_t>(hash, 1);
}

std::string claimedTwice(const std::string &kind, int rank, const std::vector<int> &holders, int other,
                         const std::vector<int> &otherHolders) {
  const std::size_t count = std::min(holders.size(), otherHolders.size());
  for (std::size_t i = 0; i < count; ++i)
    if (holders[i] == rank && otherHolders[i] == other)
      return kind + " " + std::to_string(i) + " is claimed by rank " + std::to_string(std::min(rank, other)) +
             " and by rank " + std::to_string(std::max(rank, other));
  return {};
}

support::Error disagreement(const std::string &difference, const std::string &kind, int rank,
                            const std::vector<int> &holders, int other,
                            const std::vector<int> &otherHolders) {
  const std::string claimed = claimedTwice(kind, rank, holders, other, otherHolders);
  return {support::ErrorCode::Usage,
          "rank " + std::to_string(other) + " has another " + difference + " than rank " +
              std::to_string(rank) + (claimed.empty() ? "" : ": " + claimed),
          "all ranks plan the same tree, in the same way"};
}

} // namespace deft::peers
