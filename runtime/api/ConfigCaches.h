#pragma once

#include "runtime/config_cache/ConfigCache.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace deft::api {

/// Tuned configs for one attention, read once for each device: a plan is made in every step, and files are
/// slow. Any thread may call this.
class ConfigCaches {
public:
  explicit ConfigCaches(bool hasSparse) : hasSparse_(hasSparse) {}

  std::shared_ptr<const config_cache::ConfigCache> of(const config_cache::DeviceKey &device) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<const config_cache::ConfigCache> &cache = caches_[device.fileName()];
    if (!cache)
      cache = std::make_shared<const config_cache::ConfigCache>(
          config_cache::ConfigCache::load(config_cache::defaultPlaces(), device, hasSparse_));
    return cache;
  }

  /// For this machine's processor with `threads` threads.
  std::shared_ptr<const config_cache::ConfigCache> ofCpu(int threads) {
    config_cache::DeviceKey key;
    {
      const std::lock_guard lock(mutex_);
      if (cpu_.name.empty())
        cpu_ = config_cache::DeviceKey::ofCpu(threads);
      key = cpu_;
    }
    key.units = threads;
    return of(key);
  }

private:
  bool hasSparse_; ///< the attention selects
  std::mutex mutex_;
  config_cache::DeviceKey cpu_; ///< the name is read from a file
  std::map<std::string, std::shared_ptr<const config_cache::ConfigCache>> caches_;
};

} // namespace deft::api
