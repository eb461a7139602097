#pragma once

#include "deft/common/row_place.cuh"
#include "deft/ptx/cp_async.cuh"
#include "deft/ptx/forget.cuh"
#include "deft/sm90/layout.cuh"

namespace deft::sm90 {

/// Copies rows of one head into a tile or a piece of queries by cp.async. A warp copies four rows at a time.
/// A lane always has the same one of the four rows and the same 16-byte column of each block of 64 columns,
/// so a copy needs almost no arithmetic. A row has kColumns columns of 16 bytes; its elements have Element's
/// size.
template <class Config, class Element = typename Config::Key, int kColumns = Layout<Config>::kKeyColumns>
class RowCopy {
public:
  static constexpr int kRows = 4;

  __device__ __forceinline__ explicit RowCopy(int lane) : row_(lane / 8), column_(lane % 8) {
    if constexpr (Config::kKeyDim > 128) { // recomputing them for each row would use more registers
      ptx::forget(row_);
      ptx::forget(column_);
    }
  }

  /// The lane's row among the four.
  __device__ __forceinline__ int row() const { return row_; }

  /// The lane's column of a tensor's first row, kept in registers: the compiler would add it in every row.
  __device__ __forceinline__ const char *column(const void *tensor) const {
    const char *first = static_cast<const char *>(tensor) + column_ * 16;
    ptx::forget(first);
    return first;
  }

  /// Copies the lane's part of rows [first, first + kRows) of `tile`, from the row at `place`; `first` is a
  /// multiple of kRows.
  __device__ __forceinline__ void copy(unsigned tile, int first, const char *column, unsigned place) const {
    const char *source = atPlace<Config, Element>(column, place);
    // Layout::offset(first + row_, column_), in a form that separates the part that depends on `first`.
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
