#pragma once

#include "compiler/support/Result.h"
#include "runtime/sharing/PageSize.h"
#include "runtime/tree/KvTree.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// What an engine hands over of a step, all of it in the host's memory and for one call only.
namespace deft::sharing {

/// Rows of pages in one of two forms: rowStride says which.
struct PageTable {
  std::span<const int> entries = {};
  std::int64_t rowStride = 0; ///< from one row to the next, in entries; 0: the rows are told by `indptr`
  int rowPages = 0;           ///< most pages of a row; 0: the stride. Unused with `indptr`
  std::span<const int> indptr = {}; ///< row r has the entries [indptr[r], indptr[r + 1])
};

struct Requests {
  PageTable table = {};
  std::span<const int> lengths = {};         ///< in tokens
  std::span<const int> lastPageLengths = {}; ///< with indptr, in place of lengths
  std::span<const int> queryIndptr = {};     ///< one more than requests; empty: one query each
  std::span<const int> drafts = {};          ///< of each request, behind its tokens; empty: there are none
  std::span<const int> rows = {};            ///< of each request; empty: request i has row i
  std::span<const std::uint64_t> ids = {}; ///< of each request; empty: rows are compared with what they were
};

/// A request as it was handed over, and who it is among those that are known.
struct Request {
  std::int64_t firstEntry = 0; ///< of its row, in the table
  std::int64_t entries = 0;    ///< of its row
  int row = 0;
  int tokens = 0;
  int drafts = 0;
  int member = -1; ///< -1: it is new
};

/// The errors of a step name the request: its number in the batch.
support::Error wrongRequest(std::size_t request, const std::string &what, const std::string &hint = "");

/// Reads rows of a page table of either form.
class RowReader {
public:
  static support::Result<RowReader> make(const PageTable &table, PageSize pageSize);

  /// Finds a request's row. False where it has no room for the tokens, or their places cannot be named.
  bool place(Request &request) const {
    if (request.row < 0 || request.row >= rows_)
      return false;
    const auto size = static_cast<std::int64_t>(table_.entries.size());
    if (isPacked()) {
      const int *const begin = table_.indptr.data() + request.row;
      request.firstEntry = begin[0];
      request.entries = std::min<std::int64_t>(begin[1], size) - request.firstEntry;
    } else {
      request.firstEntry = request.row * table_.rowStride;
      request.entries = std::min(rowEntries_, size - request.firstEntry);
    }
    const std::int64_t tokens = std::int64_t{request.tokens} + request.drafts;
    return request.tokens >= 0 && request.firstEntry >= 0 && request.entries >= 0 &&
           tokens <= request.entries * pageSize_.tokens() &&
           request.firstEntry * pageSize_.tokens() <= tree::KvTree::kMaxTokens - tokens;
  }
  support::Error whyNotPlaced(std::size_t number, const Request &request) const;

  int rows() const { return rows_; }
  PageSize pageSize() const { return pageSize_; }
  /// Whether rows lie back to back.
  bool isPacked() const { return !table_.indptr.empty(); }

private:
  RowReader(const PageTable &table, PageSize pageSize, int rows)
      : table_(table), pageSize_(pageSize), rows_(rows),
        rowEntries_(table.rowPages > 0 ? table.rowPages : table.rowStride) {}

  PageTable table_;
  PageSize pageSize_;
  int rows_;
  std::int64_t rowEntries_; ///< the most of a row at even distances
};

/// Reads and checks all requests, except the pages themselves.
support::Result<void> readRequests(const Requests &requests, const RowReader &rows,
                                   std::vector<Request> &read);

} // namespace deft::sharing
