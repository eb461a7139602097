#pragma once

#include "deft/types.cuh"

/// The hook `output`: it transforms the elements of a finished row. An item that writes the output calls it,
/// otherwise the merge does.
namespace deft {

template <class Variant>
concept HasOutput =
    requires(const typename Variant::Params &params) { Variant::output(params, 0.f, 0, 0, 0, 0, 0); };

/// The hook's data about a row, common to all its elements.
struct FinishedRow {
  int qPos, head, kvHead;
  int query; ///< caller's index

  template <class Variant>
  __device__ __forceinline__ float element(const typename Variant::Params &params, float x, int dim) const {
    return Variant::output(params, x, dim, qPos, head, kvHead, query);
  }
  /// Four elements from `dim` on.
  template <class Variant>
  __device__ __forceinline__ float4 elements(const typename Variant::Params &params, const float4 &x,
                                             int dim) const {
    return make_float4(element<Variant>(params, x.x, dim), element<Variant>(params, x.y, dim + 1),
                       element<Variant>(params, x.z, dim + 2), element<Variant>(params, x.w, dim + 3));
  }
};

/// The output hook in a merge: either none,
struct NoOutputHook {
  static constexpr bool kIsThere = false;
};

/// or one call for each element.
template <class Config, class Variant> class OutputHook {
public:
  static constexpr bool kIsThere = true;

  __device__ __forceinline__ explicit OutputHook(const typename Variant::Params &params) : params_(params) {}

  __device__ __forceinline__ float4 operator()(const float4 &x, int dim, int qPos, int head,
                                               int query) const {
    const int kvHead = kvHeadForHooks<Config>(head / Config::kRatio);
    return FinishedRow{qPos, head, kvHead, query}.template elements<Variant>(params_, x, dim);
  }

private:
  const typename Variant::Params &params_;
};

} // namespace deft
