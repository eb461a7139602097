#include "runtime/api/CacheTensors.h"

#include "runtime/api/Dtypes.h"
#include "runtime/api/Sized.h"

#include <cstddef>
#include <string>

namespace deft::api {

namespace {

/// The caches as the spec orders their dimensions, and where the strides of tokens, heads and pages stand.
struct CacheShape {
  Dimensions dimensions;
  int page = -1, token = 0, head = 0;

  /// `hasHeads`: the tensor has a dimension of KV heads. A latent cache may leave it out.
  CacheShape(const spec::Variant &variant, const char *dimName, const spec::TensorType &tensor,
             bool hasHeads) {
    const int pageSize = variant.cache.pageSize;
    const Dimension heads{"kv_heads", variant.kvHeads}, dim{dimName, tensor.dim};
    const Dimension slots{"page_size", pageSize};
    const abi::CacheLayout packed = exec::cacheLayoutsOf(variant).k;
    if (!hasHeads) {
      dimensions = {{"pages", kAny}, slots, dim};
      page = 0, token = 1;
    } else if (pageSize == 0) {
      dimensions = {{"tokens", kAny}, heads, dim};
      token = 0, head = 1;
    } else if (packed.tokenStride == packed.headStride * variant.kvHeads) { // heads of a token side by side
      dimensions = {{"pages", kAny}, slots, heads, dim};
      page = 0, token = 1, head = 2;
    } else {
      dimensions = {{"pages", kAny}, heads, slots, dim};
      page = 0, head = 1, token = 2;
    }
  }

  /// `count`: how many pages, or tokens without pages, the run reads at least.
  Result<abi::CacheLayout> layoutOf(const char *name, const Checked &cache, std::int64_t count) const {
    for (const std::int64_t stride : cache.strides)
      if (stride < 0)
        return wrong(name, "has strides " + listText(cache.strides) + ", none may be less than 0");
    if (cache.strides.back() != 1)
      return wrong(name, "has strides " + listText(cache.strides) + ", the last must be 1",
                   "the elements of a head must be adjacent");
    Extent extent{0, cache.elementBytes, cache.shape, cache.strides};
    extent.shape[0] = cache.count().value_or(count);
    if (const auto found = overlapWithin(extent))
      return wrong(name,
                   "has strides " + listText(cache.strides) + ", entries of " +
                       dimensions[found->dimension].name + " overlap: they span " +
                       std::to_string(found->span) + " elements and begin " +
                       std::to_string(cache.strides[found->dimension]) + " apart",
                   "only a stride of 0, which repeats an entry, lets entries share memory");
    const auto at = [&](int index) { return index < 0 ? 0 : cache.strides[static_cast<std::size_t>(index)]; };
    return abi::CacheLayout{at(page), at(token), head < 0 ? cache.shape.back() : at(head)};
  }
};

/// K and V, where the run reads them, and where their tokens lie.
class CacheCheck {
public:
  CacheCheck(const TensorCheck &check, const spec::Variant &variant, RunTensors &tensors, Memory &memory)
      : check_(check), variant_(variant), tensors_(tensors), memory_(memory) {}

  Result<void> all(int tableTokens, const deft_inputs &inputs, bool isGpu) {
    const bool hasOwnValues = !variant_.tensors.valueInKey;
    if (tableTokens > 0 && !inputs.k)
      return wrong("k", "is null");
    if (tableTokens > 0 && hasOwnValues && !inputs.v)
      return wrong("v", "is null");
    tensors_.cache = exec::cacheLayoutsOf(variant_);
    leastCount_ = variant_.cache.isPaged() ? 1 + (tableTokens > variant_.cache.pageSize)
                                           : tableTokens; // a table may repeat pages
    if (inputs.k_rope)
      return parts(inputs, isGpu);
    const auto &[q, k, v, out, isInKey, scaleColumns, byteProducts] = variant_.tensors;
    const spec::TensorType row = variant_.tensors.keyRow();
    const char *const rowName = scaleColumns > 0 ? "bytes of a token" : dimNameOf(variant_, "k");
    if (inputs.k)
      if (auto taken = take("k", inputs.k, rowName, row, tensors_.k, tensors_.cache.k); !taken)
        return taken;
    tensors_.cache.v = tensors_.cache.k;
    if (inputs.v && hasOwnValues)
      if (auto taken = take("v", inputs.v, dimNameOf(variant_, "v"), v, tensors_.v, tensors_.cache.v); !taken)
        return taken;
    if (!variant_.cache.isPaged() && tensors_.cachePages.value_or(tableTokens) < tableTokens)
      return usage("the cache has " + std::to_string(*tensors_.cachePages) +
                   " tokens, the tree needs the first " + std::to_string(tableTokens));
    return {};
  }

private:
  Result<void> take(const char *name, const deft_tensor *given, const char *dimName,
                    const spec::TensorType &type, const void *&data, abi::CacheLayout &layout) {
    // Pages of one head, which V lies in, may be given without it; errors name them so.
    const bool mayLackHeads =
        variant_.tensors.valueInKey && variant_.cache.isPaged() && variant_.kvHeads == 1;
    const auto known = mayLackHeads ? readSized("deft_tensor", given) : deft_tensor{};
    const CacheShape shape(variant_, dimName, type, !mayLackHeads || !known || known->ndim == 4);
    const auto cache = check_.check(name, given, dtypeOf(type.dtype), shape.dimensions);
    if (!cache)
      return cache.error();
    const auto strides = shape.layoutOf(name, *cache, leastCount_);
    if (!strides)
      return strides.error();
    const auto pages = cache->count();
    if (tensors_.cachePages && pages && *pages != *tensors_.cachePages)
      return wrong(name,
                   "is " + listText(cache->shape) + ", and k has " + std::to_string(*tensors_.cachePages) +
                       " " + shape.dimensions[0].name,
                   "a token has its key and its value at one place of the page table");
    if (pages)
      tensors_.cachePages = pages;
    data = cache->data;
    layout = *strides;
    memory_.reads(name, *cache);
    return {};
  }

  /// Of a latent cache, V's columns and those behind them.
  Result<void> parts(const deft_inputs &inputs, bool isGpu) {
    const auto &[q, k, v, out, isInKey, scaleColumns, byteProducts] = variant_.tensors;
    if (!isInKey)
      return wrong("k_rope", "is given, and the cache of " + variant_.called() + " is not latent");
    if (scaleColumns > 0)
      return wrong("k_rope",
                   "is given, and a token's row in the cache of " + variant_.called() +
                       " has its scales in it",
                   "give k alone, " + std::to_string(variant_.tensors.keyRow().dim) + " bytes a token");
    if (!inputs.k)
      return wrong("k", "is null, and k_rope is given");
    const auto first = readSized("deft_tensor", inputs.k);
    if (first && first->ndim > 0 && first->shape && first->shape[first->ndim - 1] == k.dim)
      return wrong("k", "has all " + std::to_string(k.dim) + " columns of a token, and k_rope is given",
                   "give only k, or its first " + std::to_string(v.dim) + " columns beside k_rope");
    const spec::TensorType rope{k.dtype, k.dim - v.dim};
    if (auto taken = take("k", inputs.k, "dim", {k.dtype, v.dim}, tensors_.k, tensors_.cache.k); !taken)
      return taken;
    if (auto taken = take("k_rope", inputs.k_rope, "rope", rope, tensors_.v, tensors_.cache.v); !taken)
      return taken;
    if (areOneTensor(v)) {
      tensors_.v = nullptr;
      tensors_.cache.v = tensors_.cache.k;
    } else if (!isGpu) {
      return wrong("k_rope",
                   "does not follow k in memory, and processors read a token's columns from one tensor",
                   "pass one tensor of " + std::to_string(k.dim) + " columns");
    }
    return {};
  }

  /// Whether the rotated columns follow V's columns in the rows of k.
  bool areOneTensor(const spec::TensorType &v) const {
    const abi::CacheLayout &of = tensors_.cache.k, &behind = tensors_.cache.v;
    return static_cast<const std::byte *>(tensors_.k) + v.rowBytes() == tensors_.v &&
           (of.pageStride == behind.pageStride || tensors_.cachePages == 1) &&
           (of.tokenStride == behind.tokenStride || variant_.cache.pageSize == 1);
  }

  const TensorCheck &check_;
  const spec::Variant &variant_;
  RunTensors &tensors_;
  Memory &memory_;
  int leastCount_ = 0; ///< of pages or tokens, where the caller does not say how many there are
};

} // namespace

const char *dimNameOf(const spec::Variant &variant, std::string_view tensor) {
  if (variant.tensors.k.dim == variant.tensors.v.dim)
    return "head_dim";
  return tensor == "q" || tensor == "k" ? "key_dim" : "value_dim";
}

Result<void> checkCaches(const TensorCheck &check, const spec::Variant &variant, int tableTokens,
                         const deft_inputs &inputs, bool isGpu, RunTensors &tensors, Memory &memory) {
  return CacheCheck(check, variant, tensors, memory).all(tableTokens, inputs, isGpu);
}

} // namespace deft::api
