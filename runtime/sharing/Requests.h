#pragma once

#include "compiler/support/Result.h"
#include "runtime/sharing/PageSize.h"
#include "runtime/tree/KvTree.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// The input of a step from an engine: all in host memory, and valid only during one call.
namespace deft::sharing {

/// Rows of pages, in one of two forms; rowStride decides which.
struct PageTable {
  std::span<const int> entries = {};
  std::int64_t rowStride = 0;       ///< between rows, in entries; 0: `indptr` gives the rows
  int rowPages = 0;                 ///< most pages of a row; 0: the stride. Unused with `indptr`
  std::span<const int> indptr = {}; ///< row r has the entries [indptr[r], indptr[r + 1])
};

struct Requests {
  PageTable table = {};
  std::span<const int> lengths = {};         ///< in tokens
  std::span<const int> lastPageLengths = {}; ///< with indptr, instead of lengths
  std::span<const int> queryIndptr = {};     ///< one more than there are requests; empty: one query each
  std::span<const int> drafts = {};          ///< of each request, after its tokens; empty: no drafts
  std::span<const int> rows = {};            ///< of each request; empty: request i has row i
  std::span<const std::uint64_t> ids = {};   ///< of each request; empty: rows are compared with earlier ones
};

/// One request of a step, and its member if it is known.
struct Request {
  std::int64_t firstEntry = 0; ///< of its row in the table
  std::int64_t entries = 0;    ///< of its row
  int row = 0;
  int tokens = 0;
  int drafts = 0;
  int member = -1; ///< -1: a new request
};

/// The error names the request by its number in the batch.
support::Error wrongRequest(std::size_t request, const std::string &what, const std::string &hint = "");

/// Reads the rows of a page table in either form.
class RowReader {
public:
  static support::Result<RowReader> make(const PageTable &table, PageSize pageSize);

  /// Finds a request's row. False if the row is too short for the tokens, or their places exceed the limit.
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
  /// Whether rows are consecutive (CSR).
  bool isPacked() const { return !table_.indptr.empty(); }

private:
  RowReader(const PageTable &table, PageSize pageSize, int rows)
      : table_(table), pageSize_(pageSize), rows_(rows),
        rowEntries_(table.rowPages > 0 ? table.rowPages : table.rowStride) {}

  PageTable table_;
  PageSize pageSize_;
  int rows_;
  std::int64_t rowEntries_; ///< the most entries of a row with a stride
};

/// Reads and checks all requests, except for the pages.
support::Result<void> readRequests(const Requests &requests, const RowReader &rows,
                                   std::vector<Request> &read);

} // namespace deft::sharing
