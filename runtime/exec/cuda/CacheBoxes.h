#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/device/Device.h"
#include "runtime/exec/Inputs.h"
#include "templates/deft/abi.h"

#include <array>
#include <cstddef>
#include <vector>

namespace deft::exec {

/// Fills the maps by which kernels of the sm90 family copy tokens in bulk, for the cache that `args` names
/// and that lies as `cache` says. Leaves args.hasMaps 0 where the device or the cache's layout has no such
/// copies; tokens are then copied one by one. On the host only.
void fillCacheBoxes(const device::Device &device, const spec::Variant &variant, const CacheLayouts &cache,
                    abi::AttendArgs &args);

/// Fills them for who runs again and again over the same caches, one for each layer as a rule: the driver
/// makes the maps of each once.
class CacheBoxes {
public:
  /// `cachePages`: as CudaPointers. A cache that is known to have more than maps reach has none.
  void fill(const device::Device &device, const spec::Variant &variant, const CacheLayouts &cache,
            int cachePages, abi::AttendArgs &args);

private:
  /// All that the maps depend on.
  struct Cache {
    const void *k, *v;
    std::array<long long, 6> strides; ///< of pages, tokens and heads, in K and in V
    int pageSize, kvHeads;
    spec::TensorType key, value;
    bool operator==(const Cache &) const = default;
  };
  struct Maps {
    int hasMaps;
    abi::TensorMap kBoxes[3], vBoxes[3];
  };

  std::size_t find(const Cache &cache);

  std::vector<Cache> caches_;
  std::vector<Maps> maps_; ///< of each
  std::size_t next_ = 0;   ///< the one behind the last that was asked for: layers come in their order
};

} // namespace deft::exec
