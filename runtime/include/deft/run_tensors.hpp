#pragma once

#include <deft/attention.hpp>
#include <deft/c/tensor.h>

namespace deft {

using RunSettings = deft_run_settings;

/// Turns pointers and strides into tensors of <deft/deft.h>; for the other headers in this folder.
namespace detail {

/// The memory of a run on the host or on a GPU.
struct RunMemory {
  const void *q = nullptr, *k = nullptr, *v = nullptr, *kRope = nullptr;
  const int *pageTable = nullptr;
  std::optional<std::int64_t> tableEntries, cachePages; ///< none: unknown
  std::optional<CacheStrides> strides, vStrides, kRopeStrides;
  std::int64_t qStride = 0, outStride = 0; ///< 0: packed
  const int *lists = nullptr;
  int budget = 0;
  RunSettings settings = {};
  void *out = nullptr;
  float *lse = nullptr;
  const Params *params = nullptr;
};

class RunTensors {
public:
  RunTensors(const Attention &attention, int queries, const RunMemory &of) {
    const deft_attention_facts &facts = attention.facts();
    inputs_.size = sizeof inputs_;
    inputs_.q = rows(q_, of.q, facts.query_dtype, queries, facts, facts.key_dim, of.qStride);
    inputs_.k = cache(k_, of.k, facts.key_dtype, facts, of.kRope ? facts.value_dim : keyRow(facts),
                      of.cachePages, of.strides);
    inputs_.k_rope = cache(kRope_, of.kRope, facts.key_dtype, facts, facts.key_dim - facts.value_dim,
                           of.cachePages, of.kRopeStrides);
    inputs_.v = cache(v_, of.v, facts.value_dtype, facts, facts.value_dim, of.cachePages,
                      of.vStrides ? of.vStrides : of.strides);
    inputs_.page_table = table_.set(of.pageTable, DEFT_I32, {of.tableEntries.value_or(-1)}, 1);
    inputs_.lists = lists_.set(of.lists, DEFT_I32, {queries, of.budget}, 2);
    inputs_.params = handleOf(of.params);
    inputs_.settings = of.settings;
    outputs_.size = sizeof outputs_;
    outputs_.out = rows(out_, of.out, facts.output_dtype, queries, facts, facts.value_dim, of.outStride);
    outputs_.lse = lse_.set(of.lse, DEFT_F32, {queries, facts.query_heads}, 2);
  }
  RunTensors(const RunTensors &) = delete;
  RunTensors &operator=(const RunTensors &) = delete;

  const deft_inputs *inputs() const { return &inputs_; }
  const deft_outputs *outputs() const { return &outputs_; }

private:
  struct Sizes {
    std::int64_t of[4];
  };
  struct Tensor {
    Sizes shape = {}, strides = {};
    deft_tensor own = {};

    /// Null if there is no memory.
    const deft_tensor *set(const void *data, deft_dtype dtype, Sizes sizes, std::int32_t ndim) {
      shape = sizes;
      own.size = sizeof own;
      own.data = const_cast<void *>(data);
      own.shape = shape.of;
      own.dtype = dtype;
      own.ndim = ndim;
      return data ? &own : nullptr;
    }
    const deft_tensor *set(const void *data, deft_dtype dtype, Sizes sizes, Sizes steps, std::int32_t ndim) {
      strides = steps;
      own.strides = strides.of;
      return set(data, dtype, sizes, ndim);
    }
  };

  /// Elements of a row of K. A row with scales is bytes: values, a float for each scale_columns of them,
  /// 16-bit columns.
  static std::int64_t keyRow(const deft_attention_facts &facts) {
    const std::int64_t values = facts.value_dim, rope = facts.key_dim - values;
    return facts.scale_columns == 0 ? facts.key_dim : values + 4 * (values / facts.scale_columns) + 2 * rope;
  }

  static const deft_tensor *rows(Tensor &tensor, const void *data, deft_dtype dtype, int queries,
                                 const deft_attention_facts &facts, std::int64_t dim, std::int64_t stride) {
    const Sizes shape{queries, facts.query_heads, dim};
    if (stride == 0)
      return tensor.set(data, dtype, shape, 3);
    return tensor.set(data, dtype, shape, {stride, dim, 1}, 3);
  }

  static const deft_tensor *cache(Tensor &tensor, const void *data, deft_dtype dtype,
                                  const deft_attention_facts &facts, std::int64_t dim,
                                  const std::optional<std::int64_t> &pages,
                                  const std::optional<CacheStrides> &given) {
    // -1 means unknown. The library reports an impossible number of pages.
    const std::int64_t count = !pages       ? -1
                               : *pages < 0 ? -2
                                            : *pages,
                       heads = facts.kv_heads, slots = facts.page_size;
    const CacheStrides by = given.value_or(CacheStrides{});
    Sizes shape{count, slots, heads, dim}, steps{by.page, by.token, by.head, 1};
    std::int32_t ndim = 4;
    if (slots == 0) {
      shape = {count, heads, dim};
      steps = {by.token, by.head, 1};
      ndim = 3;
    } else if (facts.token_stride != facts.head_stride * heads) { // heads of a page, not of a token
      shape = {count, heads, slots, dim};
      steps = {by.page, by.head, by.token, 1};
    }
    return given ? tensor.set(data, dtype, shape, steps, ndim) : tensor.set(data, dtype, shape, ndim);
  }

  Tensor q_, k_, kRope_, v_, table_, lists_, out_, lse_;
  deft_inputs inputs_ = {};
  deft_outputs outputs_ = {};
};

} // namespace detail

} // namespace deft
