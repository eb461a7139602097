#include "tests/support/UnseenPages.h"

#include "runtime/exec/ParamRanges.h"

#include <algorithm>
#include <vector>

namespace deft::test {

namespace {

std::vector<bool> seenPages(const tree::KvTree &tree, const plan::Reach &reach, int pageSize,
                            std::size_t pages) {
  std::vector<bool> seen(pages, false);
  std::vector<plan::Stretch> stretches;
  for (const tree::Query &query : tree.queries()) {
    const int qPos = tree.pathTokens(query) - 1;
    reach.find(qPos, qPos, stretches);
    for (int index = query.node; index >= 0; index = tree.nodes()[static_cast<std::size_t>(index)].parent) {
      const tree::Node &node = tree.nodes()[static_cast<std::size_t>(index)];
      for (const plan::Stretch &stretch : stretches) {
        const int begin = std::max(stretch.begin - node.position, 0);
        const int end = std::min(stretch.end - node.position, node.tokens);
        for (int token = begin; token < end; ++token)
          seen[static_cast<std::size_t>((node.location + token) / pageSize)] = true;
      }
    }
  }
  return seen;
}

} // namespace

int freeUnseenPages(const spec::Variant &variant, const tree::KvTree &tree, exec::Inputs &inputs) {
  constexpr std::uint16_t kNaN = 0x7fff; // in f16 and in bf16
  const plan::Reach reach = exec::reachOf(variant, inputs.params);
  if (!variant.cache.paged || reach.isAll() || reach.hasRisingEnd()) // of such, planners take a hull
    return 0;
  const int pageSize = variant.cache.pageSize;
  const std::vector<bool> seen = seenPages(tree, reach, pageSize, inputs.pageTable.size());
  int freed = 0;
  for (std::size_t page = 0; page < seen.size(); ++page) {
    if (seen[page] || inputs.pageTable[page] < 0)
      continue;
    for (int slot = 0; slot < pageSize; ++slot)
      for (int head = 0; head < variant.kvHeads; ++head) {
        const long long at = inputs.elementOf(static_cast<int>(page) * pageSize + slot, pageSize, head);
        std::fill_n(inputs.k.begin() + at, variant.headDim, kNaN);
        std::fill_n(inputs.v.begin() + at, variant.headDim, kNaN);
      }
    inputs.pageTable[page] = -1;
    ++freed;
  }
  return freed;
}

} // namespace deft::test
