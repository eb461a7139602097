#pragma once

#include "deft/common/key_hook.cuh"
#include "deft/common/warp_rows.cuh"
#include "deft/select/path_places.cuh"
#include "deft/sm80/token_cursor.cuh"

/// Sparse attention: an item's tokens are a part of a list (abi::Selected); each KV head has its own list.
namespace deft::sm80 {

/// Whether a kernel reads lists; not by default.
template <class Config> constexpr bool kIsSparse = requires { requires Config::kLists > 0; };

/// How an item is split into units. Usually there is one for each KV head, whose rows read one list. If each
/// row has its own list, there is one for each query head, which writes only this head's row.
template <class Config, bool kSparse = kIsSparse<Config>> struct UnitsOf {
  static constexpr int kOfHead = 1;
};
template <class Config> struct UnitsOf<Config, true> {
  static constexpr int kOfHead = Config::kLists > Config::kKvHeads ? Config::kRatio : 1;
  static_assert(Config::kLists == Config::kQueryHeads || Config::kKvHeads % Config::kLists == 0,
                "a row reads one list");
};

/// For an item of a sparse plan: its query's list for a unit, and the position in it where the item begins.
/// Such an item has one query, whose caller's index replaces the first run. Its commonTokens counts the
/// earlier tokens of the list. So the list can be loaded without waiting for other data.
template <class Config> struct ListPart {
  static constexpr int kUnits = Config::kKvHeads * UnitsOf<Config>::kOfHead; ///< units of an item
  int list, first;

  __device__ __forceinline__ ListPart(const abi::Item &item, int unit)
      : list(item.runBegin * Config::kLists + unit / (kUnits / Config::kLists)), first(item.commonTokens) {}

  /// Limits the item's planned tokens to those that the list has.
  static __device__ __forceinline__ abi::Item cut(abi::Item item, const abi::AttendArgs &args, int unit) {
    const ListPart part(item, unit);
    item.tokens = max(0, min(item.tokens, args.selected->counts[part.list] - part.first));
    return item;
  }
};

/// See TokenCursor.
template <class Config, class Variant> class SelectedCursor {
  static constexpr bool kNeedsDepth = WarpRows<Config, Variant>::kNeedsToken;
  static constexpr bool kNeedsPosition = kNeedsDepth || HasKey<Variant>;

public:
  __device__ __forceinline__ SelectedCursor(const abi::AttendArgs &args, const abi::Item &item, int first,
                                            int unit)
      : path_(*args.selected, item.runBegin), tokens_(item.tokens), next_(first) {
    const ListPart<Config> part(item, unit);
    const long long at = static_cast<long long>(part.list) * args.selected->budget + part.first;
    positions_ = args.selected->positions + at;
    places_ = args.selected->places + at;
  }

  __device__ __forceinline__ void fetch(const abi::AttendArgs &) {
    const int token = next_ < tokens_ ? next_ : tokens_ - 1;
    hidden_ = next_ >= tokens_;
    next_ += Config::kTileKv;
    place_ = places_[token];
    if constexpr (kNeedsPosition)
      position_ = positions_[token];
  }

  __device__ __forceinline__ unsigned place(const abi::CachePlaces &cache, int kvHead) const {
    if constexpr (Config::kPageSize > 0) {
      const unsigned token = static_cast<unsigned>(place_);
      return tokenPlace<Config>(cache, kvHead, static_cast<int>(token / Config::kPageSize),
                                static_cast<int>(token % Config::kPageSize));
    } else {
      return tokenPlace<Config>(cache, kvHead, place_, 0);
    }
  }

  __device__ __forceinline__ long long slot() const { return static_cast<unsigned>(place_); }

  __device__ __forceinline__ void record(const TokenRecords &records, int index) const {
    records.visible[index] = hidden_ ? 0u : 1u << 16; // the item's only query
    if constexpr (kNeedsPosition)
      records.position[index] = position_;
    if constexpr (kNeedsDepth) {
      select::PathPlaces<Config> path = path_;
      records.depth[index] = path.depthOf(position_);
    }
  }

private:
  select::PathPlaces<Config> path_;
  const int *positions_, *places_;
  int tokens_, next_;
  int place_ = 0, position_ = 0;
  bool hidden_ = false;
};

/// The cursor over an item's tokens for the config.
template <class Config, class Variant, bool kSparse = kIsSparse<Config>> struct CursorOf {
  using Type = TokenCursor<Config>;
};
template <class Config, class Variant> struct CursorOf<Config, Variant, true> {
  using Type = SelectedCursor<Config, Variant>;
};

} // namespace deft::sm80
