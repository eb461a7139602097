#pragma once

#include "deft/sm90/result_rows.cuh"
#include "deft/sm90/turns.cuh"

namespace deft::sm90 {

template <class Config, class Variant> class Consumer;

/// How the three computing warpgroups of a tall block attend: each to its own 64 rows of every tile. Items of
/// up to 64 or 128 rows leave one or two warpgroups without rows. These still follow the tiles, the turns and
/// the pieces of queries. So no warpgroup gets a round ahead of another; it would then mistake an older phase
/// of a barrier for its own.
template <class Config, class Variant> class OwnRows {
  using By = Consumer<Config, Variant>;
  using L = Layout<Config>;
  using Rows = typename By::Rows;

public:
  __device__ __forceinline__ explicit OwnRows(const By &by) : by_(by) {}

  /// Returns the next unit's first piece of queries.
  __device__ __forceinline__ int attend(const typename By::Params &params, int kvHead, int piece) const {
    const int pieces = (by_.item_.queryCount * Config::kRatio + kPieceRows - 1) / kPieceRows;
    for (int i = 0; i < pieces; ++i) {
      By::awaitPiece(by_.ring_, piece + i);
      if (i != by_.group_)
        by_.releasePiece(piece + i, 1);
    }
    if (by_.group_ >= pieces)
      follow();
    else
      multiply(params, kvHead, piece + by_.group_);
    return piece + pieces;
  }

private:
  __device__ __forceinline__ void follow() const {
    Turns<L::kGroups> turns(true, by_.group_, by_.endStep_ - by_.firstStep_);
    for (int step = by_.firstStep_; step < by_.endStep_; ++step) {
      by_.acquire(step);
      turns.begin();
      turns.end();
      by_.release(step, 1);
    }
  }

  __device__ __forceinline__ void multiply(const typename By::Params &params, int kvHead, int own) const {
    const int groupRow = by_.group_ * kPieceRows;
    Rows rows(by_.args_, params, by_.item_, kvHead, groupRow + by_.warp_ * 16);
    const typename By::Queries queries = by_.queriesOf(rows, own, groupRow);
    by_.setQueries(rows, own, groupRow);
    typename By::Places places;
    by_.template leavePiece<false>(rows, own, groupRow, places);
    typename By::Sums sums;
    by_.wide(rows, queries, sums, groupRow, 0, 1);
    by_.template leavePiece<true>(rows, own, groupRow, places);
    sums.finish();
    // Computed again from the item, to hold fewer registers during the products.
    const Rows written(by_.args_, params, places.item, kvHead, groupRow + by_.warp_ * 16);
    const typename By::Results results(by_.args_, places, written, sums);
    results.send(sums.out, by_.halfBuffer());
    results.writeLse(sums);
  }

  const By &by_;
};

} // namespace deft::sm90
