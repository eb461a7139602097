#include "runtime/exec/cuda/CacheBoxes.h"

#include <algorithm>
#include <iterator>

namespace deft::exec {

namespace {

namespace cu = device::cu;

constexpr std::size_t kMostCaches = 1024;   ///< that are remembered: 800 kB
constexpr unsigned kColumnBytes = 2;        ///< those of 8 bits come in pairs
constexpr unsigned kColumns = 64;           ///< of a box: the 128 bytes of the widest swizzle
constexpr unsigned kBoxTokens[] = {16, 32}; ///< as abi::AttendArgs has them
constexpr unsigned kTileTokens = 64;        ///< likewise
/// Of a cache, or tokens where it has no pages: copies give zeros for what is behind.
constexpr unsigned kMostPages = 1u << 30;

/// A view of the cache, dimension by dimension, with the part of each that a copy takes.
struct View {
  unsigned rank = 0;
  unsigned long long sizes[5], strideBytes[5];
  unsigned box[5];

  void add(unsigned long long size, unsigned long long bytes, unsigned taken) {
    sizes[rank] = size;
    strideBytes[rank] = bytes;
    box[rank++] = taken;
  }
};

/// K or V. Strides of the layout count elements.
struct Tensor {
  const spec::TensorType &type;
  int heads;
  int pageSize; ///< 0: no pages
  const abi::CacheLayout &layout;

  unsigned long long bytes(long long elements) const {
    return static_cast<unsigned long long>(type.elementBytes() * elements);
  }
  unsigned columns() const { return static_cast<unsigned>(type.rowBytes()) / kColumnBytes; }
  /// Whether a row is a box, or whole ones.
  bool hasWholeBoxes() const { return columns() < kColumns || columns() % kColumns == 0; }

  void addHeadsTo(View &view) const { view.add(static_cast<unsigned>(heads), bytes(layout.headStride), 1); }
  /// The tokens of a page, and pages. Where a page is one token, or the whole cache, tokens are all there is.
  void addTokensTo(View &view, unsigned taken) const {
    view.add(pageSize > 1 ? static_cast<unsigned>(pageSize) : kMostPages,
             bytes(pageSize == 1 ? layout.pageStride : layout.tokenStride), taken);
  }
  void addPagesTo(View &view) const {
    if (pageSize > 1)
      view.add(kMostPages, bytes(layout.pageStride), 1);
  }
};

/// So many tokens of a KV head and 64 of its columns.
View boxView(const Tensor &tensor, unsigned taken) {
  View view;
  view.add(tensor.columns(), kColumnBytes, kColumns);
  tensor.addHeadsTo(view);
  tensor.addTokensTo(view, taken);
  tensor.addPagesTo(view);
  return view;
}

/// All columns of a tile's tokens, in blocks of 64; where there are fewer, the copy fills up with zeros. Of a
/// latent cache, half of V's columns at a time (templates/deft/sm90_latent).
View tileView(const Tensor &tensor, bool isLatent) {
  const unsigned columns = tensor.columns(), blocks = (columns + kColumns - 1) / kColumns;
  View view;
  view.add(std::min(columns, kColumns), kColumnBytes, kColumns);
  tensor.addTokensTo(view, kTileTokens);
  view.add(blocks, kColumns * kColumnBytes, isLatent ? (blocks + 1) / 2 : blocks);
  tensor.addHeadsTo(view);
  tensor.addPagesTo(view);
  return view;
}

} // namespace

void fillCacheBoxes(const device::Device &device, const spec::Variant &variant, const CacheLayouts &cache,
                    abi::AttendArgs &args) {
  args.hasMaps = 0;
  const int pageSize = variant.cache.pageSize;
  const auto hasRoomFor = [&](unsigned count) {
    return pageSize <= 1 || pageSize % static_cast<int>(count) == 0;
  };
  // Bytes of longer rows, and of latent caches, are converted on their way.
  const spec::TensorType &key = variant.tensors.k;
  const bool comeByBoxes = key.elementBytes() == 2 || (key.dim <= 128 && !variant.tensors.valueInKey);
  if (device.facts().major < 9 || !comeByBoxes || !hasRoomFor(kBoxTokens[0]))
    return;
  const auto encode = [&](abi::TensorMap &map, const void *pool, const spec::TensorType &type,
                          const View &view) {
    const unsigned steps[5] = {1, 1, 1, 1, 1};
    return device.api().tensorMapEncodeTiled(
               &map, type.dtype == spec::DType::BF16 ? cu::kTensorBfloat16 : cu::kTensorFloat16, view.rank,
               const_cast<void *>(pool), view.sizes, view.strideBytes + 1, view.box, steps,
               cu::kTensorNoInterleave, cu::kTensorSwizzle128, cu::kTensorPromote128,
               cu::kTensorFillZeros) == cu::kSuccess;
  };
  const auto encodeAll = [&](abi::TensorMap(&maps)[3], const void *pool, const abi::CacheLayout &layout,
                             const spec::TensorType &type) {
    const Tensor tensor{type, variant.kvHeads, pageSize, layout};
    for (int i = 0; i < 2; ++i)
      if (!encode(maps[i], pool, type, boxView(tensor, kBoxTokens[i])))
        return false; // strides that are no multiples of 16 bytes, for example
    const bool hasTile = tensor.hasWholeBoxes() && hasRoomFor(kTileTokens);
    return !hasTile || encode(maps[2], pool, type, tileView(tensor, variant.tensors.valueInKey));
  };
  // Of a latent cache, V's columns and those behind them.
  const auto &[q, k, v, out, isLatent, scaleColumns, byteProducts] = variant.tensors;
  const spec::TensorType first = isLatent ? v : k,
                         second = isLatent ? spec::TensorType{k.dtype, k.dim - v.dim} : v;
  if (!encodeAll(args.kBoxes, args.k, cache.k, first) || !encodeAll(args.vBoxes, args.v, cache.v, second))
    return;
  args.hasMaps = 1;
}

std::size_t CacheBoxes::find(const Cache &cache) {
  if (next_ < caches_.size() && caches_[next_] == cache)
    return next_;
  return static_cast<std::size_t>(std::find(caches_.begin(), caches_.end(), cache) - caches_.begin());
}

void CacheBoxes::fill(const device::Device &device, const spec::Variant &variant, const CacheLayouts &cache,
                      int cachePages, abi::AttendArgs &args) {
  if (cachePages > static_cast<int>(kMostPages)) {
    args.hasMaps = 0;
    return;
  }
  const Cache asked{args.k,
                    args.v,
                    {cache.k.pageStride, cache.k.tokenStride, cache.k.headStride, cache.v.pageStride,
                     cache.v.tokenStride, cache.v.headStride},
                    variant.cache.pageSize,
                    variant.kvHeads,
                    variant.tensors.k,
                    variant.tensors.v};
  const std::size_t at = find(asked);
  next_ = at + 1 < caches_.size() ? at + 1 : 0;
  if (at < caches_.size()) {
    const Maps &maps = maps_[at];
    args.hasMaps = maps.hasMaps;
    std::copy(std::begin(maps.kBoxes), std::end(maps.kBoxes), args.kBoxes);
    std::copy(std::begin(maps.vBoxes), std::end(maps.vBoxes), args.vBoxes);
    return;
  }
  fillCacheBoxes(device, variant, cache, args);
  if (caches_.size() >= kMostCaches) { // of a host that makes new ones all the time
    caches_.clear();
    maps_.clear();
  }
  Maps maps{.hasMaps = args.hasMaps, .kBoxes = {}, .vBoxes = {}};
  std::copy(std::begin(args.kBoxes), std::end(args.kBoxes), maps.kBoxes);
  std::copy(std::begin(args.vBoxes), std::end(args.vBoxes), maps.vBoxes);
  caches_.push_back(asked);
  maps_.push_back(maps);
  next_ = 0;
}

} // namespace deft::exec
