#pragma once

#include <deft/c/merge_states.h>
#include <deft/gpu.hpp>

/// Merges attention of the same queries over different tokens, computed by other kernels, on other devices or
/// in another order, into their attention over all of these tokens.
///
///   const deft::State states[] = {{prefixOut, prefixLse}, {suffixOut, suffixLse}}; // as runs write them
///   deft::mergeStates({.rows = queries * heads, .dim = 128}, states, {.out = out, .lse = lse}).value();
///
/// The bits of a result depend only on the merged states and their order.
namespace deft {

enum class StateType { F32 = DEFT_F32, F16 = DEFT_F16, BF16 = DEFT_BF16 };

/// The shape of all merged states and of the result.
struct StateShape {
  std::int64_t rows = 0; ///< queries * query_heads
  int dim = 0;           ///< head_dim of `out`
  StateType type = StateType::BF16;
};

/// In host memory for mergeStates, in the GPU's for GpuStateMerge.
struct State {
  const void *out = nullptr; ///< [row][dim], packed
  /// [row]: natural logarithm of the sum of the exponentials of the scores. If it is -inf, the row saw no
  /// token, and `out` is not read. If the attention has sinks, exactly one state may contain them.
  const float *lse = nullptr;
};

/// May be exactly one of the states (both `out` and `lse`); any other overlap is an error.
struct MergedState {
  void *out = nullptr;
  float *lse = nullptr; ///< null: not written
};

constexpr int kMostStates = DEFT_MOST_STATES; ///< in one call

namespace detail {

/// States as tensors, for one call.
class StatesOfC {
public:
  StatesOfC(const StateShape &shape, std::span<const State> states, const MergedState &to)
      : sizes_{shape.rows, 1, shape.dim}, dtype_(static_cast<deft_dtype>(shape.type)),
        tensors_(2 * (states.size() + 1)) {
    for (const State &state : states)
      states_.push_back(add(state.out, state.lse));
    to_ = add(to.out, to.lse);
  }
  StatesOfC(const StatesOfC &) = delete;
  StatesOfC &operator=(const StatesOfC &) = delete;

  const deft_state *states() const { return states_.empty() ? &to_ : states_.data(); }
  std::size_t count() const { return states_.size(); }
  const deft_state *to() const { return &to_; }

private:
  const deft_tensor *add(const void *data, deft_dtype dtype, std::int32_t ndim) {
    deft_tensor &tensor = tensors_[used_++];
    tensor.size = sizeof tensor;
    tensor.data = const_cast<void *>(data);
    tensor.shape = sizes_;
    tensor.dtype = dtype;
    tensor.ndim = ndim;
    return data || sizes_[0] == 0 ? &tensor : nullptr;
  }
  deft_state add(const void *out, const float *lse) { return {add(out, dtype_, 3), add(lse, DEFT_F32, 2)}; }

  std::int64_t sizes_[3]; // rows are queries of one head
  deft_dtype dtype_;
  std::vector<deft_tensor> tensors_;
  std::size_t used_ = 0;
  std::vector<deft_state> states_;
  deft_state to_ = {};
};

} // namespace detail

/// Merges at least one state. A row for which no state saw a token becomes (0, -inf).
inline Result<void> mergeStates(const StateShape &shape, std::span<const State> states,
                                const MergedState &to) {
  const detail::StatesOfC own(shape, states, to);
  return detail::done(deft_merge_states(own.states(), own.count(), own.to()));
}

/// A merge of states in a GPU's memory. Immutable and cheap to copy; all threads and streams may use it.
class GpuStateMerge {
public:
  /// NVRTC compiles the kernel, or it comes from the cache of kernels (DEFT_CACHE_DIR).
  static Result<GpuStateMerge> load(const Gpu &gpu, StateType type) {
    return detail::made<GpuStateMerge, deft_gpu_state_merge>(
        [&](auto to) { return deft_gpu_state_merge_load(gpu.handle(), static_cast<deft_dtype>(type), to); });
  }
  /// Takes a handle of <deft/deft.h>.
  explicit GpuStateMerge(deft_gpu_state_merge *handle) : handle_(handle, deft_gpu_state_merge_destroy) {}

  /// Puts the merge on the stream. Does not wait or allocate, and can be captured. Every `out` must begin at
  /// a multiple of 16 bytes, and a row must be a multiple of 16 bytes.
  Result<void> run(const StateShape &shape, std::span<const State> states, const MergedState &to,
                   GpuStream stream) const {
    const detail::StatesOfC own(shape, states, to);
    return detail::done(deft_gpu_state_merge_run(handle_.get(), own.states(), own.count(), own.to(), stream));
  }

private:
  std::shared_ptr<const deft_gpu_state_merge> handle_;
};

} // namespace deft
