#pragma once

#include "deft/common/row_place.cuh"
#include "deft/common/warp_rows.cuh"
#include "deft/union_abi.h"

/// Rows that attend to the tokens of unions (abi::Unions). Each token has a bit for each of its readers.
namespace deft {

/// The same config with tokens in runs. Except for visibility, its rows work for unions as well.
template <class Config> struct OfRuns : Config {
  static constexpr bool kReadsUnions = false;
};

/// As for runs, except for visibility: TokenRecords::visible has a bit for each query of the item.
template <class Config, class Variant>
  requires kReadsUnions<Config>
class WarpRows<Config, Variant> : public WarpRows<OfRuns<Config>, Variant> {
  using Base = WarpRows<OfRuns<Config>, Variant>;
  using Params = typename Variant::Params;
  using Facts = TokenFacts<Config, Variant>;

public:
  using typename Base::Visibility;

  __device__ __forceinline__ WarpRows(const abi::AttendArgs &args, const Params &params,
                                      const abi::Item &item, int kvHead, int firstRow)
      : Base(args, params, item, kvHead, firstRow), args_(args), queryBegin_(item.queryBegin),
        lane_(threadIdx.x % 32) {
    // A warp whose rows are all beyond the item sees no token.
    queries_ =
        Base::isReal(firstRow) ? ~0u >> (32 - (Base::queryEnd() - Base::queryLo())) << Base::queryLo() : 0u;
#pragma unroll
    for (int r = 0; r < 2; ++r)
      query_[r] = 1u << Base::clamped(Base::row(r)) / Config::kRatio;
  }

  /// Like Base's; it also keeps the rows for the mask, since Base's are private.
  __device__ __forceinline__ void setQueries(const int (&qPos)[2], const int (&query)[2]) {
    if constexpr (Variant::kHasMask) {
#pragma unroll
      for (int r = 0; r < 2; ++r)
        hookRow_[r] = Variant::row(Base::params(), qPos[r], Base::headOf(Base::clamped(Base::row(r))),
                                   Base::kvHead(), query[r]);
    }
    Base::setQueries(qPos, query);
  }

  __device__ __forceinline__ void loadQueryFacts() {
    if constexpr (Base::kNeedsRow) {
      int qPos[2], query[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int row = Base::clamped(Base::row(r));
        qPos[r] = args_.queryPos[queryBegin_ + row / Config::kRatio];
        query[r] = Base::callerIndex(row);
      }
      setQueries(qPos, query);
    }
  }

  using Base::visibility;
  __device__ __forceinline__ Visibility visibility(const TokenRecords &tokens, int group) const {
    const int token = group * 16 + lane_ % 16;
    const unsigned readers = tokens.visible[token] & queries_;
    const bool any = __any_sync(~0u, readers != 0u);
    const Visibility seen =
        Base::visibility(__all_sync(~0u, readers == queries_), Base::boundsOf(tokens, token));
    return any ? seen : Base::kHidden;
  }

  __device__ __forceinline__ void hide(const TokenRecords &tokens, int group, Fragment<2> &s) const {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const int first = group * 16 + n * 8 + fragmentColumn(lane_);
      const uint2 readers = *reinterpret_cast<const uint2 *>(tokens.visible + first);
      s.forEachOfTile(n, [&](float &x, int r, int column) {
        bool isVisible = ((column % 2 == 0 ? readers.x : readers.y) & query_[r]) != 0u;
        if constexpr (Variant::kHasMask) {
          const int token = first + column % 2;
          isVisible &= Facts(tokens, token, tokens.position[token], tokens.depth[token])
                           .mask(Base::params(), hookRow_[r], Base::kvHead());
        }
        x = isVisible ? x : -kInfinity;
      });
    }
  }

private:
  const abi::AttendArgs &args_;
  const int queryBegin_, lane_;
  unsigned queries_;  ///< the bits of the queries in the warp's rows
  unsigned query_[2]; ///< the bit of each row's query
  typename Variant::Row hookRow_[2];
};

/// The unions of a launch that reads unions.
__device__ __forceinline__ const abi::Unions &unionsOf(const abi::AttendArgs &args) {
  return *reinterpret_cast<const abi::Unions *>(args.selected + 1);
}

} // namespace deft
