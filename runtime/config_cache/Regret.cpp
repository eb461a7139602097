#include "runtime/config_cache/Regret.h"

#include "compiler/config/ConfigJson.h"
#include "runtime/config_cache/Legality.h"
#include "runtime/config_cache/RegretSummary.h"
#include "runtime/config_cache/TreeClassifier.h"
#include "runtime/config_cache/UntunedChooser.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

namespace deft::config_cache {

using nlohmann::json;
using support::Result;

namespace {

bool areEqual(const config::Config &a, const config::Config &b) {
  return config::toJson(a) == config::toJson(b);
}

/// The first candidates of each rule, in their order.
std::vector<RegretOffer> offersOf(Selection selection, int most) {
  std::vector<RegretOffer> offers;
  offers.push_back({std::move(selection.chosen), std::nullopt, std::nullopt});
  int ofRule = 1;
  for (Candidate &candidate : selection.next) {
    ofRule = candidate.rule == offers.back().candidate.rule ? ofRule + 1 : 1;
    if (ofRule <= most)
      offers.push_back({std::move(candidate), std::nullopt, std::nullopt});
  }
  return offers;
}

/// Without measuring: by what the entry remembers.
void recall(const Entry &entry, RegretRow &row) {
  row.us = entry.measurement.tunedUs;
  for (RegretOffer &offer : row.offers)
    if (offer.candidate.isUntuned())
      offer.us = entry.measurement.untunedUs;
    else if (areEqual(offer.candidate.config, entry.config))
      offer.us = entry.measurement.tunedUs;
}

Result<void> measure(const MeasureConfigs &measureConfigs, const Entry &entry,
                     const std::optional<Coordinates> &tree, RegretRow &row) {
  // The last offer is the untuned choice for this tree: what an entry that keeps it runs.
  std::vector<config::Config> configs{entry.isFor(tree) ? entry.config : row.offers.back().candidate.config};
  for (const RegretOffer &offer : row.offers)
    configs.push_back(offer.candidate.config);
  // Two offers may be one config; it is timed once, so that noise is not taken for a difference.
  std::vector<std::size_t> which(configs.size());
  std::vector<config::Config> distinct;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const auto same = std::find_if(distinct.begin(), distinct.end(), [&](const config::Config &config) {
      return areEqual(config, configs[i]);
    });
    which[i] = static_cast<std::size_t>(same - distinct.begin());
    if (same == distinct.end())
      distinct.push_back(configs[i]);
  }
  const auto times = measureConfigs(entry, row.tree, distinct);
  if (!times)
    return times.error();
  if (times->size() != distinct.size())
    return support::Error{support::ErrorCode::Internal,
                          "asked for the times of " + std::to_string(distinct.size()) + " configs, got " +
                              std::to_string(times->size()),
                          ""};
  row.us = (*times)[which[0]];
  for (std::size_t i = 0; i < row.offers.size(); ++i)
    row.offers[i].us = (*times)[which[i + 1]];
  return {};
}

json toJson(const std::vector<NearbyRegret> &summaries) {
  json list = json::array();
  for (const NearbyRegret &one : summaries)
    list.push_back({{"of", one.of},
                    {"offers", one.offers},
                    {"median", one.median},
                    {"worst", one.worst},
                    {"beat_heuristic", one.beatHeuristic}});
  return list;
}

json toJson(const std::vector<OrderRegret> &orders) {
  json list = json::array();
  for (const OrderRegret &one : orders)
    list.push_back({{"of", one.of},
                    {"rows", one.rows},
                    {"chosen", one.chosen},
                    {"mean", one.mean},
                    {"worst", one.worst}});
  return list;
}

template <class T> json optional(const std::optional<T> &value) {
  return value ? json(*value) : json(nullptr);
}

} // namespace

Result<RegretReport> reportRegret(const ConfigCache &cache, const RegretRequest &request) {
  RegretReport report;
  const auto kind = request.target ? DeviceKey::Kind::Gpu : DeviceKey::Kind::Cpu;
  const std::string hash = kernelHash(kind);
  TreeClassifier classifier;
  std::set<std::string> done;
  std::map<std::string, std::unique_ptr<UntunedChooser>> choosers;
  for (const LoadedEntry &loaded : cache.entries()) {
    const Entry &entry = loaded.entry;
    const bool isStale = entry.provenance.kernelHash != hash;
    if (loaded.device != cache.device() || (isStale && !request.withStale) ||
        (request.isWanted && !request.isWanted(entry)) || !done.insert(keyOf(entry)).second)
      continue;
    const spec::Variant variant = entry.signature.variant();
    auto &chooser = choosers[entry.signature.text()];
    if (!chooser) {
      auto untuned = request.untuned(entry.signature);
      if (!untuned)
        return untuned.error();
      chooser = std::make_unique<UntunedChooser>(variant, request.target, request.units, std::move(*untuned));
    }
    std::vector<const tree::KvTree *> trees;
    if (request.measure && request.treesOf)
      trees = request.treesOf(entry);
    if (trees.empty())
      trees.push_back(nullptr);
    for (std::size_t i = 0; i < trees.size(); ++i) {
      Request ask = requestFor(variant, entry.treeClass, request.target,
                               trees[i] ? chooser->choose(*trees[i]) : chooser->first());
      ask.signature = entry.signature; // of which the variant is the plain form
      ask.nearbyLimit = request.nearbyLimit;
      ask.withStaleNearby = request.withStale;
      ask.mostNext = cache.entries().size() + 1;
      if (trees[i])
        ask.coordinates = classifier.measure(*trees[i]).coordinates();
      RegretRow row{
          loaded,          isStale,      trees[i] ? static_cast<int>(i) : -1,
          ask.coordinates, std::nullopt, offersOf(select(cache.without(loaded), ask), request.offersOfRule)};
      if (!request.measure)
        recall(entry, row);
      else if (auto measured = measure(request.measure, entry, ask.coordinates, row); !measured)
        return measured.error();
      for (RegretOffer &offer : row.offers)
        if (offer.us && row.us && *row.us > 0)
          offer.regret = *offer.us / *row.us - 1;
      report.rows.push_back(std::move(row));
    }
  }
  summarize(report);
  return report;
}

json toJson(const RegretReport &report) {
  json rows = json::array(), rules = json::array();
  for (const RegretRow &row : report.rows) {
    json offers = json::array();
    for (const RegretOffer &offer : row.offers) {
      json one = toJson(offer.candidate);
      one["us"] = optional(offer.us);
      one["regret"] = optional(offer.regret);
      offers.push_back(std::move(one));
    }
    rows.push_back({{"signature", row.hidden.entry.signature.text()},
                    {"class", row.hidden.entry.treeClass.text()},
                    {"stale", row.isStale},
                    {"tree", row.tree},
                    {"at", optional(row.at)},
                    {"us", optional(row.us)},
                    {"offers", std::move(offers)}});
  }
  for (const RuleRegret &rule : report.rules)
    rules.push_back({{"rule", ruleName(rule.rule)},
                     {"offers", rule.offers},
                     {"chosen", rule.chosen},
                     {"median", rule.median},
                     {"worst", rule.worst},
                     {"at_least_as_fast", rule.atLeastAsFast},
                     {"compared", rule.compared}});
  return {{"format", "deftc-regret"},
          {"version", 2},
          {"rows", std::move(rows)},
          {"rules", std::move(rules)},
          {"distances", toJson(report.distances)},
          {"steps", toJson(report.steps)},
          {"orders", toJson(report.orders)}};
}

} // namespace deft::config_cache
