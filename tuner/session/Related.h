#pragma once

#include "runtime/config_cache/ConfigCache.h"
#include "tuner/session/Tune.h"

#include <vector>

namespace deft::session {

/// Prior knowledge about a class to tune: configs to try first.
struct Related {
  std::vector<config::Config> ofClass;    ///< for this class, tuned for a related variant or earlier
  std::vector<config::Config> neighbours; ///< for neighbouring classes
  /// This class was tuned for the variant, or for one that differs only in type and pages, even with other
  /// kernels: its result is hard to beat.
  bool isKnown = false;
};

/// The entries that exist when a session begins, for one variant.
class RelatedConfigs {
public:
  RelatedConfigs(const config_cache::Places &places, const config_cache::DeviceKey &device,
                 const spec::Variant &variant, const target::Target *target);

  /// `session`: the results of this one so far.
  Related of(const config_cache::TreeClass &treeClass, const std::vector<ClassReport> &session) const;

private:
  struct KnownEntry {
    const config_cache::Entry *entry;
    double distance; ///< of the variants
    bool isFresh;
  };

  config_cache::ConfigCache cache_;
  std::vector<KnownEntry>
      known_; ///< usable entries of related variants: fresh before stale, then by distance
};

} // namespace deft::session
