#pragma once

#include "deft/sm90/result_rows.cuh"
#include "deft/sm90/turns.cuh"

namespace deft::sm90 {

template <class Config, class Variant> class Consumer;

/// How the three computing warpgroups of a tall block attend: each to 64 rows of every tile, none to
/// another's. Items of up to 64 or 128 rows leave one or two of them without rows. Those follow the tiles,
/// the turns and the pieces of queries as the others do: nobody is a round ahead of another, where it would
/// take an older phase of a barrier for the one to wait for.
template <class Config, class Variant> class OwnRows {
  using By = Consumer<Config, Variant>;
  using L = Layout<Config>;
  using Rows = typename By::Rows;

public:
  __device__ __forceinline__ explicit OwnRows(const By &by) : by_(by) {}

  /// Gives the next unit's first piece of queries.
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
    // Anew from the item, so that less is held during the products.
    const Rows written(by_.args_, params, places.item, kvHead, groupRow + by_.warp_ * 16);
    const typename By::Results results(by_.args_, places, written, sums);
    results.send(sums.out, by_.halfBuffer());
    results.writeLse(sums);
  }

  const By &by_;
};

} // namespace deft::sm90
