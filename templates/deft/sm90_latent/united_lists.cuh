#pragma once

#include "deft/sm90/united_lists.cuh"
#include "deft/sm90_latent/attend.cuh"

/// Attention to the tokens of unions of lists from the caller. An item has several queries. The device has
/// written its tokens in the unions (union_abi.h, in the form for family sm90).
namespace deft::sm90_latent {

template <class Config, class Variant>
  requires kReadsUnions<Config>
class UnitTokens<Config, Variant, true> {
public:
  __device__ __forceinline__ UnitTokens(const abi::AttendArgs &args, const abi::Item &item, int lane)
      : slots_(unionsOf(args).places), readers_(unionsOf(args).readers), begin_(item.commonTokens),
        lane_(lane) {}

  __device__ __forceinline__ void find(int index, int tokens, sm90::Token (&token)[2]) const {
    const bool areThere = begin_ != abi::kNoTokens;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int at = index * Config::kTileKv + half * 32 + lane_;
      const int from = begin_ + min(at, tokens - 1);
      token[half] = {areThere ? slots_[from] : 0, 0, 0, kUnseen<Config>};
      if (areThere && at < tokens)
        token[half].visible = Variant::kHasMask ? readers_[from] | sm90::kRead : readers_[from];
    }
  }

private:
  const int *slots_;
  const unsigned *readers_;
  const int begin_, lane_;
};

} // namespace deft::sm90_latent
