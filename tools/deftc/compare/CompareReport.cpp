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

int CompareReport::rounds() const {
  const auto fewest = std::min_element(
      rows.begin(), rows.end(), [](const CompareRow &a, const CompareRow &b) { return a.rounds < b.rounds; });
  return fewest == rows.end() ? 0 : fewest->rounds;
}

} // namespace deft::cli
