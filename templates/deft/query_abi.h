#pragma once

/// The arguments of deft_<variant>_queries: it applies `query` of a spec to all rows of q, once per run. The
/// attend kernels read the result like any q.
namespace deft::abi {

struct QueryArgs {
  const void *q; ///< as in AttendArgs
  void *made;    ///< [query, caller's index][query_heads][head_dim], dtype of q
  const int *callerIndex;
  const int *queryPos;
  int queries; ///< in the plan's order
  int qStride; ///< elements from a query to the next one, of q
};

} // namespace deft::abi
