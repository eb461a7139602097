#include "runtime/config_cache/Regret.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/support/Numbers.h"
#include "runtime/config_cache/Legality.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
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

bool isFirstOfRule(const std::vector<RegretOffer> &offers, std::size_t i) {
  return i == 0 || offers[i].candidate.rule != offers[i - 1].candidate.rule;
}

/// Without measuring: by what the entry remembers.
void recall(const Entry &entry, RegretRow &row) {
  row.us = entry.measurement.tunedUs;
  for (RegretOffer &offer : row.offers)
    if (areEqual(offer.candidate.config, entry.config))
      offer.us = entry.measurement.tunedUs;
    else if (offer.candidate.rule == Rule::Heuristic)
      offer.us = entry.measurement.untunedUs;
}

Result<void> measure(const MeasureConfigs &measureConfigs, const Entry &entry, RegretRow &row) {
  std::vector<config::Config> configs{entry.config};
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
  const auto times = measureConfigs(entry, distinct);
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

RuleRegret summarize(Rule rule, const std::vector<RegretRow> &rows) {
  RuleRegret summary;
  summary.rule = rule;
  std::vector<double> regrets;
  for (const RegretRow &row : rows)
    for (std::size_t i = 0; i < row.offers.size(); ++i) {
      const RegretOffer &offer = row.offers[i];
      if (offer.candidate.rule != rule || !offer.regret || !isFirstOfRule(row.offers, i))
        continue;
      regrets.push_back(*offer.regret);
      summary.chosen += i == 0;
      const auto next = std::find_if(row.offers.begin() + static_cast<std::ptrdiff_t>(i), row.offers.end(),
                                     [&](const RegretOffer &other) { return other.candidate.rule != rule; });
      if (next != row.offers.end() && next->us) {
        ++summary.compared;
        summary.atLeastAsFast += *offer.us <= *next->us;
      }
    }
  summary.offers = static_cast<int>(regrets.size());
  if (regrets.empty())
    return summary;
  std::sort(regrets.begin(), regrets.end());
  summary.median = regrets[regrets.size() / 2];
  summary.worst = regrets.back();
  return summary;
}

/// Regrets of the entries that are near, by what `nameOf` calls them; empty: not of interest.
template <typename NameOf>
std::vector<NearbyRegret> summarizeNearby(const std::vector<RegretRow> &rows, const NameOf &nameOf) {
  std::map<std::string, std::vector<double>> regrets;
  std::map<std::string, int> beat;
  for (const RegretRow &row : rows)
    for (const RegretOffer &offer : row.offers) {
      const bool isNear = offer.candidate.rule == Rule::Nearby && offer.regret;
      const std::string name = isNear ? nameOf(row.hidden.entry, offer.candidate) : std::string();
      if (name.empty())
        continue;
      regrets[name].push_back(*offer.regret);
      const RegretOffer &heuristic = row.offers.back();
      beat[name] += heuristic.us && *offer.us <= *heuristic.us;
    }
  std::vector<NearbyRegret> summaries;
  for (auto &[name, values] : regrets) {
    std::sort(values.begin(), values.end());
    summaries.push_back(
        {name, static_cast<int>(values.size()), values[values.size() / 2], values.back(), beat[name]});
  }
  return summaries;
}

std::string bandOf(const Entry &, const Candidate &near) {
  return "distance up to " + support::rounded(std::ceil(2 * near.distance) / 2, 1);
}

/// What is different, where that is one thing by one step.
std::string stepOf(const Entry &hidden, const Candidate &near) {
  const Entry &other = near.from->entry;
  if (hidden.treeClass == other.treeClass)
    return "another variant";
  if (hidden.signature != other.signature)
    return {};
  const auto a = hidden.treeClass.numbers(), b = other.treeClass.numbers();
  std::string name;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i])
      continue;
    if (std::abs(a[i] - b[i]) > 1 || !name.empty())
      return {};
    name = std::string("one step of ") + TreeClass::kLetters[i];
  }
  return name;
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

json optional(const std::optional<double> &value) { return value ? json(*value) : json(nullptr); }

} // namespace

Result<RegretReport> reportRegret(const ConfigCache &cache, const RegretRequest &request) {
  RegretReport report;
  const auto kind = request.target ? DeviceKey::Kind::Gpu : DeviceKey::Kind::Cpu;
  const std::string hash = kernelHash(kind);
  std::set<std::string> done;
  for (const LoadedEntry &loaded : cache.entries()) {
    const Entry &entry = loaded.entry;
    if (loaded.device != cache.device() || entry.provenance.kernelHash != hash ||
        (request.isWanted && !request.isWanted(entry)) || !done.insert(keyOf(entry)).second)
      continue;
    const spec::Variant variant = entry.signature.variant();
    auto untuned = request.untuned(entry.signature);
    if (!untuned)
      return untuned.error();
    Request ask = requestFor(variant, entry.treeClass, request.target, std::move(*untuned));
    ask.signature = entry.signature; // of which the variant is the plain form
    ask.nearbyLimit = request.nearbyLimit;
    RegretRow row{loaded, std::nullopt, offersOf(select(cache.without(loaded), ask), request.offersOfRule)};
    if (!request.measure)
      recall(entry, row);
    else if (auto measured = measure(request.measure, entry, row); !measured)
      return measured.error();
    for (RegretOffer &offer : row.offers)
      if (offer.us && row.us && *row.us > 0)
        offer.regret = *offer.us / *row.us - 1;
    report.rows.push_back(std::move(row));
  }
  for (const Rule rule : {Rule::Override, Rule::Exact, Rule::Sibling, Rule::Nearby, Rule::Heuristic})
    if (const RuleRegret summary = summarize(rule, report.rows); summary.offers > 0)
      report.rules.push_back(summary);
  report.distances = summarizeNearby(report.rows, bandOf);
  report.steps = summarizeNearby(report.rows, stepOf);
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
          {"version", 1},
          {"rows", std::move(rows)},
          {"rules", std::move(rules)},
          {"distances", toJson(report.distances)},
          {"steps", toJson(report.steps)}};
}

} // namespace deft::config_cache
