#pragma once

#include "compiler/spec/Variant.h"
#include "compiler/target/Target.h"
#include "runtime/config_cache/ConfigCache.h"
#include "runtime/config_cache/Rules.h"
#include "runtime/plan/Reach.h"
#include "runtime/tree/KvTree.h"

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

/// Measures how good the rules are without tuned entries: hides each entry in turn, and times the rules'
/// choice against it.
namespace deft::regret {

/// A rule's offer to replace a hidden entry.
struct RegretOffer {
  config_cache::Candidate candidate;
  std::optional<double> us;     ///< none: it was not timed
  std::optional<double> regret; ///< how much slower it is than the entry: 0.02 is 2 %
};

/// The data about one entry, on one tree of its class.
struct RegretRow {
  config_cache::LoadedEntry hidden;
  bool isStale = false;                           ///< the entry was timed with other kernels than today's
  int tree = -1;                                  ///< index into RegretRequest::treesOf; below 0: unknown
  std::optional<config_cache::Coordinates> at;    ///< the tree's coordinates
  std::vector<config_cache::Coordinates> tunedOn; ///< those of the trees from RegretRequest::tunedOn
  std::optional<double> us;                       ///< of the hidden entry's config, timed next to the offers
  /// In the order of the rules, the first ones of each rule: the very first is the choice.
  std::vector<RegretOffer> offers;
};

/// A rule's first offers, over all rows with a timed offer of this rule.
struct RuleRegret {
  config_cache::Rule rule = config_cache::Rule::Heuristic;
  int offers = 0;
  int chosen = 0;    ///< of these, by the order of the rules
  double median = 0; ///< of the regrets
  double worst = 0;
  /// Cases in which this rule's offer is at least as fast as that of a later rule with an offer. The order of
  /// the rules is right if these are most of `compared`.
  int atLeastAsFast = 0;
  int compared = 0;
};

/// All timed nearby entries: tells whether and up to which value the distance is useful.
struct NearbyRegret {
  std::string of; ///< "distance up to 1", "one step of q", "another variant"
  int offers = 0;
  double median = 0; ///< of the regrets
  double worst = 0;
  int beatHeuristic = 0; ///< at least as fast as the untuned choice
};

/// A possible order of rules: such entries come before the untuned choice, which serves the rest.
struct OrderRegret {
  std::string of; ///< "distance up to 1, fresh before stale"
  int rows = 0;
  int chosen = 0;   ///< rows with such an entry
  double mean = 1;  ///< time over that of the untuned choice, geometric, over all rows
  double worst = 1; ///< of them
};

struct RegretReport {
  std::vector<RegretRow> rows;
  std::vector<RuleRegret> rules; ///< those with offers
  /// By distance, in bands of a half; and, for classes one step of a single number away, by that number. They
  /// are the basis for the limit and the weights of the distance.
  std::vector<NearbyRegret> distances, steps;
  /// First the entries themselves, with stale ones separate.
  std::vector<OrderRegret> orders;
  std::string driver; ///< the name of the timing GPU's driver, or empty
};

/// Times configs next to each other on a tree of the entry's class, for its variant; microseconds, in order.
using MeasureConfigs = std::function<support::Result<std::vector<double>>(
    const config_cache::Entry &entry, int tree, const std::vector<config::Config> &configs)>;

struct RegretRequest {
  const target::Target *target = nullptr; ///< null: the processor
  int units = 0;                          ///< its multiprocessors
  /// The variant of all wanted entries, which decides what is legal; it must outlive the request. Null: each
  /// entry has the plain form of its signature, without hooks and schedule.
  const spec::Variant *variant = nullptr;
  /// What its mask shows: the trees' coordinates and the untuned choice depend on it.
  plan::Reach reach = {};
  /// The configs among which a tree decides without tuned entries, for a variant of this signature.
  std::function<support::Result<std::vector<config::Config>>(const config_cache::VariantSignature &)> untuned;
  /// Trees of the entry's class, with a row for each. Null, or none: one row without a known tree.
  std::function<std::vector<const tree::KvTree *>(const config_cache::Entry &)> treesOf;
  /// The coordinates of the trees that the entry was tuned on. Null: unknown.
  std::function<std::vector<config_cache::Coordinates>(const config_cache::Entry &)> tunedOn;
  bool withStale = false; ///< also hides stale entries, and offers them nearby
  /// Selects the entries to hide; null: all.
  std::function<bool(const config_cache::Entry &)> isWanted;
  double nearbyLimit = config_cache::kNearbyLimit; ///< a larger one shows the entries beyond it
  int offersOfRule = 1;                            ///< entries of a rule that are timed at most
  /// Null: no timing. Known times are used: the heuristic's offer took `untuned_us` when the entry was made,
  /// and the entry's own config has no regret.
  MeasureConfigs measure;
};

/// For the entries of the cache's own device. Fails if a measurement does.
support::Result<RegretReport> reportRegret(const config_cache::ConfigCache &cache,
                                           const RegretRequest &request);

nlohmann::json toJson(const RegretReport &report);

} // namespace deft::regret
