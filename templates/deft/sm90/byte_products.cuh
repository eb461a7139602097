#pragma once

#include "deft/ptx/mbarrier.cuh"
#include "deft/ptx/named_barrier.cuh"
#include "deft/ptx/wgmma.cuh"
#include "deft/sm90/byte_conversion.cuh"

namespace deft::sm90 {

template <class Config, class Variant> class Consumer;

/// How the computing warpgroup of a light block attends to an 8-bit cache whose bytes are in the stages. Each
/// warp converts 16 tokens of a tile. It converts K before the tile's first product, V during that product,
/// and the next tile's K during the second product.
///
/// After the barrier before q.k, all rows of K are converted and all warps are done with V. After the next
/// barrier, all rows of V are converted and all warps are done with K. A warp that attends to its own tokens
/// of a dealt tile needs neither barrier, except while others may still multiply V.
template <class Config, class Variant> class ByteProducts {
  using By = Consumer<Config, Variant>;
  using L = Layout<Config>;
  using Rows = typename By::Rows;
  static constexpr int kTimes = BytePieces<Config::kKeyDim>::kTimes / 2; ///< pieces of 16 tokens per lane

public:
  __device__ __forceinline__ explicit ByteProducts(const By &by) : by_(by), conversion_(by.lane_) {}

  __device__ __forceinline__ void attend(const Rows &rows, const typename By::Queries &queries,
                                         typename By::Sums &sums) const {
    const int queryLo = rows.clamped(0) / Config::kRatio;
    const int queryEnd = rows.clamped(63) / Config::kRatio + 1;
    const typename By::WorthOf worth(by_.args_, rows);
    typename By::Scores s;
    float common[2] = {}, factor[2];
    unsigned weights[By::kGroups][4];
    bool mayMultiply = true; ///< whether other warps may still use the previous tile's values
    takeKeys(by_.firstStep_);
    for (int step = by_.firstStep_; step < by_.endStep_; ++step) {
      TileSlot &slot = by_.ring_.slot(step);
      const TileFacts::Head head = slot.facts.head;
      if (!head.viewed.isSeen(queryLo, queryEnd)) {
        by_.release(step, 1);
        takeKeys(step + 1);
        continue;
      }
      if constexpr (kDeals<Config>)
        if (head.kind == TileFacts::Head::kDealt) {
          if (mayMultiply)
            awaitAll();
          mayMultiply = false;
          convertValues(step);
          __syncwarp();
          by_.multiplyGroup(rows, worth, queries, step, by_.warp_, slot.facts.group[by_.warp_], sums);
          by_.release(step, 1);
          takeKeys(step + 1);
          continue;
        }
      showAll();
      by_.startKeys(queries, by_.keysOf(step), s);
      convertValues(step);
      const bool cut = by_.isCut(rows, head, step);
      ptx::wgmmaWait<0>();
      ptx::wgmmaPin(s.tile);
      showAll();
      queries.restore(s);
      by_.score(rows, head, step, cut, s, common);
      worth.template give<Rows::kCapsLate>(rows, slot.records(), 0, s, common, cut);
      if (by_.weigh(rows, head.viewed.anyone, step, cut, step == by_.firstStep_, sums, s, common, factor))
        sums.out.scaleRows(factor);
      rows.multiplyByFactors(slot.records(), 0, s);
#pragma unroll
      for (int g = 0; g < By::kGroups; ++g)
        packOperand<typename Config::Value>(s.template part<2>(2 * g), weights[g]);
      by_.release(step, 1);
      by_.startValues(weights, step, sums.out);
      takeKeys(step + 1);
      ptx::wgmmaWait<0>();
      ptx::wgmmaPin(sums.out.tile);
      queries.hold(by_.ring_.base);
      mayMultiply = true;
    }
    awaitAll(); // results reuse the memory of the values
  }

private:
  static constexpr int kAll = 1; ///< named barrier

  static __device__ __forceinline__ void awaitAll() { ptx::namedBarrierSync(kAll, 128); }
  /// Makes the data that each warp wrote visible to all of them, for wgmma.
  static __device__ __forceinline__ void showAll() {
    ptx::fenceAsyncProxy();
    awaitAll();
  }

  /// Converts the keys of the unit's next tile when its bytes have arrived.
  __device__ __forceinline__ void takeKeys(int step) const {
    if (step >= by_.endStep_)
      return;
    by_.acquire(step);
    conversion_.template convert<typename Config::StoredKey, kTimes>(rows(by_.ring_.staged(step)),
                                                                     rows(by_.ring_.keys(step)));
  }
  __device__ __forceinline__ void convertValues(int step) const {
    conversion_.template convert<typename Config::StoredValue, kTimes>(
        rows(by_.ring_.staged(step) + L::kStagedValueOffset), rows(by_.ring_.values(step)));
  }

  /// The rows of the warp's 16 tokens.
  __device__ __forceinline__ char *rows(unsigned tile) const {
    return by_.ring_.shared + (tile - by_.ring_.base) + by_.warp_ * 16 * 128;
  }

  const By &by_;
  const ByteConversion<Config, /*kInRows=*/true> conversion_;
};

} // namespace deft::sm90
