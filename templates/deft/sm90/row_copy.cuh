#pragma once

#include "deft/common/row_place.cuh"
#include "deft/ptx/cp_async.cuh"
#include "deft/ptx/forget.cuh"
#include "deft/sm90/layout.cuh"

namespace deft::sm90 {

/// Copies rows of one head into a tile or a piece of queries by cp.async, four rows by a warp at a time: a
/// lane has the same row of the four and the same 16-byte column of each block of 64 columns every time, so
/// that almost nothing is left to compute for a copy. A row has kColumns columns of 16 bytes, of elements as
/// large as Element's.
template <class Config, class Element = typename Config::Key, int kColumns = Layout<Config>::kKeyColumns>
class RowCopy {
public:
  static constexpr int kRows = 4;

  __device__ __forceinline__ explicit RowCopy(int lane) : row_(lane / 8), column_(lane % 8) {
    if constexpr (Config::kKeyDim > 128) { // made anew for each row they would cost more registers, not fewer
      ptx::forget(row_);
      ptx::forget(column_);
    }
  }

  /// Which of the four rows is the lane's.
  __device__ __forceinline__ int row() const { return row_; }

  /// The lane's column of a tensor's first row, kept in registers: the compiler would add it for every row.
  __device__ __forceinline__ const char *column(const void *tensor) const {
    const char *first = static_cast<const char *>(tensor) + column_ * 16;
    ptx::forget(first);
    return first;
  }

  /// The lane's part of rows [first, first + kRows) of `tile`, from the row at `place`; `first` is a multiple
  /// of kRows.
  __device__ __forceinline__ void copy(unsigned tile, int first, const char *column, unsigned place) const {
    const char *source = atPlace<Config, Element>(column, place);
    // Layout::offset(first + row_, column_), of which the compiler knows what changes with `first`.
    const unsigned to = tile + first * 128 + row_ * 128 + ((column_ ^ row_) ^ (first & 4)) * 16;
#pragma unroll
    for (int c = 0; c < kColumns; c += 8)
      if (c + 8 <= kColumns || column_ < kColumns - c)
        ptx::cpAsync16(to + c / 8 * Layout<Config>::kBlockBytes, source + c * 16);
  }

private:
  int row_, column_;
};

} // namespace deft::sm90
