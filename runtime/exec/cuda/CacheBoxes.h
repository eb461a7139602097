#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/device/Device.h"
#include "runtime/exec/Inputs.h"
#include "templates/deft/abi.h"

#include <array>
#include <cstddef>
#include <vector>

namespace deft::exec {

/// Fills the tensor maps by which kernels of family sm90 copy tokens in bulk, for the cache in `args` with
/// the layout `cache`. Leaves args.hasMaps 0 if the device or the layout does not support such copies;
/// kernels then copy token by token. Works on the host only.
void fillCacheBoxes(const device::Device &device, const spec::Variant &variant, const CacheLayouts &cache,
                    abi::AttendArgs &args);

/// The same for repeated runs over the same caches, usually one per layer: each cache's maps are made only
/// once.
class CacheBoxes {
public:
  /// `cachePages`: as in CudaPointers. A cache that is known to exceed the reach of maps gets none.
  void fill(const device::Device &device, const spec::Variant &variant, const CacheLayouts &cache,
            int cachePages, abi::AttendArgs &args);

private:
  /// The values that the maps depend on.
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
  std::vector<Maps> maps_; ///< one for each cache
  std::size_t next_ = 0;   ///< behind the last result: layers follow in order
};

} // namespace deft::exec
