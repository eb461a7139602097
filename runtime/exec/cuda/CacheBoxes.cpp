#include "runtime/exec/cuda/CacheBoxes.h"

namespace deft::exec {

namespace {

namespace cu = device::cu;

constexpr unsigned kColumns = 64;                   ///< of a box: the 128 bytes of the widest swizzle
constexpr unsigned kBoxTokens[] = {16, 32};         ///< as abi::AttendArgs has them
constexpr unsigned long long kMostPages = 1u << 30; ///< no bound: a plan's pages are there

/// The cache as a tensor of columns, KV heads, tokens of a page and pages; where a page is one token, or the
/// whole cache, of columns, KV heads and tokens.
struct CacheTensor {
  unsigned rank = 3;
  unsigned long long sizes[4];
  unsigned long long strideBytes[3]; ///< of all but the columns

  CacheTensor(const spec::Variant &variant, const abi::CacheLayout &cache, int pageSize) {
    const auto bytes = [](long long elements) { return static_cast<unsigned long long>(2 * elements); };
    sizes[0] = static_cast<unsigned long long>(variant.headDim);
    sizes[1] = static_cast<unsigned long long>(variant.kvHeads);
    strideBytes[0] = bytes(cache.headStride);
    strideBytes[1] = bytes(pageSize == 1 ? cache.pageStride : cache.tokenStride);
    sizes[2] = kMostPages;
    if (pageSize > 1) {
      rank = 4;
      sizes[2] = static_cast<unsigned long long>(pageSize);
      sizes[3] = kMostPages;
      strideBytes[2] = bytes(cache.pageStride);
    }
  }
};

} // namespace

void fillCacheBoxes(const device::Device &device, const spec::Variant &variant, abi::AttendArgs &args) {
  args.hasMaps = 0;
  const int pageSize = variant.cache.paged ? variant.cache.pageSize : 0;
  const int fewest = static_cast<int>(kBoxTokens[0]);
  if (device.facts().major < 9 || (pageSize > 1 && pageSize % fewest != 0))
    return;
  const CacheTensor tensor(variant, args.cache, pageSize);
  const auto encode = [&](abi::TensorMap &map, const void *pool, unsigned tokens) {
    const unsigned box[4] = {kColumns, 1, tokens, 1}, steps[4] = {1, 1, 1, 1};
    return device.api().tensorMapEncodeTiled(
               &map, variant.dtype == spec::DType::F16 ? cu::kTensorFloat16 : cu::kTensorBfloat16,
               tensor.rank, const_cast<void *>(pool), tensor.sizes, tensor.strideBytes, box, steps,
               cu::kTensorNoInterleave, cu::kTensorSwizzle128, cu::kTensorPromote128,
               cu::kTensorFillZeros) == cu::kSuccess;
  };
  for (int i = 0; i < 2; ++i)
    if (!encode(args.kBoxes[i], args.k, kBoxTokens[i]) || !encode(args.vBoxes[i], args.v, kBoxTokens[i]))
      return; // strides that are no multiples of 16 bytes, for example
  args.hasMaps = 1;
}

} // namespace deft::exec
