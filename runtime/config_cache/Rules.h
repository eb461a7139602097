#pragma once

#include "runtime/config_cache/ConfigCache.h"

#include <nlohmann/json_fwd.hpp>

/// The rules, in their order. specs/CONFIGS.md tells them to users.
namespace deft::config_cache {

enum class Rule {
  Override,  ///< the config, or the entry for this variant and class, of an override file
  Exact,     ///< an entry for this variant and class, tuned on this device
  Sibling,   ///< an entry for both, tuned on another model of this architecture with as many units
  Nearby,    ///< a fresh entry for a class, or a variant of the same shape, that is close enough; or for just
             ///< this where its search was cut short
  Heuristic, ///< nothing was tuned: the analytic choice
};
std::string ruleName(Rule rule);

/// An entry counts as near up to this distance, over class, variant and device. On an H200 fresh ones up to
/// here took 0.994 to 0.998 of the untuned choice's time on average, other classes at 1.5 as much or more
/// (1.23 at worst), and stale ones of other classes 1.01 to 1.04 (1.84 at worst): `deftc cache regret`.
inline constexpr double kNearbyLimit = 1.0;
/// A stale entry for this variant and class, and one whose search was cut short, comes before near ones that
/// are farther away than this: after one of another type, before one of another page size.
inline constexpr double kDoubtDistance = 0.4;
/// What a sibling device adds to a distance.
inline constexpr double kSiblingDistance = 0.5;

/// Ok where a config can be used; else the error says why not.
using LegalityCheck = std::function<support::Result<void>(const config::Config &)>;

/// Reports show at most this many of Ruling::next.
inline constexpr std::size_t kMostNext = 8;

struct Request {
  VariantSignature signature;
  TreeClass treeClass;
  LegalityCheck isLegal;    ///< asked for every entry before it is used; none: all are
  std::string kernelHash;   ///< of the kernels that will run; see kernelHash()
  config::Config heuristic; ///< what is used where no entry is
  double nearbyLimit = kNearbyLimit;
  bool withStaleNearby = false;  ///< before the heuristic, to see what they would be worth
  std::string heuristicWhy = {}; ///< why this one, where there was a choice
  std::size_t mostNext = kMostNext;
  /// Where the tree stands; none: only its class is known, and what is for some trees alone is not for it.
  std::optional<Coordinates> coordinates = {};
};

struct Candidate {
  Rule rule = Rule::Heuristic;
  config::Config config;           ///< of an entry that keeps the default, or is for others: the heuristic's
  double distance = 0;             ///< 0: an entry for just this
  bool isOwn = false;              ///< the entry is for just this variant and class, of whatever device
  bool isStale = false;            ///< other kernels were timed
  bool isForOthers = false;        ///< the entry's config is for other trees of the class (Entry::onlyFor)
  std::optional<LoadedEntry> from; ///< none: the heuristic's, or a fixed config's
  std::string path;                ///< of the file; empty: the heuristic's
  std::string reason;              ///< of the heuristic's, Request::heuristicWhy
  bool isAlone = true;             ///< of the heuristic's: there is no entry that could be used

  /// Whether this is the untuned choice, by whichever rule.
  bool isUntuned() const {
    return rule == Rule::Heuristic || (from && (from->entry.keepsDefault || isForOthers));
  }
  /// "tuned on this device for this class, 1.31 times as fast as untuned".
  std::string why() const;
};

/// What fits but cannot be used.
struct Rejected {
  std::optional<LoadedEntry> entry; ///< none: a fixed config
  std::string path;
  std::string reason;
};

struct Ruling {
  Candidate chosen;
  std::vector<Candidate> next; ///< what would come after it, the heuristic's at last
  std::vector<Rejected> rejected;
  VariantSignature signature;
  TreeClass treeClass;

  const config::Config &config() const { return chosen.config; }
  Rule rule() const { return chosen.rule; }
};

/// Never fails: the last rule always has a config. Pure: the same arguments give the same ruling.
///
/// Rules come first; within a rule nearer entries, then those of the stronger origin. A stale entry for this
/// variant and class comes among the near ones, and one that was cut short is one of them (kDoubtDistance);
/// neither matters of an override.
Ruling applyRules(const ConfigCache &cache, const Request &request);

nlohmann::json toJson(const Candidate &candidate);
nlohmann::json toJson(const Ruling &ruling);

} // namespace deft::config_cache
