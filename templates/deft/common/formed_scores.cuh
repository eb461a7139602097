#pragma once

#include "deft/abi.h"
#include "deft/common/capped_score.cuh"
#include "deft/common/fragment.cuh"
#include "deft/hook_math.cuh"
#include "deft/ptx/forget.cuh"
#include "deft/types.cuh"

/// Scores of the forms that are computed in shorter ways than their hook says (ScoreForm).
namespace deft {

/// The records of a tile's tokens in shared memory, one array a field, so that a warp reads a field of
/// 16 tokens without conflicts.
struct TokenRecords {
  unsigned *visible; ///< queries of the item that see the token: first | end << 16, nobody beyond the item
  int *position;
  int *depth;
  int *elements; ///< [array over tokens][token], of variants that have such arrays (token_values.cuh)

  static constexpr int kBytes = 12; ///< a token's, without these

  __device__ __forceinline__ TokenRecords(void *base, int tokens)
      : visible(static_cast<unsigned *>(base)), position(static_cast<int *>(base) + tokens),
        depth(static_cast<int *>(base) + 2 * tokens), elements(static_cast<int *>(base) + 3 * tokens) {}
};

/// Of which form scores are; without a score function they are scaled products.
template <class Variant, bool kHasScore = Variant::kHasScore> struct FormOf {
  static constexpr bool kIsCapped = false, kHasOneCap = false, kIsSloped = false, kIsKnown = true;
};
template <class Variant> struct FormOf<Variant, true> {
  static constexpr bool kIsCapped = Variant::kIsCapped, kHasOneCap = Variant::kHasOneCap,
                        kIsSloped = Variant::kIsSloped, kIsKnown = kIsCapped || kIsSloped;
};

/// For a thread's two rows. Columns of a fragment of scores are tokens.
template <class Config, class Variant> class FormedScores {
  using Form = FormOf<Variant>;

public:
  /// Where scores are products with at most a slope, the scale is folded into the exponent; it cannot be
  /// where it is not positive, because then the largest product is not the largest score.
  static constexpr bool kFoldScale =
      Form::kIsKnown && !Form::kIsCapped && !Variant::kSigmoid && Variant::kScale > 0.f;
  /// Whether scores may be capped when their weights are made (areSmall). Above 128 columns, with a cap for
  /// each head or with a mask there are too few registers for it.
  static constexpr bool kCapsLate = Form::kHasOneCap && Form::kIsCapped && !Form::kIsSloped &&
                                    !Variant::kSigmoid && !Variant::kHasMask && Config::kValueDim <= 128;

  __device__ __forceinline__ void set(const typename Variant::Params &params,
                                      const typename Variant::Row (&rows)[2], const int (&qPos)[2],
                                      int kvHead) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      ScoreForm form{};
      if constexpr (Form::kIsKnown)
        form = Variant::form(params, rows[r], kvHead);
      if constexpr (Form::kIsCapped) {
        const float rate = form.rate * Variant::kScale;
        capped_[r] = CappedScore(form.cap, rate);
        if constexpr (!kCapsLate)
          capped_[r].keep([&](float x) { return qPos[r] < -1 ? 0.f : x; }); // no position is, but who knows
        else if (r == 0)
          small_ = SmallScore(form.cap, rate);
        cap_[r] = form.cap;
        doubleRate_[r] = 2.f * kLog2e * rate;
      }
      if constexpr (Form::kIsSloped) {
        slope_[r] = kFoldScale ? form.slope / Variant::kScale : form.slope;
        origin_[r] = form.origin;
      }
    }
    if constexpr (Form::kIsSloped)
      fromOrigin_ = static_cast<float>(origin_[0] - origin_[1]);
  }

  /// From products to capped scores.
  template <int kTiles> __device__ __forceinline__ void cap(Fragment<kTiles> &s) const {
    int largest[2];
    findLargest(s, largest);
    cap(s, largest);
  }

  /// Of which findLargest() tells. Each score comes in a way that it alone decides on, so that no row's bits
  /// depend on other rows; all of them decide only whether the dearer way must be gone at all.
  template <int kTiles>
  __device__ __forceinline__ void cap(Fragment<kTiles> &s, const int (&largest)[2]) const {
    bool isNear = capped_[0].isNear(__int_as_float(largest[0]));
    if constexpr (!Form::kHasOneCap)
      isNear &= capped_[1].isNear(__int_as_float(largest[1]));
    const bool isAnyFar = !__all_sync(~0u, isNear);
    const auto far = [&](float x, int r) { return cappedFar(cap_[capOf(r)], doubleRate_[capOf(r)] * x); };
    if constexpr (Config::kValueDim > 128) { // the same in fewer registers, and with a branch for each
      s.forEach([&](float &x, int r, int) {
        float value = capped(r).near(x, x * x);
        if (isAnyFar && !capped(r).isNear(x * x))
          value = far(x, r);
        x = value;
      });
    } else if (isAnyFar) {
      s.forEach([&](float &x, int r, int) {
        const float value = far(x, r);
        x = capped(r).isNear(x * x) ? capped(r).near(x, x * x) : value;
      });
    } else {
      s.forEach([&](float &x, int r, int) { x = capped(r).near(x, x * x); });
    }
  }

  /// As cap(), where caps are late and this way is rarely gone: what it takes of the cap is made anew, so
  /// that no registers hold it, and all of the warp's scores come in the same way, so that there is less of
  /// it.
  template <int kTiles>
  __device__ __forceinline__ void capAnew(Fragment<kTiles> &s, const int (&largest)[2]) const {
    float doubleRate = doubleRate_[0];
    ptx::forgetHere(doubleRate);
    const CappedScore capped(cap_[0], doubleRate * (0.5f * kLn2));
    if (__all_sync(~0u, capped.isNear(__int_as_float(largest[0]))))
      s.forEach([&](float &x, int, int) { x = capped.near(x, x * x); });
    else
      s.forEach([&](float &x, int, int) { x = cappedFar(cap_[0], doubleRate * x); });
  }

  /// The largest square of products for each of the thread's two rows, or of both where they have one cap.
  template <int kTiles>
  __device__ __forceinline__ void findLargest(const Fragment<kTiles> &s, int (&largest)[2]) const {
    largest[0] = largest[1] = 0;
    s.forEach([&](float x, int r, int) { largest[capOf(r)] = largerSquare(largest[capOf(r)], x * x); });
  }

  /// Whether all of the warp's products are small (SmallScore), with `room` for scores. One cap is asked.
  __device__ __forceinline__ bool areSmall(const int (&largest)[2], float room) const {
    return __all_sync(~0u, small_.isSmall(largest[0], room));
  }
  __device__ __forceinline__ const SmallScore &small() const { return small_; }

  /// `first` is the thread's first token. A token's distance to the origin of the thread's first row is made
  /// a float once, and the difference of the origins is added to it: exact up to 2^24.
  template <int kTiles>
  __device__ __forceinline__ void addSlopes(const TokenRecords &tokens, int first,
                                            Fragment<kTiles> &s) const {
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
      const int2 position = *reinterpret_cast<const int2 *>(tokens.position + first + n * 8);
      const float distance[2] = {static_cast<float>(position.x - origin_[0]),
                                 static_cast<float>(position.y - origin_[0])};
      s.forEachOfTile(n, [&](float &x, int r, int token) {
        x = fmaf(slope_[r], r == 0 ? distance[token % 2] : distance[token % 2] + fromOrigin_, x);
      });
    }
  }

  /// For a whole tile whose positions rise by one from `position`, the thread's first. What is to be added to
  /// all scores of a row comes apart.
  template <int kTiles>
  __device__ __forceinline__ void addRising(int position, Fragment<kTiles> &s, float (&common)[2]) const {
#pragma unroll
    for (int r = 0; r < 2; ++r)
      common[r] = slope_[r] * static_cast<float>(position - origin_[r]);
    s.forEach([&](float &x, int r, int token) {
      if (token > 0)
        x = fmaf(slope_[r], static_cast<float>(token), x);
    });
  }

private:
  static __device__ __forceinline__ int capOf(int r) { return Form::kHasOneCap ? 0 : r; }
  __device__ __forceinline__ const CappedScore &capped(int r) const { return capped_[capOf(r)]; }

  CappedScore capped_[2];
  SmallScore small_; ///< of the first row
  float cap_[2], doubleRate_[2], slope_[2];
  int origin_[2];
  float fromOrigin_; ///< of the first row's origin to the second's
};

} // namespace deft
