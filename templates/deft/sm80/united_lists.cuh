#pragma once

#include "deft/common/union_rows.cuh"
#include "deft/sm80/selected_cursor.cuh"

/// Attention to the tokens of unions (abi::Unions): as for lists, but an item has several queries.
namespace deft::sm80 {

/// The item's part of a union's tokens.
template <class Config>
  requires kReadsUnions<Config>
struct ListPart<Config> {
  static constexpr int kUnits = Config::kKvHeads;
  static_assert(Config::kKvHeads % Config::kLists == 0, "the rows of a KV head read one list");
  long long begin; ///< of the part, among the tokens of all unions
  int tokens;

  __device__ __forceinline__ ListPart(const abi::Item &item, const abi::AttendArgs &args, int unit) {
    const abi::Unions &unions = unionsOf(args);
    const int list = unit / (kUnits / Config::kLists);
    const int count = unions.counts[item.runBegin * Config::kLists + list];
    const int each = (count + item.runCount - 1) / item.runCount;
    const int part = (each + Config::kTileKv - 1) / Config::kTileKv * Config::kTileKv;
    const int first = min(item.commonTokens * part, count);
    begin = (static_cast<long long>(unions.unions[item.runBegin].before) * Config::kLists +
             static_cast<long long>(list) * item.queryCount) *
                args.selected->budget +
            first;
    tokens = min(part, count - first);
  }

  static __device__ __forceinline__ abi::Item cut(abi::Item item, const abi::AttendArgs &args, int unit) {
    item.tokens = ListPart(item, args, unit).tokens;
    return item;
  }
};

/// See TokenCursor.
template <class Config, class Variant>
  requires kReadsUnions<Config>
class SelectedCursor<Config, Variant> {
  static constexpr bool kNeedsDepth = WarpRows<Config, Variant>::kNeedsToken;
  static constexpr bool kNeedsPosition = kNeedsDepth || HasKey<Variant>;

public:
  __device__ __forceinline__ SelectedCursor(const abi::AttendArgs &args, const abi::Item &item, int first,
                                            int unit)
      : selected_(*args.selected), callerIndex_(args.callerIndex + item.queryBegin), tokens_(item.tokens),
        next_(first) {
    const abi::Unions &unions = unionsOf(args);
    const long long begin = ListPart<Config>(item, args, unit).begin;
    positions_ = unions.positions + begin;
    places_ = unions.places + begin;
    readers_ = unions.readers + begin;
  }

  __device__ __forceinline__ void fetch(const abi::AttendArgs &) {
    const int token = next_ < tokens_ ? next_ : tokens_ - 1;
    hidden_ = next_ >= tokens_;
    next_ += Config::kTileKv;
    place_ = places_[token];
    readersOfToken_ = readers_[token];
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
    records.visible[index] = hidden_ ? 0u : readersOfToken_;
    if constexpr (kNeedsPosition)
      records.position[index] = position_;
    if constexpr (kNeedsDepth) // it is on the path of each of its readers
      records.depth[index] =
          select::PathPlaces<Config>(selected_, callerIndex_[__ffs(static_cast<int>(readersOfToken_)) - 1])
              .depthOf(position_);
  }

private:
  const abi::Selected &selected_;
  const int *callerIndex_;
  const int *positions_, *places_;
  const unsigned *readers_;
  int tokens_, next_;
  int place_ = 0, position_ = 0;
  unsigned readersOfToken_ = 0;
  bool hidden_ = false;
};

} // namespace deft::sm80
