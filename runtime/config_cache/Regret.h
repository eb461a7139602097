#pragma once

#include "compiler/target/Target.h"
#include "runtime/config_cache/Select.h"

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <optional>
#include <vector>

/// How good the rules are where nothing was tuned: each entry is hidden in turn, and what the rules would
/// choose instead is timed against it.
namespace deft::config_cache {

/// What one rule has to offer in the place of a hidden entry.
struct RegretOffer {
  Candidate candidate;          ///< the first of its rule
  std::optional<double> us;     ///< none: it was not timed
  std::optional<double> regret; ///< how much longer it takes than the entry: 0.02 is 2 %
};

struct RegretRow {
  LoadedEntry hidden;
  std::optional<double> us;        ///< of the hidden entry, timed beside the offers
  std::vector<RegretOffer> offers; ///< one a rule, in the order of the rules: the first is what is chosen
};

/// A rule over all rows in which it has an offer that was timed.
struct RuleRegret {
  Rule rule = Rule::Heuristic;
  int offers = 0;
  int chosen = 0;    ///< of them, by the order of the rules
  double median = 0; ///< of the regrets
  double worst = 0;
  /// Where a later rule has an offer, too: how often this one's is at least as fast. The order of the rules
  /// is supported where this is most of `compared`.
  int atLeastAsFast = 0;
  int compared = 0;
};

struct RegretReport {
  std::vector<RegretRow> rows;
  std::vector<RuleRegret> rules; ///< those that have offers
};

/// Times configs side by side on trees of the entry's class, for its variant; microseconds, in their order.
using MeasureConfigs = std::function<support::Result<std::vector<double>>(
    const Entry &entry, const std::vector<config::Config> &configs)>;

struct RegretRequest {
  const target::Target *target = nullptr; ///< null: the processor
  /// What a variant of this signature runs untuned.
  std::function<support::Result<config::Config>(const VariantSignature &)> untuned;
  /// Which entries are hidden; null: all.
  std::function<bool(const Entry &)> isWanted;
  /// Null: nothing is timed. What is known without is told: the heuristic's offer took `untuned_us` when the
  /// entry was made, and a config that is the entry's own costs nothing.
  MeasureConfigs measure;
};

/// Over the cache's own device's entries, but stale ones. Fails where a measurement does.
support::Result<RegretReport> reportRegret(const ConfigCache &cache, const RegretRequest &request);

nlohmann::json toJson(const RegretReport &report);

} // namespace deft::config_cache
