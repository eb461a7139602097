#pragma once

/// What deft_<variant>_queries reads and writes: `query` of a spec for all rows of q, once a run, for attend
/// kernels to read as they read any q.
namespace deft::abi {

struct QueryArgs {
  const void *q; ///< as AttendArgs has it
  void *made;    ///< [query, caller's index][query_heads][head_dim], dtype of q
  const int *callerIndex;
  const int *queryPos;
  int queries; ///< of the plan's order
  int qStride; ///< elements from a query to the next one, of q
};

} // namespace deft::abi
