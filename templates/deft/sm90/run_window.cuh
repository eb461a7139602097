#pragma once

#include "deft/abi.h"

/// Finds an item's tokens in its runs.
namespace deft::sm90 {

/// A lane's data about a token.
struct Token {
  int place, position, depth;
  unsigned visible; ///< in the format of TokenRecords
};

/// The last word of abi::Run has the slope in its low bits, and dealtBegin above.
__device__ __forceinline__ bool hasSlope(int word) { return (word & 3) != 0; }
__device__ __forceinline__ int dealtBeginOf(int word) { return word >> 2; }

/// The viewers of a run in one word: an interval of queries as for a token, and in the highest bit whether it
/// has a slope. Query numbers are far below 2^15. `queryBegin` may refer to a token before the run and be
/// negative: the sum is correct within the run.
__device__ __forceinline__ unsigned viewersOf(int queryBegin, int queryEnd, bool hasSlope) {
  return static_cast<unsigned>((queryEnd << 16) + queryBegin) | (hasSlope ? 1u << 31 : 0u);
}
/// The viewers of the token `token` places after the one that `queryBegin` refers to.
__device__ __forceinline__ unsigned visibleAt(unsigned viewers, int token) {
  const int slope = static_cast<int>(viewers) >> 31; // all bits, or none
  return (viewers + static_cast<unsigned>(token & slope)) & 0x7fffffff;
}

/// An item's runs, 32 at a time, one per lane, so that finding a run needs no load.
class RunWindow {
public:
  __device__ __forceinline__ RunWindow(const abi::Run *runs, int count, int lane)
      : runs_(runs), count_(count), lane_(lane) {
    load();
  }

  /// Finds the tokens first + lane, up to `last`; first + 31 must not decrease between calls.
  __device__ __forceinline__ Token find(int first, int last) {
    const int at = min(first + lane_, last);
    first = min(first, last);
    last = min(first + 31, last);
    Token token{};
    for (;;) {
      const int end = __shfl_sync(~0u, begin_ + tokens_, 31);
      const int low = __popc(__ballot_sync(~0u, begin_ <= first)) - 1;
      const int high = __popc(__ballot_sync(~0u, begin_ <= last)) - 1;
      int run = max(low, 0);
      if (low < high)
#pragma unroll 1
        for (int step = 16; step > 0; step /= 2) {
          const int next = min(run + step, 31);
          if (__shfl_sync(~0u, begin_, next) <= at)
            run = next;
        }
      const int into = at - __shfl_sync(~0u, begin_, run);
      Token found{};
      found.place = __shfl_sync(~0u, location_, run) + into;
      found.position = __shfl_sync(~0u, position_, run) + into;
      found.depth = __shfl_sync(~0u, depth_, run);
      found.visible = visibleAt(__shfl_sync(~0u, viewers_, run), into);
      if (into >= 0 && at < end)
        token = found;
      if (last < end)
        return token;
      base_ += 32;
      load();
    }
  }

private:
  __device__ __forceinline__ void load() {
    const int at = base_ + lane_;
    begin_ = 0x7fffffff; // after the last run
    tokens_ = location_ = position_ = depth_ = 0;
    viewers_ = 0;
    if (at < count_) {
      const int4 *from = reinterpret_cast<const int4 *>(runs_ + at);
      const int4 low = from[0], high = from[1];
      begin_ = low.x;
      tokens_ = low.y;
      location_ = low.z;
      position_ = low.w;
      depth_ = high.x;
      viewers_ = viewersOf(high.y, high.z, hasSlope(high.w));
    }
  }

  const abi::Run *runs_;
  int count_, lane_;
  int base_ = 0;
  int begin_, tokens_, location_, position_, depth_;
  unsigned viewers_;
};

} // namespace deft::sm90
