#include "tuner/regret/Regret.h"

#include "compiler/config/ConfigJson.h"
#include "runtime/config_cache/TreeClassifier.h"
#include "runtime/config_cache/UntunedChooser.h"
#include "runtime/config_cache/VariantLegality.h"
#include "tuner/regret/RegretSummary.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

namespace deft::regret {

using config_cache::Candidate;
using config_cache::ConfigCache;
using config_cache::Coordinates;
using config_cache::Entry;
using config_cache::LoadedEntry;
using config_cache::Ruling;
using config_cache::UntunedChooser;
using config_cache::VariantSignature;

using nlohmann::json;
using support::Result;

namespace {

/// The first candidates of each rule, in the rules' order.
std::vector<RegretOffer> offersOf(Ruling ruling, int most) {
  std::vector<RegretOffer> offers;
  offers.push_back({std::move(ruling.chosen), std::nullopt, std::nullopt});
  int ofRule = 1;
  for (Candidate &candidate : ruling.next) {
    ofRule = candidate.rule == offers.back().candidate.rule ? ofRule + 1 : 1;
    if (ofRule <= most)
      offers.push_back({std::move(candidate), std::nullopt, std::nullopt});
  }
  return offers;
}

/// Without measuring: from the times in the entry.
void recall(const Entry &entry, RegretRow &row) {
  row.us = entry.measurement.tunedUs;
  for (RegretOffer &offer : row.offers)
    if (offer.candidate.isUntuned())
      offer.us = entry.measurement.untunedUs;
    else if (config::areEqual(offer.candidate.config, entry.config))
      offer.us = entry.measurement.tunedUs;
}

Result<void> measure(const MeasureConfigs &measureConfigs, const Entry &entry,
                     const std::optional<Coordinates> &tree, RegretRow &row) {
  // The last offer is the untuned choice for this tree: an entry that keeps the untuned choice runs it.
  std::vector<config::Config> configs{entry.isFor(tree) ? entry.config : row.offers.back().candidate.config};
  for (const RegretOffer &offer : row.offers)
    configs.push_back(offer.candidate.config);
  // Two offers may be the same config; it is timed once, so that noise does not look like a difference.
  std::vector<std::size_t> which(configs.size());
  std::vector<config::Config> distinct;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const auto same = std::find_if(distinct.begin(), distinct.end(), [&](const config::Config &config) {
      return config::areEqual(config, configs[i]);
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

/// Makes the report's rows.
class Hiding {
public:
  Hiding(const ConfigCache &cache, const RegretRequest &request) : cache_(cache), request_(request) {}

  Result<std::vector<RegretRow>> all() {
    std::vector<RegretRow> rows;
    std::set<std::string> done;
    for (const LoadedEntry &loaded : cache_.entries()) {
      // Of several entries for one variant and class, only the first is in use.
      if (!isWanted(loaded) || !done.insert(keyOf(loaded.entry)).second)
        continue;
      if (auto hidden = hide(loaded, rows); !hidden)
        return hidden.error();
    }
    return rows;
  }

private:
  bool isStale(const Entry &entry) const { return !entry.isFresh(kernels::deviceOf(request_.target)); }

  bool isWanted(const LoadedEntry &loaded) const {
    const Entry &entry = loaded.entry;
    return loaded.device == cache_.device() && (request_.withStale || !isStale(entry)) &&
           (!request_.isWanted || request_.isWanted(entry));
  }

  /// A row for each known tree of its class.
  Result<void> hide(const LoadedEntry &loaded, std::vector<RegretRow> &rows) {
    const spec::Variant plain = loaded.entry.signature.variant();
    const spec::Variant &variant = request_.variant ? *request_.variant : plain;
    auto chooser = chooserFor(loaded.entry.signature, variant);
    if (!chooser)
      return chooser.error();
    std::vector<const tree::KvTree *> trees;
    if (request_.measure && request_.treesOf)
      trees = request_.treesOf(loaded.entry);
    if (trees.empty())
      trees.push_back(nullptr);
    for (std::size_t i = 0; i < trees.size(); ++i) {
      auto row = rowOf(loaded, variant, **chooser, trees[i], static_cast<int>(i));
      if (!row)
        return row.error();
      rows.push_back(std::move(*row));
    }
    return {};
  }

  Result<UntunedChooser *> chooserFor(const VariantSignature &signature, const spec::Variant &variant) {
    auto &chooser = choosers_[signature.text()];
    if (!chooser) {
      auto untuned = request_.untuned(signature);
      if (!untuned)
        return untuned.error();
      chooser = std::make_unique<UntunedChooser>(variant, request_.target, request_.units,
                                                 std::move(*untuned), cache_.prices());
      chooser->setReach(request_.reach);
    }
    return chooser.get();
  }

  Result<RegretRow> rowOf(const LoadedEntry &loaded, const spec::Variant &variant, UntunedChooser &chooser,
                          const tree::KvTree *tree, int index) {
    const Entry &entry = loaded.entry;
    config_cache::Request ask =
        requestFor(variant, entry.treeClass, request_.target, tree ? chooser.choose(*tree) : chooser.first());
    ask.signature = entry.signature; // the variant may be its plain form
    ask.nearbyLimit = request_.nearbyLimit;
    ask.withStaleNearby = request_.withStale;
    ask.mostNext = cache_.entries().size() + 1;
    if (tree)
      ask.coordinates = config_cache::TreeClassifier(request_.reach).measure(*tree).coordinates();
    RegretRow row{loaded,
                  isStale(entry),
                  tree ? index : -1,
                  ask.coordinates,
                  request_.tunedOn ? request_.tunedOn(entry) : std::vector<Coordinates>{},
                  std::nullopt,
                  offersOf(applyRules(cache_.without(loaded), ask), request_.offersOfRule)};
    if (!request_.measure)
      recall(entry, row);
    else if (auto measured = measure(request_.measure, entry, ask.coordinates, row); !measured)
      return measured.error();
    for (RegretOffer &offer : row.offers)
      if (offer.us && row.us && *row.us > 0)
        offer.regret = *offer.us / *row.us - 1;
    return row;
  }

  const ConfigCache &cache_;
  const RegretRequest &request_;
  std::map<std::string, std::unique_ptr<UntunedChooser>> choosers_;
};

} // namespace

Result<RegretReport> reportRegret(const ConfigCache &cache, const RegretRequest &request) {
  auto rows = Hiding(cache, request).all();
  if (!rows)
    return rows.error();
  RegretReport report;
  report.rows = std::move(*rows);
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
                    {"tuned_on", row.tunedOn},
                    {"us", optional(row.us)},
                    {"offers", std::move(offers)}});
  }
  for (const RuleRegret &rule : report.rules)
    rules.push_back({{"rule", config_cache::ruleName(rule.rule)},
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

} // namespace deft::regret
