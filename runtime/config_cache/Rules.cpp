#include "runtime/config_cache/Rules.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/support/Numbers.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <tuple>

namespace deft::config_cache {

using nlohmann::json;

namespace {

/// What an entry is to a request; none: of another shape, or too far.
std::optional<Candidate> rank(const ConfigCache &cache, const LoadedEntry &loaded, const Request &request) {
  const Entry &entry = loaded.entry;
  const auto variantDistance = distance(entry.signature, request.signature);
  if (!variantDistance)
    return std::nullopt;
  const bool isSibling = loaded.device != cache.device();
  Candidate candidate;
  candidate.isOwn = entry.signature == request.signature && entry.treeClass == request.treeClass;
  candidate.distance =
      *variantDistance + distance(entry.treeClass, request.treeClass) + (isSibling ? kSiblingDistance : 0);
  if (candidate.isOwn && !isSibling && loaded.origin == Origin::Override)
    candidate.rule = Rule::Override;
  else if (candidate.isOwn && entry.isComplete)
    candidate.rule = isSibling ? Rule::Sibling : Rule::Exact;
  else if (candidate.distance <= request.nearbyLimit)
    candidate.rule = Rule::Nearby;
  else
    return std::nullopt;
  candidate.isForOthers = !entry.keepsDefault && !entry.isFor(request.coordinates);
  candidate.config = entry.isFor(request.coordinates) ? entry.config : request.heuristic;
  candidate.isStale = entry.provenance.kernelHash != request.kernelHash;
  if (candidate.rule == Rule::Nearby && candidate.isStale && !request.withStaleNearby)
    return std::nullopt;
  candidate.from = loaded;
  candidate.path = loaded.path;
  return candidate;
}

bool comesFirst(const Candidate &a, const Candidate &b) {
  const auto order = [](const Candidate &c) {
    // Who names a file wants it used, whatever has changed since and however it was found.
    const bool isStale = c.isStale && c.rule != Rule::Override;
    const bool isCut = !c.from->entry.isComplete && c.rule != Rule::Override;
    return std::tuple(isStale ? Rule::Nearby : c.rule,
                      c.distance + (c.isOwn && (isStale || isCut) ? kDoubtDistance : 0), isStale,
                      c.from->origin, c.path);
  };
  const auto left = order(a), right = order(b);
  return left != right ? left < right : keyOf(a.from->entry) < keyOf(b.from->entry);
}

json keyJson(const LoadedEntry &loaded) {
  return {{"signature", loaded.entry.signature.text()},
          {"class", loaded.entry.treeClass.text()},
          {"device", loaded.device.name},
          {"origin", originName(loaded.origin)},
          {"path", loaded.path}};
}

} // namespace

std::string ruleName(Rule rule) {
  switch (rule) {
  case Rule::Override:
    return "override";
  case Rule::Exact:
    return "exact";
  case Rule::Sibling:
    return "sibling";
  case Rule::Nearby:
    return "nearby";
  case Rule::Heuristic:
    return "heuristic";
  }
  return {};
}

std::string Candidate::why() const {
  if (rule == Rule::Heuristic)
    return (isAlone ? "no tuned config; " : "") + std::string("chosen by the cost model") +
           (reason.empty() ? "" : ": " + reason);
  if (!from)
    return "given by " + path;
  const Entry &entry = from->entry;
  std::string text = "tuned for " + entry.signature.text() + ", class " + entry.treeClass.text() +
                     ", which is near (" + support::significant(distance, 2) + ")";
  if (rule == Rule::Override)
    text = "given by " + path;
  else if (isOwn)
    text = "tuned for this class on " + (distance < kSiblingDistance ? "this device" : from->device.name);
  if (entry.keepsDefault)
    text += ": nothing beat the untuned choice";
  else if (isForOthers)
    text += ": the untuned choice; the tuned config won on other trees only";
  else
    text += ", " + support::rounded(entry.measurement.gain(), 2) + " times as fast as untuned";
  if (!entry.isComplete)
    text += "; its search was cut short by its time budget";
  return isStale ? text + "; the kernels have changed since" : text;
}

Ruling applyRules(const ConfigCache &cache, const Request &request) {
  std::vector<Candidate> ranked;
  for (const LoadedEntry &loaded : cache.entries())
    if (auto candidate = rank(cache, loaded, request))
      ranked.push_back(std::move(*candidate));
  std::sort(ranked.begin(), ranked.end(), comesFirst);

  Ruling ruling;
  ruling.signature = request.signature;
  ruling.treeClass = request.treeClass;
  std::vector<Candidate> legal;
  if (cache.fixedConfig()) {
    Candidate fixed;
    fixed.rule = Rule::Override;
    fixed.config = *cache.fixedConfig();
    fixed.path = cache.fixedPath();
    legal.push_back(std::move(fixed)); // judged below, like all others
  }
  legal.insert(legal.end(), std::make_move_iterator(ranked.begin()), std::make_move_iterator(ranked.end()));
  std::erase_if(legal, [&](const Candidate &candidate) {
    if (!request.isLegal)
      return false;
    const auto judged = request.isLegal(candidate.config);
    if (judged)
      return false;
    ruling.rejected.push_back({candidate.from, candidate.path, judged.error().message});
    return true;
  });
  Candidate heuristic;
  heuristic.config = request.heuristic;
  heuristic.reason = request.heuristicWhy;
  heuristic.isAlone = legal.empty();
  legal.push_back(std::move(heuristic));
  ruling.chosen = std::move(legal.front());
  legal.erase(legal.begin());
  if (legal.size() > request.mostNext) // the heuristic's stays the last one
    legal.erase(legal.begin() + static_cast<std::ptrdiff_t>(request.mostNext) - 1, legal.end() - 1);
  ruling.next = std::move(legal);
  return ruling;
}

json toJson(const Candidate &candidate) {
  json object = {{"rule", ruleName(candidate.rule)},
                 {"why", candidate.why()},
                 {"config", config::toJson(candidate.config)}};
  if (!candidate.path.empty())
    object["path"] = candidate.path;
  if (candidate.from) {
    object["entry"] = keyJson(*candidate.from);
    object["distance"] = candidate.distance;
    object["stale"] = candidate.isStale;
    object["complete"] = candidate.from->entry.isComplete;
    object["gain"] = candidate.from->entry.measurement.gain();
    object["for_others"] = candidate.isForOthers;
  }
  return object;
}

json toJson(const Ruling &ruling) {
  json object = {{"signature", ruling.signature.text()},
                 {"class", ruling.treeClass.text()},
                 {"chosen", toJson(ruling.chosen)},
                 {"next", json::array()},
                 {"rejected", json::array()}};
  for (const Candidate &candidate : ruling.next)
    object["next"].push_back(toJson(candidate));
  for (const Rejected &rejected : ruling.rejected) {
    json one = {{"path", rejected.path}, {"reason", rejected.reason}};
    if (rejected.entry)
      one["entry"] = keyJson(*rejected.entry);
    object["rejected"].push_back(std::move(one));
  }
  return object;
}

} // namespace deft::config_cache
