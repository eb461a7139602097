#pragma once

#include "runtime/config_cache/ConfigCache.h"

#include <nlohmann/json_fwd.hpp>

/// The rules, in their order. specs/CONFIGS.md explains them for users.
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

/// Success if a config can be used; otherwise the error gives the reason.
using LegalityCheck = std::function<support::Result<void>(const config::Config &)>;

/// Reports show at most this many entries of Ruling::next.
inline constexpr std::size_t kMostNext = 8;

struct Request {
  VariantSignature signature;
  TreeClass treeClass;
  LegalityCheck isLegal;    ///< called for every entry before it is used; none: all are legal
  std::string kernelHash;   ///< of the kernels that will run; see kernelHash()
  config::Config heuristic; ///< used if no entry is
  double nearbyLimit = kNearbyLimit;
  bool withStaleNearby = false;  ///< also ranks stale nearby entries before the heuristic, to see their worth
  std::string heuristicWhy = {}; ///< the reason for this one, if there was a choice
  std::size_t mostNext = kMostNext;
  /// The tree's coordinates; none: only its class is known, so entries for certain trees do not apply.
  std::optional<Coordinates> coordinates = {};
};

struct Candidate {
  Rule rule = Rule::Heuristic;
  config::Config config;           ///< the heuristic's if the entry keeps the default or is for other trees
  double distance = 0;             ///< 0: an entry for exactly this class
  bool isOwn = false;              ///< the entry is for exactly this variant and class, on any device
  bool isStale = false;            ///< the times belong to other kernels
  bool isForOthers = false;        ///< the entry's config is for other trees of the class (Entry::onlyFor)
  std::optional<LoadedEntry> from; ///< none: from the heuristic, or a fixed config
  std::string path;                ///< of the file; empty: from the heuristic
  std::string reason;              ///< for the heuristic: Request::heuristicWhy
  bool isAlone = true;             ///< for the heuristic: no entry could be used

  /// Whether this is the untuned choice, by any rule.
  bool isUntuned() const {
    return rule == Rule::Heuristic || (from && (from->entry.keepsDefault || isForOthers));
  }
  /// "tuned on this device for this class, 1.31 times as fast as untuned".
  std::string why() const;
};

/// An entry that fits but cannot be used.
struct Rejected {
  std::optional<LoadedEntry> entry; ///< none: a fixed config
  std::string path;
  std::string reason;
};

struct Ruling {
  Candidate chosen;
  std::vector<Candidate> next; ///< the next candidates in order; the last is the heuristic's
  std::vector<Rejected> rejected;
  VariantSignature signature;
  TreeClass treeClass;

  const config::Config &config() const { return chosen.config; }
  Rule rule() const { return chosen.rule; }
};

/// Never fails, since the last rule always has a config. Pure: equal arguments give equal rulings.
///
/// Rules come first; within a rule nearer entries come first, then those of stronger origin. A stale entry
/// for this variant and class ranks among the nearby ones, and so does one whose search was cut short
/// (kDoubtDistance). Neither applies to an override.
Ruling applyRules(const ConfigCache &cache, const Request &request);

nlohmann::json toJson(const Candidate &candidate);
nlohmann::json toJson(const Ruling &ruling);

} // namespace deft::config_cache
