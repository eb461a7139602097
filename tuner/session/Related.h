#pragma once

#include "runtime/config_cache/ConfigCache.h"
#include "tuner/session/Tune.h"

#include <vector>

namespace deft::session {

/// What is known already of a class that is to be tuned: configs to try first.
struct Related {
  std::vector<config::Config> ofClass;    ///< of this very class, tuned for a related variant or before
  std::vector<config::Config> neighbours; ///< of classes beside this one
  /// The variant, or one that differs in no more than type and pages, was tuned for this class, be it with
  /// other kernels: what was found then is not easily beaten.
  bool isKnown = false;
};

/// The entries that there are when a session begins, as one variant sees them.
class RelatedConfigs {
public:
  RelatedConfigs(const config_cache::Places &places, const config_cache::DeviceKey &device,
                 const spec::Variant &variant, const target::Target *target);

  /// `session`: what this one has come to.
  Related of(const config_cache::TreeClass &treeClass, const std::vector<ClassReport> &session) const;

private:
  struct KnownEntry {
    const config_cache::Entry *entry;
    double distance; ///< of the variants
    bool isFresh;
  };

  config_cache::ConfigCache cache_;
  std::vector<KnownEntry>
      known_; ///< of entries of related variants that can be used: fresh before stale, then by distance
};

} // namespace deft::session
