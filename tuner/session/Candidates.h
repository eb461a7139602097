#pragma once

#include "tuner/space/Space.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace deft::session {

/// The origin of candidates that no strategy proposed: a tree's choice without an entry, a config known for
/// this class, or one known for a neighbouring class.
inline constexpr char kUntunedOrigin[] = "default", kRelatedOrigin[] = "related",
                      kNeighbourOrigin[] = "neighbour";

/// A config that a session may measure.
struct Candidate {
  config::Config config;
  std::optional<space::Point> point; ///< none: it is outside of the space
  std::string origin;                ///< one of the above, or the strategy's name

  bool isOfNeighbour() const { return origin == kNeighbourOrigin; }
  /// Costs of a config that measuring one step does not show: phases, which are separate launches, and
  /// whether a step with grown leaves needs a new plan.
  std::size_t burden() const;
};

/// The candidates of one class, by id.
class Candidates {
public:
  /// Returns its id. An existing candidate stays unchanged, except that it may become a neighbour's.
  std::string enter(const Candidate &candidate);
  const Candidate &at(const std::string &id) const { return candidates_.at(id); }

private:
  std::map<std::string, Candidate> candidates_;
};

/// The choice of each tree of a class without an entry.
class UntunedChoices {
public:
  /// `searched`: the number of trees, from the first on, that are searched on.
  UntunedChoices(std::vector<config::Config> ofTrees, int searched);

  const std::vector<config::Config> &configs() const { return configs_; }
  const std::vector<std::string> &ids() const { return ids_; }
  const std::string &idOn(int tree) const { return ids_[static_cast<std::size_t>(tree)]; }
  /// The first tree's: stands for all of them if a single one is needed.
  const config::Config &first() const { return configs_.front(); }

  /// Such a config cannot be faster on the searched trees. A choice of only some trees is a candidate like
  /// any other: it may be better for the other trees.
  bool isThatOfAllSearched(const std::string &id) const;
  std::span<const std::string> searchedIds() const { return {ids_.data(), searched_}; }

private:
  std::vector<config::Config> configs_; ///< of each tree
  std::vector<std::string> ids_;
  std::size_t searched_;
};

} // namespace deft::session
