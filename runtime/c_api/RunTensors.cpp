#include "runtime/c_api/RunTensors.h"

#include "runtime/c_api/Dtypes.h"
#include "runtime/c_api/Overlap.h"
#include "runtime/c_api/Sized.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace deft::c {

namespace {

/// A dimension that a tensor must have; of size -1: any.
struct Dimension {
  const char *name;
  std::int64_t size;
};
using Dimensions = std::vector<Dimension>;

/// A tensor that is as it must be.
struct Checked {
  void *data = nullptr;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides; ///< of dimensions with one element: as if it were packed
};

std::string listText(std::span<const std::int64_t> values) {
  std::string text = "[";
  for (std::size_t i = 0; i < values.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(values[i]);
  return text + "]";
}

/// "[queries, query_heads, head_dim] = [2, 32, 128]"
std::string dimensionsText(const Dimensions &dimensions) {
  std::string names, sizes;
  for (const Dimension &dimension : dimensions) {
    const char *const comma = names.empty() ? "" : ", ";
    names += std::string(comma) + dimension.name;
    sizes += comma + (dimension.size < 0 ? "any" : std::to_string(dimension.size));
  }
  return "[" + names + "] = [" + sizes + "]";
}

std::string placeName(int type, int index) {
  switch (type) {
  case DEFT_DEVICE_CPU:
    return "memory of the CPU";
  case DEFT_DEVICE_CUDA:
    return "memory of CUDA device " + std::to_string(index);
  case DEFT_DEVICE_CUDA_HOST:
    return "page-locked memory of the CPU";
  case DEFT_DEVICE_CUDA_MANAGED:
    return "managed memory of CUDA";
  default:
    return "memory of device type " + std::to_string(type);
  }
}

class TensorCheck {
public:
  TensorCheck(const RunPlace &place, std::string taker) : place_(place), taker_(std::move(taker)) {}

  Result<Checked> check(const std::string &name, const deft_tensor *given, deft_dtype dtype,
                        const Dimensions &dimensions) const {
    const auto tensor = readSized("deft_tensor", given);
    if (!tensor)
      return Error{tensor.error().code, name + ": " + tensor.error().message, tensor.error().hint};
    if (auto lies = checkPlace(name, *tensor); !lies)
      return lies.error();
    if (tensor->dtype != dtype)
      return usage(name + " is " + dtypeName(tensor->dtype) + ", " + taker_ + " takes " + dtypeName(dtype));
    Checked checked{.data = tensor->data, .shape = {}, .strides = {}};
    if (auto shaped = checkShape(name, *tensor, dimensions, checked); !shaped)
      return shaped.error();
    const auto bytes = static_cast<std::uintptr_t>(dtype & 0xff) / 8;
    if (reinterpret_cast<std::uintptr_t>(tensor->data) % bytes != 0)
      return usage(name + " does not begin at a multiple of " + std::to_string(bytes) + " bytes");
    if (!tensor->data && !hasNoElements(checked.shape))
      return usage(name + " of shape " + listText(checked.shape) + " is at no address",
                   "deft_tensor::data is null");
    return checked;
  }

  /// As check() does, and that the elements lie side by side.
  Result<Checked> checkPacked(const std::string &name, const deft_tensor *given, deft_dtype dtype,
                              const Dimensions &dimensions) const {
    auto checked = check(name, given, dtype, dimensions);
    if (!checked)
      return checked;
    const auto packed = packedStrides(checked->shape);
    if (checked->strides != packed)
      return usage(name + " of shape " + listText(checked->shape) + " has strides " +
                       listText(checked->strides) + ", it must be packed: " + listText(packed),
                   "hand over a contiguous copy");
    return checked;
  }

  /// As check() does, and that the elements of each entry of the first dimension lie side by side; such rows
  /// may be any distance apart that keeps them from overlapping.
  Result<Checked> checkRows(const std::string &name, const deft_tensor *given, deft_dtype dtype,
                            const Dimensions &dimensions) const {
    auto checked = check(name, given, dtype, dimensions);
    if (!checked)
      return checked;
    const auto packed = packedStrides(checked->shape);
    const auto &strides = checked->strides;
    if (!std::equal(strides.begin() + 1, strides.end(), packed.begin() + 1) || strides[0] < packed[0])
      return usage(name + " of shape " + listText(checked->shape) + " has strides " + listText(strides) +
                       ", but for the first, which may be greater, they must be " + listText(packed),
                   "hand over a contiguous copy");
    return checked;
  }

private:
  static bool hasNoElements(const std::vector<std::int64_t> &shape) {
    return std::find(shape.begin(), shape.end(), 0) != shape.end();
  }

  /// The shape has a dimension at least. The first one's size is any number, and no stride has it as a
  /// factor.
  static std::vector<std::int64_t> packedStrides(const std::vector<std::int64_t> &shape) {
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t i = shape.size() - 1; i-- > 0;)
      strides[i] = strides[i + 1] * shape[i + 1];
    return strides;
  }

  Result<void> checkPlace(const std::string &name, const deft_tensor &tensor) const {
    const int type = tensor.device_type;
    if (type == DEFT_DEVICE_UNSAID || type == DEFT_DEVICE_CUDA_MANAGED)
      return {};
    const bool fits = place_.isGpu ? type == DEFT_DEVICE_CUDA && tensor.device_id == place_.gpu
                                   : type == DEFT_DEVICE_CPU || type == DEFT_DEVICE_CUDA_HOST;
    if (fits)
      return {};
    return usage(name + " is in " + placeName(type, tensor.device_id) + ", the run takes " +
                 placeName(place_.isGpu ? DEFT_DEVICE_CUDA : DEFT_DEVICE_CPU, place_.gpu));
  }

  static Result<void> checkShape(const std::string &name, const deft_tensor &tensor,
                                 const Dimensions &dimensions, Checked &checked) {
    const auto mustBe = [&] { return ", it must be " + dimensionsText(dimensions); };
    if (tensor.ndim < 0 || static_cast<std::size_t>(tensor.ndim) != dimensions.size())
      return usage(name + " has " + std::to_string(tensor.ndim) + " dimensions" + mustBe());
    if (!tensor.shape)
      return usage(name + " has no shape" + mustBe());
    checked.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
      const bool fits =
          dimensions[i].size < 0 ? checked.shape[i] >= 0 : checked.shape[i] == dimensions[i].size;
      if (!fits)
        return usage(name + " is " + listText(checked.shape) + mustBe());
    }
    checked.strides = packedStrides(checked.shape);
    if (!tensor.strides)
      return {};
    const bool isEmpty = hasNoElements(checked.shape); // then no stride is ever taken
    for (std::size_t i = 0; i < dimensions.size(); ++i)
      if (!isEmpty && checked.shape[i] > 1)
        checked.strides[i] = tensor.strides[i];
    return {};
  }

  RunPlace place_;
  std::string taker_; ///< of the tensors, for errors
};

/// What is read and written at once has to lie apart.
class Memory {
public:
  void reads(const char *name, Checked tensor, deft_dtype dtype) {
    read_.push_back({name, extentOf(std::move(tensor), dtype)});
  }
  void writes(const char *name, Checked tensor, deft_dtype dtype) {
    written_.push_back({name, extentOf(std::move(tensor), dtype)});
  }

  Result<void> checkApart() const {
    for (std::size_t i = 0; i < written_.size(); ++i) {
      for (const Named &read : read_)
        if (overlap(written_[i].extent, read.extent))
          return usage(std::string(written_[i].name) + " overlaps with " + read.name,
                       "it is written while that is read: give it memory of its own");
      for (std::size_t k = 0; k < i; ++k)
        if (overlap(written_[i].extent, written_[k].extent))
          return usage(std::string(written_[i].name) + " overlaps with " + written_[k].name,
                       "both are written: give each memory of its own");
    }
    return {};
  }

private:
  struct Named {
    const char *name;
    Extent extent;
  };

  static Extent extentOf(Checked tensor, deft_dtype dtype) {
    return {reinterpret_cast<std::uintptr_t>(tensor.data), (dtype & 0xff) / 8, std::move(tensor.shape),
            std::move(tensor.strides)};
  }

  std::vector<Named> read_, written_;
};

/// The caches as the spec orders their dimensions, and where the strides of tokens, heads and pages stand.
struct CacheShape {
  Dimensions dimensions;
  int page = -1, token = 0, head = 0;

  CacheShape(const Attention &attention, const TensorType &tensor) {
    const Dimension heads{"kv_heads", attention.kvHeads()}, dim{"head_dim", tensor.dim};
    const Dimension slots{"page_size", attention.pageSize()};
    const CacheStrides packed = attention.strides();
    if (attention.pageSize() == 0) {
      dimensions = {{"tokens", -1}, heads, dim};
      token = 0, head = 1;
    } else if (packed.token == packed.head * attention.kvHeads()) { // the heads of a token side by side: nhd
      dimensions = {{"pages", -1}, slots, heads, dim};
      page = 0, token = 1, head = 2;
    } else {
      dimensions = {{"pages", -1}, heads, slots, dim};
      page = 0, head = 1, token = 2;
    }
  }

  Result<CacheStrides> stridesOf(const std::string &name, const Checked &cache) const {
    for (const std::int64_t stride : cache.strides)
      if (stride < 0)
        return usage(name + " has strides " + listText(cache.strides) + ", none may be less than 0");
    if (cache.strides.back() != 1)
      return usage(name + " has strides " + listText(cache.strides) + ", the last must be 1",
                   "the elements of a head lie side by side");
    const auto at = [&](int index) { return index < 0 ? 0 : cache.strides[static_cast<std::size_t>(index)]; };
    return CacheStrides{.page = at(page), .token = at(token), .head = at(head)};
  }
};

/// K and V, as far as they are given, and their strides.
Result<void> checkCaches(const TensorCheck &check, const Attention &attention, const deft_inputs &inputs,
                         RunTensors &tensors, Memory &memory) {
  for (const auto &[name, given, type, data, to] :
       {std::tuple("k", inputs.k, attention.k(), &tensors.k, &tensors.strides),
        std::tuple("v", inputs.v, attention.v(), &tensors.v, &tensors.vStrides)}) {
    if (!given)
      continue;
    const CacheShape shape(attention, type);
    auto cache = check.check(name, given, dtypeOf(type.dtype), shape.dimensions);
    if (!cache)
      return cache.error();
    const auto strides = shape.stridesOf(name, *cache);
    if (!strides)
      return strides.error();
    const std::int64_t pages = cache->shape[0];
    if (tensors.cachePages.value_or(pages) != pages)
      return usage("v is " + listText(cache->shape) + ", and k has " + std::to_string(*tensors.cachePages) +
                       " " + shape.dimensions[0].name,
                   "a token has its key and its value at one place of the page table");
    *data = cache->data;
    *to = *strides;
    tensors.cachePages = pages;
    memory.reads(name, std::move(*cache), dtypeOf(type.dtype));
  }
  return {};
}

} // namespace

Result<const int *> checkLengths(const deft_tensor *lengths, int queries, const RunPlace &place) {
  const auto checked =
      TensorCheck(place, "the plan").checkPacked("lengths", lengths, DEFT_I32, {{"queries", queries}});
  if (!checked)
    return checked.error();
  return static_cast<const int *>(checked->data);
}

Result<DraftMask> checkMask(const deft_draft_mask *given, const RunPlace &place) {
  const auto known = readSized("deft_draft_mask", given);
  if (!known)
    return known.error();
  if (!known->bits)
    return usage("deft_draft_mask::bits is null");
  const TensorCheck check(place, "the plan");
  const auto first = readSized("deft_tensor", known->bits);
  const deft_dtype dtype = first && first->dtype == DEFT_I32 ? DEFT_I32 : DEFT_U32;
  const bool hasDrafts = first && first->ndim == 3 && first->shape;
  const std::int64_t drafts = hasDrafts ? first->shape[1] : -1;
  const auto bits =
      check.checkPacked("bits", known->bits, dtype,
                        {{"requests", -1}, {"drafts", -1}, {"words", drafts < 0 ? -1 : (drafts + 31) / 32}});
  if (!bits)
    return bits.error();
  const Dimension requests{"requests", bits->shape[0]};
  if (bits->shape[0] < 1 || std::max(bits->shape[0], drafts) > std::numeric_limits<int>::max())
    return usage("bits is " + listText(bits->shape) + ", which is for no batch");
  DraftMask mask{.bits = static_cast<const std::uint32_t *>(bits->data),
                 .drafts = static_cast<int>(drafts),
                 .requests = static_cast<int>(bits->shape[0])};
  if (known->depths) {
    const auto depths = check.checkPacked("depths", known->depths, DEFT_I32, {requests, {"drafts", drafts}});
    if (!depths)
      return depths.error();
    mask.depths = static_cast<const int *>(depths->data);
  }
  if (known->lengths) {
    const auto lengths = check.checkPacked("lengths", known->lengths, DEFT_I32, {requests});
    if (!lengths)
      return lengths.error();
    mask.lengths = static_cast<const int *>(lengths->data);
  }
  return mask;
}

Result<RunTensors> checkTensors(const Attention &attention, int queries, const RunPlace &place,
                                const deft_inputs *givenInputs, const deft_outputs *givenOutputs) {
  const auto inputs = readSized("deft_inputs", givenInputs);
  if (!inputs)
    return inputs.error();
  const auto outputs = readSized("deft_outputs", givenOutputs);
  if (!outputs)
    return outputs.error();
  const TensorCheck check(place, "`" + attention.name() + "`");
  RunTensors tensors;
  Memory memory;
  tensors.params = inputs->params;
  tensors.checksFinite = inputs->checks_finite != 0;
  const Dimensions rows = {{"queries", queries}, {"query_heads", attention.queryHeads()}};
  const auto rowsOf = [&](const TensorType &tensor) {
    Dimensions dimensions = rows;
    dimensions.push_back({"head_dim", tensor.dim});
    return dimensions;
  };
  if (inputs->q) {
    auto q = check.checkRows("q", inputs->q, dtypeOf(attention.q().dtype), rowsOf(attention.q()));
    if (!q)
      return q.error();
    tensors.q = q->data;
    tensors.qStride = q->strides[0];
    memory.reads("q", std::move(*q), dtypeOf(attention.q().dtype));
  }
  if (auto checked = checkCaches(check, attention, *inputs, tensors, memory); !checked)
    return checked.error();
  if (inputs->page_table) {
    auto table = check.checkPacked("page_table", inputs->page_table, DEFT_I32, {{"entries", -1}});
    if (!table)
      return table.error();
    tensors.pageTable = {static_cast<const int *>(table->data), static_cast<std::size_t>(table->shape[0])};
    memory.reads("page_table", std::move(*table), DEFT_I32);
  }
  if (outputs->out) {
    auto out = check.checkRows("out", outputs->out, dtypeOf(attention.out().dtype), rowsOf(attention.out()));
    if (!out)
      return out.error();
    tensors.out = out->data;
    tensors.outStride = out->strides[0];
    memory.writes("out", std::move(*out), dtypeOf(attention.out().dtype));
  }
  if (outputs->lse) {
    auto lse = check.checkPacked("lse", outputs->lse, DEFT_F32, rows);
    if (!lse)
      return lse.error();
    tensors.lse = static_cast<float *>(lse->data);
    memory.writes("lse", std::move(*lse), DEFT_F32);
  }
  if (auto apart = memory.checkApart(); !apart)
    return apart.error();
  return tensors;
}

Result<deft_dtype> stateDtype(const deft_state *states, std::size_t count) {
  if (count == 0)
    return usage("there are no states to merge");
  const auto out = readSized("deft_tensor", states[0].out);
  return out ? Result<deft_dtype>(out->dtype) : out.error();
}

Result<StateTensors> checkStates(const deft_state *states, std::size_t count, const deft_state *to,
                                 deft_dtype dtype, const RunPlace &place) {
  const TensorCheck check(place, "the merge");
  StateTensors tensors;
  // The first one's shape is everybody's.
  Dimensions rows = {{"queries", -1}, {"query_heads", -1}}, rowsOfDim = rows;
  rowsOfDim.push_back({"head_dim", -1});
  const auto read = [&](const std::string &of, const deft_state &given,
                        bool needsLse) -> Result<MergedState> {
    MergedState state;
    if (!given.out || (needsLse && !given.lse))
      return usage((given.out ? "lse" : "out") + of + " is null");
    const auto out = check.checkPacked("out" + of, given.out, dtype, rowsOfDim);
    if (!out)
      return out.error();
    for (std::size_t i = 0; i < rowsOfDim.size(); ++i)
      rowsOfDim[i].size = out->shape[i];
    rows.assign(rowsOfDim.begin(), rowsOfDim.end() - 1);
    state.out = out->data;
    if (!given.lse)
      return state;
    const auto lse = check.checkPacked("lse" + of, given.lse, DEFT_F32, rows);
    if (!lse)
      return lse.error();
    state.lse = static_cast<float *>(lse->data);
    return state;
  };
  for (std::size_t i = 0; i < count; ++i) {
    const auto state = read(" of state " + std::to_string(i), states[i], true);
    if (!state)
      return state.error();
    tensors.states.push_back({state->out, state->lse});
  }
  const auto merged = read(" of the merged state", *to, false);
  if (!merged)
    return merged.error();
  tensors.to = *merged;
  tensors.rows = rows[0].size * rows[1].size;
  tensors.dim = static_cast<int>(std::min<std::int64_t>(rowsOfDim[2].size, std::numeric_limits<int>::max()));
  return tensors;
}

} // namespace deft::c
