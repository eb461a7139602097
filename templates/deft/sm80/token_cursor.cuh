#pragma once

#include "deft/abi.h"
#include "deft/common/row_place.cuh"
#include "deft/common/warp_rows.cuh"

/// Finds the tokens of a tile in an item's runs: each token's place in the cache and its viewers.
namespace deft::sm80 {

/// One thread's walk over the tokens of an item, one in each tile. `fetch` starts the loads and the other
/// calls use them, so a caller can do the work of a tile in between.
template <class Config> class TokenCursor {
public:
  __device__ __forceinline__ TokenCursor(const abi::AttendArgs &args, const abi::Item &item, int first)
      : runs_(args.runs + item.runBegin), lastRun_(item.runCount - 1), tokens_(item.tokens), next_(first) {
    run_ = runs_[0];
  }

  /// Fetches the thread's next token; after the item's end it stays on the last one, hidden.
  __device__ __forceinline__ void fetch(const abi::AttendArgs &args) {
    const int token = next_ < tokens_ ? next_ : tokens_ - 1;
    hidden_ = next_ >= tokens_;
    next_ += Config::kTileKv;
    if (token >= run_.begin + run_.tokens)
      seek(token);
    place_ = run_.location + (token - run_.begin);
    position_ = run_.position + (token - run_.begin);
    if constexpr (Config::kPageSize > 0)
      page_ = args.pageTable[static_cast<unsigned>(place_) / Config::kPageSize];
  }

  /// The place of the token's row of K or V.
  __device__ __forceinline__ unsigned place(const abi::CachePlaces &cache, int kvHead) const {
    if constexpr (Config::kPageSize > 0)
      return tokenPlace<Config>(cache, kvHead, page_,
                                static_cast<int>(static_cast<unsigned>(place_) % Config::kPageSize));
    else
      return tokenPlace<Config>(cache, kvHead, place_, 0);
  }

  /// The token's slot of the cache.
  __device__ __forceinline__ long long slot() const {
    if constexpr (Config::kPageSize > 0)
      return static_cast<long long>(page_) * Config::kPageSize +
             static_cast<unsigned>(place_) % Config::kPageSize;
    else
      return place_;
  }

  __device__ __forceinline__ void record(const TokenRecords &records, int index) const {
    const int firstQuery = run_.queryBegin + (run_.slope != 0 ? place_ - run_.location : 0);
    records.visible[index] = hidden_ ? 0u : static_cast<unsigned>(firstQuery | run_.queryEnd << 16);
    records.position[index] = position_;
    records.depth[index] = run_.depth;
  }

private:
  /// Runs are not empty, so a token `stride` further on is at most that many runs away. From the next run on,
  /// the stride doubles: that takes one load if runs are longer than a tile, and at most twice the
  /// bisection's loads if every token has its own run.
  __device__ __forceinline__ void seek(int token) {
    int low = index_ + 1, stride = 1;
    while (low + stride <= lastRun_ && runs_[low + stride].begin <= token) {
      low += stride;
      stride *= 2;
    }
    int high = low + stride - 1;
    high = high < lastRun_ ? high : lastRun_;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (runs_[middle].begin <= token)
        low = middle;
      else
        high = middle - 1;
    }
    index_ = low;
    run_ = runs_[low];
  }

  const abi::Run *runs_;
  int lastRun_;
  int tokens_;
  int next_;
  int index_ = 0;
  abi::Run run_;
  int place_ = 0, position_ = 0, page_ = 0;
  bool hidden_ = false;
};

} // namespace deft::sm80
