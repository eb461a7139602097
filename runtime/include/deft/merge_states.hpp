#pragma once

#include <deft/gpu.hpp>
#include <deft/result.hpp>

#include <cstdint>
#include <memory>
#include <span>

/// Attention of the same queries over different tokens, computed apart (by other kernels, on other devices,
/// in another order), becomes their attention over all of these tokens.
///
///   const deft::State states[] = {{prefixOut, prefixLse}, {suffixOut, suffixLse}}; // as runs write them
///   deft::mergeStates({.rows = queries * heads, .dim = 128}, states, {.out = out, .lse = lse}).value();
///
/// The bits of a result depend on nothing but what is merged and its order.
namespace deft {

enum class StateType { F32, F16, BF16 };

/// Of all states that are merged, and of the result.
struct StateShape {
  std::int64_t rows = 0; ///< queries * query_heads
  int dim = 0;           ///< head_dim of `out`
  StateType type = StateType::BF16;
};

/// Memory of the host for mergeStates, of the GPU for GpuStateMerge.
struct State {
  const void *out = nullptr; ///< [row][dim], packed
  /// [row]: natural logarithm of the sum of the exponentials of the scores. Where it is -inf no token was
  /// seen, and `out` is not read. Of states of an attention with sinks exactly one may have them.
  const float *lse = nullptr;
};

/// `out` and `lse` may be those of a state, all of them; any other overlap is an error.
struct MergedState {
  void *out = nullptr;
  float *lse = nullptr; ///< null: not wanted
};

constexpr int kMostStates = 16; ///< of a call

/// At least one state. A row that none of them has seen a token of is (0, -inf).
DEFT_API Result<void> mergeStates(const StateShape &shape, std::span<const State> states,
                                  const MergedState &to);

/// A merge of states in a GPU's memory. Immutable and cheap to copy; all threads and streams may use one.
class DEFT_API GpuStateMerge {
public:
  /// The kernel is compiled by NVRTC, or taken out of the cache of kernels (DEFT_CACHE_DIR).
  static Result<GpuStateMerge> load(const Gpu &gpu, StateType type);

  /// Puts the merge on the stream: waits for nothing, allocates nothing, can be captured. `out` of all begins
  /// at a multiple of 16 bytes, and a row is a multiple of 16 bytes.
  Result<void> run(const StateShape &shape, std::span<const State> states, const MergedState &to,
                   GpuStream stream) const;

  struct Impl;

private:
  explicit GpuStateMerge(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

} // namespace deft
