#include "tests/support/UnseenPages.h"

#include "runtime/exec/Half.h"
#include "runtime/exec/ParamRanges.h"

#include <algorithm>
#include <vector>

namespace deft::test {

std::set<int> visibleGroups(const tree::KvTree &tree, const plan::Reach &reach, int step) {
  std::set<int> groups;
  std::vector<plan::Positions> stretches;
  for (const tree::Query &query : tree.queries()) {
    const int qPos = tree.pathTokens(query) - 1;
    reach.find(qPos, qPos, stretches);
    for (int node = query.node; node >= 0; node = tree.nodes()[static_cast<std::size_t>(node)].parent) {
      const tree::Node &facts = tree.nodes()[static_cast<std::size_t>(node)];
      for (const plan::Positions &stretch : stretches) {
        const int begin = std::max(stretch.begin, facts.position);
        const int end = std::min(stretch.end, facts.position + facts.tokens);
        for (int position = begin; position < end; ++position)
          groups.insert((facts.location + position - facts.position) / step);
      }
    }
  }
  return groups;
}

void freeUnseenPages(const spec::Variant &variant, const tree::KvTree &tree, exec::Inputs &inputs) {
  const auto poison = [](auto &memory, long long at, const spec::TensorType &tensor) {
    for (int d = 0; d < tensor.dim; ++d)
      exec::setBitsAt(memory.data(), at + d, tensor.dtype, 0x7fff); // NaN in every dtype
  };
  const plan::Reach reach = exec::reachOf(variant, inputs.params);
  if (!variant.cache.isPaged() || reach.isAll() || reach.hasRisingEnd()) // of such, planners take a hull
    return;
  const int pageSize = variant.cache.pageSize;
  const std::set<int> seen = visibleGroups(tree, reach, pageSize);
  for (std::size_t page = 0; page < inputs.pageTable.size(); ++page) {
    if (seen.contains(static_cast<int>(page)) || inputs.pageTable[page] < 0)
      continue;
    for (int slot = 0; slot < pageSize; ++slot)
      for (int head = 0; head < variant.kvHeads; ++head) {
        const int location = static_cast<int>(page) * pageSize + slot;
        poison(inputs.k, inputs.keyAt(location, pageSize, head), variant.tensors.keyRow());
        if (!variant.tensors.valueInKey)
          poison(inputs.v, inputs.valueAt(location, pageSize, head), variant.tensors.v);
      }
    inputs.pageTable[page] = -1;
  }
}

} // namespace deft::test
