#pragma once

#include "deft/abi.h"
#include "deft/common/capped_score.cuh"
#include "deft/common/fragment.cuh"
#include "deft/hook_math.cuh"
#include "deft/ptx/forget.cuh"
#include "deft/types.cuh"

/// Scores of certain forms, computed in fewer steps than their hook describes (ScoreForm).
namespace deft {

/// The records of a tile's tokens in shared memory: one array per field, so that a warp reads a field of 16
/// tokens without bank conflicts.
struct TokenRecords {
  unsigned *visible; ///< the item's queries that see the token: first | end << 16
  int *position;
  int *depth;
  int *elements; ///< [array over tokens][token], for variants with such arrays (token_values.cuh)

  static constexpr int kBytes = 12; ///< for a token, without these

  __device__ __forceinline__ TokenRecords(void *base, int tokens)
      : visible(static_cast<unsigned *>(base)), position(static_cast<int *>(base) + tokens),
        depth(static_cast<int *>(base) + 2 * tokens), elements(static_cast<int *>(base) + 3 * tokens) {}
};

/// The form of scores; without a score function they are scaled products.
template <class Variant, bool kHasScore = Variant::kHasScore> struct FormOf {
  static constexpr bool kIsCapped = false, kHasOneCap = false, kIsSloped = false, kIsKnown = true;
};
template <class Variant> struct FormOf<Variant, true> {
  static constexpr bool kIsCapped = Variant::kIsCapped, kHasOneCap = Variant::kHasOneCap,
                        kIsSloped = Variant::kIsSloped, kIsKnown = kIsCapped || kIsSloped;
};

/// For a thread's two rows. Columns of a fragment are tokens.
template <class Config, class Variant> class FormedScores {
  using Form = FormOf<Variant>;

public:
  /// If scores are products with at most a slope, the scale is folded into the exponent. That needs a
  /// positive scale: otherwise the largest product is not the largest score.
  static constexpr bool kFoldScale =
      Form::kIsKnown && !Form::kIsCapped && !Variant::kSigmoid && Variant::kScale > 0.f;
  /// Whether scores may be capped while their weights are made (areSmall). With more than 128 columns, a cap
  /// for each head or a mask, that would need too many registers.
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
          capped_[r].keep([&](float x) { return qPos[r] < -1 ? 0.f : x; }); // never, but unknown to compilers
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

  /// Turns products into capped scores.
  template <int kTiles> __device__ __forceinline__ void cap(Fragment<kTiles> &s) const {
    int largest[2];
    findLargest(s, largest);
    cap(s, largest);
  }

  /// `largest` comes from findLargest(). A score alone decides how it is computed, so that a row's bits do
  /// not depend on other rows. Together they decide only whether the slower way is needed at all.
  template <int kTiles>
  __device__ __forceinline__ void cap(Fragment<kTiles> &s, const int (&largest)[2]) const {
    bool isNear = capped_[0].isNear(__int_as_float(largest[0]));
    if constexpr (!Form::kHasOneCap)
      isNear &= capped_[1].isNear(__int_as_float(largest[1]));
    const bool isAnyFar = !__all_sync(~0u, isNear);
    const auto far = [&](float x, int r) { return cappedFar(cap_[capOf(r)], doubleRate_[capOf(r)] * x); };
    if constexpr (Config::kValueDim > 128) { // the same with fewer registers, but a branch for each score
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

  /// Like cap(), if caps are late and this function is rarely called. It recomputes the cap's values, so that
  /// they hold no registers. All scores of the warp are computed in the same way, which makes the code
  /// shorter.
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

  /// The largest square of products for each of the thread's two rows, or for both if they share a cap.
  template <int kTiles>
  __device__ __forceinline__ void findLargest(const Fragment<kTiles> &s, int (&largest)[2]) const {
    largest[0] = largest[1] = 0;
    s.forEach([&](float x, int r, int) { largest[capOf(r)] = largerSquare(largest[capOf(r)], x * x); });
  }

  /// Whether all products of the warp are small (SmallScore), with `room` for scores. Needs a single cap.
  __device__ __forceinline__ bool areSmall(const int (&largest)[2], float room) const {
    return __all_sync(~0u, small_.isSmall(largest[0], room));
  }
  __device__ __forceinline__ const SmallScore &small() const { return small_; }

  /// `first` is the thread's first token. A token's distance to the origin of the first row is converted to
  /// float once, then the difference of the origins is added: exact up to 2^24.
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

  /// For a whole tile whose positions rise by one from `position`, the thread's first. The term that all
  /// scores of a row share is returned separately.
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
  SmallScore small_; ///< for the first row
  float cap_[2], doubleRate_[2], slope_[2];
  int origin_[2];
  float fromOrigin_; ///< the distance from the first row's origin to the second's
};

} // namespace deft
