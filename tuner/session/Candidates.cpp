#include "tuner/session/Candidates.h"

#include <algorithm>

namespace deft::session {

std::size_t Candidate::burden() const {
  return config.phases.size() + (config.order == config::Order::Mixed ? 1 : 0);
}

std::string Candidates::enter(Candidate candidate) {
  std::string id = space::configId(candidate.config);
  const bool isOfNeighbour = candidate.isOfNeighbour();
  const auto [found, isNew] = candidates_.try_emplace(id, std::move(candidate));
  if (!isNew && isOfNeighbour)
    found->second.origin = kNeighbourOrigin;
  return id;
}

UntunedChoices::UntunedChoices(std::vector<config::Config> ofTrees, int searched)
    : configs_(std::move(ofTrees)), searched_(static_cast<std::size_t>(searched)) {
  for (const config::Config &config : configs_)
    ids_.push_back(space::configId(config));
}

bool UntunedChoices::isThatOfAllSearched(const std::string &id) const {
  const std::span<const std::string> searched = searchedIds();
  return std::all_of(searched.begin(), searched.end(),
                     [&](const std::string &untuned) { return untuned == id; });
}

} // namespace deft::session
