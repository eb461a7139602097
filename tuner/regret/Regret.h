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

/// How good the rules are where nothing was tuned: each entry is hidden in turn, and what the rules would
/// choose instead is timed against it.
namespace deft::regret {

/// What one rule has to offer in the place of a hidden entry.
struct RegretOffer {
  config_cache::Candidate candidate;
  std::optional<double> us;     ///< none: it was not timed
  std::optional<double> regret; ///< how much longer it takes than the entry: 0.02 is 2 %
};

/// What is known of one entry, on one tree of its class.
struct RegretRow {
  config_cache::LoadedEntry hidden;
  bool isStale = false;                           ///< other kernels than today's were timed for the entry
  int tree = -1;                                  ///< of RegretRequest::treesOf; below 0: none is known
  std::optional<config_cache::Coordinates> at;    ///< where that tree stands
  std::vector<config_cache::Coordinates> tunedOn; ///< where those stand of which RegretRequest::tunedOn knows
  std::optional<double> us; ///< of what runs with the hidden entry, timed beside the offers
  /// In the order of the rules, of each the first ones: the very first is what is chosen.
  std::vector<RegretOffer> offers;
};

/// A rule's first offers over all rows in which it has one that was timed.
struct RuleRegret {
  config_cache::Rule rule = config_cache::Rule::Heuristic;
  int offers = 0;
  int chosen = 0;    ///< of them, by the order of the rules
  double median = 0; ///< of the regrets
  double worst = 0;
  /// Where a later rule has an offer, too: how often this one's is at least as fast. The order of the rules
  /// is supported where this is most of `compared`.
  int atLeastAsFast = 0;
  int compared = 0;
};

/// Entries that are near, all that were timed: is their distance worth something, and up to which?
struct NearbyRegret {
  std::string of; ///< "distance up to 1", "one step of q", "another variant"
  int offers = 0;
  double median = 0; ///< of the regrets
  double worst = 0;
  int beatHeuristic = 0; ///< at least as fast as the untuned choice
};

/// An order of rules that could be: such entries come before the untuned choice, which is for the rest.
struct OrderRegret {
  std::string of; ///< "distance up to 1, fresh before stale"
  int rows = 0;
  int chosen = 0;   ///< rows for which there is such an entry
  double mean = 1;  ///< times over those of the untuned choice, geometric, over all rows
  double worst = 1; ///< of them
};

struct RegretReport {
  std::vector<RegretRow> rows;
  std::vector<RuleRegret> rules; ///< those that have offers
  /// By distance, in bands of a half; and of classes that are one step of a single number away, by number.
  /// What the limit and the weights of the distance are to be judged by.
  std::vector<NearbyRegret> distances, steps;
  /// First the entries themselves, those that are stale apart.
  std::vector<OrderRegret> orders;
  std::string driver; ///< of the GPU that timed, what it calls itself; else empty
};

/// Times configs side by side on a tree of the entry's class, for its variant; microseconds, in their order.
using MeasureConfigs = std::function<support::Result<std::vector<double>>(
    const config_cache::Entry &entry, int tree, const std::vector<config::Config> &configs)>;

struct RegretRequest {
  const target::Target *target = nullptr; ///< null: the processor
  int units = 0;                          ///< its multiprocessors
  /// What all entries that are wanted are of, which says what is legal; it outlives the request. Null: each
  /// is of the plain form of its signature, without hooks and schedule.
  const spec::Variant *variant = nullptr;
  /// What its mask shows: where trees stand, and what is chosen untuned, follow from it.
  plan::Reach reach = {};
  /// Among which configs a tree decides for a variant of this signature, where nothing is tuned.
  std::function<support::Result<std::vector<config::Config>>(const config_cache::VariantSignature &)> untuned;
  /// Trees of the entry's class: a row for each. Null, or none: one row, for whose tree nothing is known.
  std::function<std::vector<const tree::KvTree *>(const config_cache::Entry &)> treesOf;
  /// Where the trees stand that the entry was tuned on. Null: nobody knows.
  std::function<std::vector<config_cache::Coordinates>(const config_cache::Entry &)> tunedOn;
  bool withStale = false; ///< stale entries are hidden, too, and offered where they are near
  /// Which entries are hidden; null: all.
  std::function<bool(const config_cache::Entry &)> isWanted;
  double nearbyLimit = config_cache::kNearbyLimit; ///< a larger one tells what lies beyond it
  int offersOfRule = 1;                            ///< entries of a rule that are timed at most
  /// Null: nothing is timed. What is known without is told: the heuristic's offer took `untuned_us` when the
  /// entry was made, and a config that is the entry's own costs nothing.
  MeasureConfigs measure;
};

/// Over the cache's own device's entries. Fails where a measurement does.
support::Result<RegretReport> reportRegret(const config_cache::ConfigCache &cache,
                                           const RegretRequest &request);

nlohmann::json toJson(const RegretReport &report);

} // namespace deft::regret
