#pragma once

#include "deft/common/given_lists.cuh"
#include "deft/common/row_place.cuh"
#include "deft/ptx/cp_async_or_zero.cuh"
#include "deft/select_abi.h"
#include "deft/sm80/token_cursor.cuh"

/// Attention to the tokens of lists from the caller.
namespace deft::sm80_latent {

/// The place of a token that a list does not have.
constexpr unsigned kNowhere = ~0u;

/// Like sm80::TokenCursor, for an item's part of its query's list (select_abi.h defines such items).
template <class Config> class GivenCursor {
public:
  __device__ __forceinline__ GivenCursor(const abi::AttendArgs &args, const abi::Item &item, int first)
      : list_(args.pageTable + static_cast<long long>(item.runBegin) * args.selected->budget +
              item.commonTokens),
        tokens_(item.tokens), next_(first) {}

  __device__ __forceinline__ void fetch(const abi::AttendArgs &) {
    slot_ = next_ < tokens_ ? list_[next_] : -1;
    next_ += Config::kTileKv;
  }

  __device__ __forceinline__ unsigned place(const abi::CachePlaces &cache, int kvHead) const {
    if (slot_ < 0)
      return kNowhere;
    if constexpr (Config::kPageSize > 0) {
      const unsigned token = static_cast<unsigned>(slot_);
      return tokenPlace<Config>(cache, kvHead, static_cast<int>(token / Config::kPageSize),
                                static_cast<int>(token % Config::kPageSize));
    } else {
      return tokenPlace<Config>(cache, kvHead, slot_, 0);
    }
  }

  __device__ __forceinline__ bool isNone() const { return slot_ < 0; }
  __device__ __forceinline__ long long slot() const { return slot_ < 0 ? 0 : slot_; }

  __device__ __forceinline__ void record(const TokenRecords &records, int index) const {
    records.visible[index] = slot_ < 0 ? 0u : 1u << 16; // the item's only query
    records.position[index] = 0;                        // no hook reads it
    records.depth[index] = 0;
  }

private:
  const int *list_;
  int tokens_, next_;
  int slot_ = -1;
};

/// The cursor over an item's tokens for the config.
template <class Config, bool kIsGiven = kListsAreGiven<Config>> struct CursorOf {
  using Type = sm80::TokenCursor<Config>;
};
template <class Config> struct CursorOf<Config, true> {
  using Type = GivenCursor<Config>;
};

} // namespace deft::sm80_latent
