#pragma once

#include "deft/ptx/convert.cuh"
#include "deft/types.cuh"

/// A sink is a logit that counts only in a row's denominator. It is added once, when the row is finished: in
/// an item that writes the output, otherwise in the merge.
namespace deft {

template <class Variant>
concept HasSink = requires(const typename Variant::Params &params) { Variant::sink(params, 0, 0); };

/// A row after its sink was added.
struct SunkRow {
  float share; ///< the share of the tokens: the factor for their average
  float lse;   ///< includes the sink
};

/// Like a merge of two parts of a row, where all values of the second part are 0. For a row without tokens,
/// lse is the sink.
__device__ __forceinline__ SunkRow sunk(float lse, float sink) {
  const float top = fmaxf(lse, sink);
  const float shift = top == -kInfinity ? 0.f : top; // no token, and a sink of -inf
  const float own = ptx::exp2Fast((lse - shift) * kLog2e);
  const float total = own + ptx::exp2Fast((sink - shift) * kLog2e);
  return {total > 0.f ? __fdividef(own, total) : 0.f, shift + ptx::log2Fast(total) * kLn2};
}

/// Sinks in a merge: either none,
struct NoSinks {
  static constexpr bool kAreThere = false;
};

/// or one for each query head.
template <class Config, class Variant> class Sinks {
public:
  static constexpr bool kAreThere = true;

  __device__ __forceinline__ explicit Sinks(const typename Variant::Params &params) : params_(params) {}

  __device__ __forceinline__ float operator()(int head) const {
    return Variant::sink(params_, head, kvHeadForHooks<Config>(head / Config::kRatio));
  }

private:
  const typename Variant::Params &params_;
};

} // namespace deft
