#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/Inputs.h"
#include "runtime/reference/Check.h"
#include "runtime/tree/KvTree.h"

#include <vector>

namespace deft::measure {

/// Rows of the oracle, computed once, to check the outputs of many candidates. Rows are spread evenly
/// over queries and heads, as many as `mostPairs` (row, token) pairs allow. In addition, no output may be
/// NaN.
class OracleTable {
public:
  OracleTable(const spec::Variant &variant, const tree::KvTree &tree, const exec::Inputs &inputs,
              long long mostPairs, int threads);

  /// Returns the fault as an error: "query 3, head 7: error 0.2, allowed 0.01".
  support::Result<void> compare(const exec::Outputs &outputs) const;
  int groups() const { return static_cast<int>(groups_.size()); }

private:
  struct Group { ///< the rows of one query that share a KV head
    int query = 0, kvHead = 0;
    std::vector<reference::BoundedRow> rows;
  };

  support::Result<void> scan(const exec::Outputs &outputs) const;

  const spec::Variant &variant_;
  std::vector<Group> groups_;
};

} // namespace deft::measure
