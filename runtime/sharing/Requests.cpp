#include "runtime/sharing/Requests.h"

#include "templates/deft/draft_abi.h"

#include <algorithm>
#include <limits>

namespace deft::sharing {

using support::Error;
using support::ErrorCode;
using support::Result;
using tree::KvTree;

namespace {

/// Each has two nodes at most, and one more is that of requests without tokens.
constexpr std::size_t kMostRequests = (KvTree::kMaxNodes - 1) / 2;

Error wrong(std::string message, std::string hint = "") {
  return {ErrorCode::Usage, std::move(message), std::move(hint)};
}

/// As many as there are requests, or left out.
Result<void> checkCount(const char *what, std::size_t count, std::size_t needed) {
  if (count == 0 || count == needed)
    return {};
  return wrong("there are " + std::to_string(count) + " " + what + ", " + std::to_string(needed) +
               " are needed");
}

Result<void> checkQueries(std::span<const int> indptr, const std::vector<Request> &requests) {
  if (indptr.empty())
    return {};
  if (indptr[0] != 0)
    return wrong("query_indptr begins with " + std::to_string(indptr[0]) + ", not with 0");
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (indptr[i + 1] < indptr[i])
      return wrongRequest(i, "query_indptr falls from " + std::to_string(indptr[i]) + " to " +
                                 std::to_string(indptr[i + 1]));
    // A row of padding: a query that sees nothing.
    if (const int count = indptr[i + 1] - indptr[i]; count > std::max(requests[i].tokens, 1))
      return wrongRequest(
          i, std::to_string(count) + " queries, but only " + std::to_string(requests[i].tokens) + " tokens",
          "lengths include the new tokens");
  }
  if (indptr.back() > KvTree::kMaxQueries)
    return wrong(std::to_string(indptr.back()) + " queries, at most " + std::to_string(KvTree::kMaxQueries) +
                 " can be asked in a step");
  return {};
}

Result<void> checkDrafts(const Requests &requests, std::size_t count) {
  if (auto checked = checkCount("numbers of drafts", requests.drafts.size(), count); !checked)
    return checked;
  if (requests.drafts.empty())
    return {};
  if (!requests.queryIndptr.empty())
    return wrong("there are drafts and a query_indptr", "a request has exactly one query for each draft");
  std::int64_t queries = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (const int drafts = requests.drafts[i]; drafts < 0 || drafts > abi::kMostDrafts)
      return wrongRequest(i, std::to_string(drafts) + " drafts, must be 0 to " +
                                 std::to_string(abi::kMostDrafts));
    queries += requests.drafts[i];
  }
  if (queries > KvTree::kMaxQueries)
    return wrong(std::to_string(queries) + " drafts, at most " + std::to_string(KvTree::kMaxQueries) +
                 " queries can be asked in a step");
  return {};
}

/// By how full its last page is.
Result<int> lengthOf(std::size_t number, const PageTable &table, int row, int inLastPage, PageSize pageSize) {
  const int pages =
      table.indptr[static_cast<std::size_t>(row) + 1] - table.indptr[static_cast<std::size_t>(row)];
  if (pages <= 0)
    return 0;
  if (inLastPage < 1 || inLastPage > pageSize.tokens())
    return wrongRequest(number, std::to_string(inLastPage) + " tokens in its last page, must be 1 to " +
                                    std::to_string(pageSize.tokens()));
  const std::int64_t tokens = std::int64_t{pages - 1} * pageSize.tokens() + inLastPage;
  return static_cast<int>(std::min<std::int64_t>(tokens, std::numeric_limits<int>::max()));
}

} // namespace

Error wrongRequest(std::size_t request, const std::string &what, const std::string &hint) {
  return wrong("request " + std::to_string(request) + ": " + what, hint);
}

Result<RowReader> RowReader::make(const PageTable &table, PageSize pageSize) {
  const auto size = static_cast<std::int64_t>(table.entries.size());
  if (table.indptr.empty() ? table.rowStride <= 0 && size > 0 : table.rowStride != 0)
    return wrong("a page table has either a row stride or an indptr, not " +
                     std::string(table.indptr.empty() ? "neither" : "both"),
                 "a row stride is more than 0");
  if (!table.indptr.empty())
    return RowReader(table, pageSize, static_cast<int>(table.indptr.size()) - 1);
  if (table.rowPages < 0 || table.rowPages > std::max<std::int64_t>(table.rowStride, 0))
    return wrong(std::to_string(table.rowPages) + " pages of a row, the next one begins after " +
                 std::to_string(table.rowStride));
  const std::int64_t rows = size == 0 ? 0 : (size + table.rowStride - 1) / table.rowStride;
  return RowReader(table, pageSize,
                   static_cast<int>(std::min<std::int64_t>(rows, std::numeric_limits<int>::max())));
}

Error RowReader::whyNotPlaced(std::size_t number, const Request &request) const {
  const std::string row = "row " + std::to_string(request.row);
  if (request.row < 0 || request.row >= rows_)
    return wrongRequest(number, "there is no " + row + ", the page table has " + std::to_string(rows_));
  if (request.tokens < 0)
    return wrongRequest(number, std::to_string(request.tokens) + " tokens, must not be negative");
  if (isPacked() && (request.firstEntry < 0 ||
                     table_.indptr[static_cast<std::size_t>(request.row) + 1] < request.firstEntry))
    return wrongRequest(number, row + " goes from entry " + std::to_string(request.firstEntry) + " to " +
                                    std::to_string(table_.indptr[static_cast<std::size_t>(request.row) + 1]) +
                                    " of the page table");
  const std::int64_t tokens = std::int64_t{request.tokens} + request.drafts;
  if (request.entries < 0 || tokens > request.entries * pageSize_.tokens())
    return wrongRequest(
        number,
        std::to_string(request.tokens) + " tokens" +
            (request.drafts > 0 ? " and " + std::to_string(request.drafts) + " drafts" : std::string()) +
            " are in " + std::to_string((tokens + pageSize_.tokens() - 1) / pageSize_.tokens()) + " pages, " +
            row + " has room for " + std::to_string(std::max<std::int64_t>(request.entries, 0)));
  return wrongRequest(
      number,
      "its tokens end at place " + std::to_string(request.firstEntry * pageSize_.tokens() + tokens) +
          " of the page table, at most " + std::to_string(KvTree::kMaxTokens) + " can be named",
      "a place is (entry of the table) * page size + token in the page: fewer rows, or a "
      "smaller row stride");
}

Result<void> readRequests(const Requests &requests, const RowReader &rows, std::vector<Request> &read) {
  const bool byLastPages = requests.lengths.empty() && !requests.lastPageLengths.empty();
  if (byLastPages && !rows.isPacked())
    return wrong("lengths of last pages are for page tables with an indptr", "give the lengths");
  const std::size_t count = byLastPages ? requests.lastPageLengths.size() : requests.lengths.size();
  if (count > kMostRequests)
    return wrong(std::to_string(count) + " requests, at most " + std::to_string(kMostRequests) +
                 " can be in a batch");
  for (const auto &checked : {checkCount("rows of requests", requests.rows.size(), count),
                              checkCount("ids", requests.ids.size(), count),
                              checkCount("entries of query_indptr", requests.queryIndptr.size(), count + 1)})
    if (!checked)
      return checked;
  if (auto checked = checkDrafts(requests, count); !checked)
    return checked;
  read.assign(count, Request());
  for (std::size_t i = 0; i < count; ++i) {
    Request &request = read[i];
    request.row = requests.rows.empty() ? static_cast<int>(i) : requests.rows[i];
    if (byLastPages && request.row >= 0 && request.row < rows.rows()) {
      const auto length =
          lengthOf(i, requests.table, request.row, requests.lastPageLengths[i], rows.pageSize());
      if (!length)
        return length.error();
      request.tokens = *length;
    } else if (!byLastPages) {
      request.tokens = requests.lengths[i];
    }
    if (!requests.drafts.empty())
      request.drafts = requests.drafts[i];
    if (!rows.place(request))
      return rows.whyNotPlaced(i, request);
  }
  return checkQueries(requests.queryIndptr, read);
}

} // namespace deft::sharing
