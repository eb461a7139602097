#pragma once

#include "deft/ptx/convert.cuh"
#include "deft/types.cuh"

/// A sink is a logit that only the denominator of a row sees. It joins once, where the row is finished: in an
/// item that writes the output, else in the merge.
namespace deft {

template <class Variant>
concept HasSink = requires(const typename Variant::Params &params) { Variant::sink(params, 0, 0); };

/// A row with its sink.
struct SunkRow {
  float share; ///< that its tokens keep of it: the factor of what was an average of them
  float lse;   ///< of the sink, too
};

/// As two parts of a row are merged, the second of which is 0 everywhere. A row without tokens has the
/// logarithm of its sink.
__device__ __forceinline__ SunkRow sunk(float lse, float sink) {
  const float top = fmaxf(lse, sink);
  const float shift = top == -kInfinity ? 0.f : top; // no token, and a sink of -inf
  const float own = ptx::exp2Fast((lse - shift) * kLog2e);
  const float total = own + ptx::exp2Fast((sink - shift) * kLog2e);
  return {total > 0.f ? __fdividef(own, total) : 0.f, shift + ptx::log2Fast(total) * kLn2};
}

/// What a merge asks of sinks: nothing,
struct NoSinks {
  static constexpr bool kAreThere = false;
};

/// or that of each query head.
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
