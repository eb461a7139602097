#pragma once

#include "tuner/space/Space.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace deft::session {

/// Where a candidate comes from, if no strategy proposed it: some tree gets it without an entry, it is known
/// for this very class, or for one beside it.
inline constexpr char kUntunedOrigin[] = "default", kRelatedOrigin[] = "related",
                      kNeighbourOrigin[] = "neighbour";

/// A config that a session measures, or may.
struct Candidate {
  config::Config config;
  std::optional<space::Point> point; ///< none: it lies outside of the space
  std::string origin;                ///< one of those above, or the strategy's name

  bool isOfNeighbour() const { return origin == kNeighbourOrigin; }
  /// What a config costs that a measurement of one step does not show: phases, which are launches one after
  /// the other, and whether a step in which leaves have grown needs a new plan.
  std::size_t burden() const;
};

/// The candidates of one class, by id.
class Candidates {
public:
  /// Its id. Where it is there already, it stays what it is, but that a neighbour has it, too.
  std::string enter(Candidate candidate);
  const Candidate &at(const std::string &id) const { return candidates_.at(id); }

private:
  std::map<std::string, Candidate> candidates_;
};

/// What each tree of a class gets without an entry.
class UntunedChoices {
public:
  /// `searched`: so many trees, the first ones, are searched on.
  UntunedChoices(std::vector<config::Config> ofTrees, int searched);

  const std::vector<config::Config> &configs() const { return configs_; }
  const std::vector<std::string> &ids() const { return ids_; }
  const std::string &idOn(int tree) const { return ids_[static_cast<std::size_t>(tree)]; }
  /// The first tree's: what stands for all of them where one has to.
  const config::Config &first() const { return configs_.front(); }

  /// Such a config cannot be faster on what is searched on. One that some of the trees get is a candidate
  /// like any other: it may be what the others should get, too.
  bool isThatOfAllSearched(const std::string &id) const;
  std::span<const std::string> searchedIds() const { return {ids_.data(), searched_}; }

private:
  std::vector<config::Config> configs_; ///< of each tree
  std::vector<std::string> ids_;
  std::size_t searched_;
};

} // namespace deft::session
