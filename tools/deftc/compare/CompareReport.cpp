#include "tools/deftc/compare/CompareReport.h"

#include <algorithm>

namespace deft::cli {

std::vector<std::vector<const CompareRow *>> CompareReport::byTree() const {
  std::vector<std::vector<const CompareRow *>> trees;
  for (const CompareRow &row : rows) {
    if (trees.empty() || trees.back().front()->tree != row.tree)
      trees.emplace_back();
    trees.back().push_back(&row);
  }
  return trees;
}

bool CompareReport::isRight() const {
  return std::none_of(rows.begin(), rows.end(),
                      [](const CompareRow &row) { return row.check && !row.check->passed(); });
}

} // namespace deft::cli
