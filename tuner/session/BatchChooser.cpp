#include "tuner/session/BatchChooser.h"

#include "compiler/config/ConfigJson.h"

#include <utility>

namespace deft::session {

using nlohmann::json;

namespace {

/// A race starts once this many candidates have kernels, as long as at most kMostWaiting wait for theirs:
/// compiling takes longer than a race.
constexpr std::size_t kFewestReady = 4, kMostWaiting = 16;

} // namespace

BatchChooser::BatchChooser(Sources sources, Related related)
    : from_(std::move(sources)), related_(std::move(related)) {}

void BatchChooser::begin() {
  for (const config::Config &config : from_.untuned.configs())
    announce(from_.candidates.enter({config, from_.space.find(config), kUntunedOrigin}));
  from_.compilers.ahead(from_.untuned.configs());
  const std::string &first = from_.untuned.ids().front();
  if (const auto &point = from_.candidates.at(first).point; point && from_.untuned.isThatOfAllSearched(first))
    from_.strategy.tell(*point, 1.0);
}

void BatchChooser::announce(const std::string &id) {
  if (!announced_.insert(id).second)
    return;
  const Candidate &candidate = from_.candidates.at(id);
  json event = {{"event", "candidate"},
                {"class", from_.treeClass},
                {"id", id},
                {"config", config::toJson(candidate.config)},
                {"origin", candidate.origin}};
  if (candidate.point)
    if (const auto us = from_.predictor.microseconds(*candidate.point))
      event["predicted_us"] = *us;
  from_.journal.write(event);
}

/// A resumed session races the same candidates, whichever kernels are ready sooner this time.
std::vector<std::string> BatchChooser::ofJournal(int round) {
  std::vector<std::string> ids;
  const auto *batch = from_.journal.batch(from_.treeClass, round);
  if (!batch)
    return ids;
  for (const std::string &id : *batch) {
    const json *event = from_.journal.candidate(from_.treeClass, id);
    const auto config = event ? config::configFromJson(event->value("config", json()), from_.device)
                              : support::Result<config::Config>(support::Error{});
    if (!config)
      return {};
    ids.push_back(from_.candidates.enter({*config, from_.space.find(*config), event->value("origin", "")}));
    asked_.insert(ids.back());
    announce(ids.back());
  }
  return ids;
}

void BatchChooser::add(const config::Config &config, const std::optional<space::Point> &point,
                       const std::string &origin) {
  const std::string id = space::configId(config);
  if (from_.untuned.isThatOfAllSearched(id) || !asked_.insert(id).second)
    return;
  from_.candidates.enter({config, point, origin});
  if (!from_.journal.rejected(from_.treeClass, id)) {
    waiting_.push_back(id);
    from_.compilers.ahead({config});
  } else if (point) {
    from_.strategy.tell(*point, std::nullopt);
  }
}

void BatchChooser::addRelated() {
  for (const config::Config &config : related_.ofClass)
    add(config, from_.space.find(config), kRelatedOrigin);
  for (const config::Config &config : related_.neighbours)
    add(config, from_.space.find(config), kNeighbourOrigin);
  isExhausted_ = related_.isKnown;
}

/// Takes candidates that need not wait for a compiler: kernels are compiled while others race.
void BatchChooser::takeReady(std::size_t most, std::vector<std::string> &ready) {
  for (auto id = waiting_.begin(); id != waiting_.end() && ready.size() < most;) {
    const bool isReady = from_.compilers.has(from_.candidates.at(*id).config);
    if (isReady)
      ready.push_back(*id);
    id = isReady ? waiting_.erase(id) : id + 1;
  }
}

std::vector<std::string> BatchChooser::next(int round, std::size_t most,
                                            const std::function<bool()> &isOver) {
  std::vector<std::string> ready = ofJournal(round);
  if (!ready.empty())
    return ready;
  if (!std::exchange(hasRelated_, true))
    addRelated();
  for (;;) {
    takeReady(most, ready);
    if (ready.size() >= most)
      break;
    if (!isExhausted_ && waiting_.size() < kMostWaiting) {
      const auto points = from_.strategy.propose(static_cast<int>(most - ready.size()));
      isExhausted_ = points.empty();
      for (const space::Point &point : points)
        add(from_.space.configOf(point), point, from_.strategyName);
      continue;
    }
    if (ready.size() >= kFewestReady || waiting_.empty())
      break;
    constexpr double kLookAgain = 0.2;
    from_.compilers.wait(kLookAgain);
    if (isOver())
      break;
  }
  for (const std::string &id : ready)
    announce(id);
  if (!ready.empty())
    from_.journal.write({{"event", "batch"}, {"class", from_.treeClass}, {"round", round}, {"ids", ready}});
  return ready;
}

} // namespace deft::session
