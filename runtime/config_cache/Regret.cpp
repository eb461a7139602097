#include "runtime/config_cache/Regret.h"

#include "compiler/config/ConfigJson.h"
#include "runtime/config_cache/Legality.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace deft::config_cache {

using nlohmann::json;
using support::Result;

namespace {

bool areEqual(const config::Config &a, const config::Config &b) {
  return config::toJson(a) == config::toJson(b);
}

/// The first candidate of each rule, in their order.
std::vector<RegretOffer> offersOf(Selection selection) {
  std::vector<RegretOffer> offers;
  offers.push_back({std::move(selection.chosen), std::nullopt, std::nullopt});
  for (Candidate &candidate : selection.next)
    if (candidate.rule != offers.back().candidate.rule)
      offers.push_back({std::move(candidate), std::nullopt, std::nullopt});
  return offers;
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
      if (offer.candidate.rule != rule || !offer.regret)
        continue;
      regrets.push_back(*offer.regret);
      summary.chosen += i == 0;
      if (i + 1 < row.offers.size() && row.offers[i + 1].us) {
        ++summary.compared;
        summary.atLeastAsFast += *offer.us <= *row.offers[i + 1].us;
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
    RegretRow row{loaded, std::nullopt, offersOf(select(cache.without(loaded), ask))};
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
  return {{"format", "deftc-regret"}, {"version", 1}, {"rows", std::move(rows)}, {"rules", std::move(rules)}};
}

} // namespace deft::config_cache
