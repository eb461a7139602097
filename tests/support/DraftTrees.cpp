#include "tests/support/DraftTrees.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace deft::test {

namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

} // namespace

DraftParents draftTree(int count, int depth, int width, std::mt19937 &random) {
  DraftParents parents;
  std::vector<int> depths, children;
  int roots = 0;
  while (static_cast<int>(parents.size()) < count) {
    // The smaller of two draws: a draft is the likelier the sooner it was made, the request itself the first.
    const auto all = static_cast<unsigned>(parents.size() + 1);
    const int parent = static_cast<int>(std::min(random() % all, random() % all)) - 1;
    if (parent < 0) {
      if (roots == width && !parents.empty() && *std::min_element(children.begin(), children.end()) < width)
        continue;
      ++roots;
    } else if (children[index(parent)] == width || depths[index(parent)] + 1 >= depth) {
      continue;
    } else {
      ++children[index(parent)];
    }
    depths.push_back(parent < 0 ? 0 : depths[index(parent)] + 1);
    children.push_back(0);
    parents.push_back(parent);
  }
  return parents;
}

DraftParents draftChain(int count) {
  DraftParents parents(index(count));
  std::iota(parents.begin(), parents.end(), -1);
  return parents;
}

DraftParents renumbered(const DraftParents &parents, std::mt19937 &random) {
  std::vector<int> number(parents.size());
  std::iota(number.begin(), number.end(), 0);
  std::shuffle(number.begin(), number.end(), random);
  DraftParents other(parents.size());
  for (std::size_t i = 0; i < parents.size(); ++i)
    other[index(number[i])] = parents[i] < 0 ? -1 : number[index(parents[i])];
  return other;
}

DraftParents draftTreeOf(int count, std::mt19937 &random) {
  switch (random() % 4) {
  case 0:
    return renumbered(draftChain(count), random);
  case 1:
    return draftStar(count);
  default:
    return renumbered(draftTree(count, 20, 7, random), random);
  }
}

DraftParents anyDraftTree(int most, std::mt19937 &random) {
  const int count = 1 + static_cast<int>(random() % static_cast<unsigned>(most));
  switch (random() % 7) {
  case 0:
    return draftChain(count);
  case 1:
    return draftStar(count);
  case 2:
    return jetSpecTree(std::min(random() % 2 == 0 ? 128 : 255, most), random);
  case 3:
    return most < 60 ? draftTree(count, 7, 10, random) : eagleTree(random);
  case 4:
    return renumbered(draftChain(count), random);
  case 5:
    return renumbered(draftTree(count, 20, 7, random), random);
  default:
    return draftTree(count, 1 + static_cast<int>(random() % 30), count, random);
  }
}

bool doesSee(const DraftParents &parents, int i, int j) {
  while (i >= 0 && i != j)
    i = parents[index(i)];
  return i == j;
}

int depthOf(const DraftParents &parents, int draft) {
  int depth = 0;
  for (int at = parents[index(draft)]; at >= 0; at = parents[index(at)])
    ++depth;
  return depth;
}

std::vector<std::uint32_t> maskOf(const DraftParents &parents, int rows, std::mt19937 &random) {
  const int words = (rows + 31) / 32, count = static_cast<int>(parents.size());
  std::vector<std::uint32_t> mask(index(rows * words));
  for (std::uint32_t &word : mask)
    word = static_cast<std::uint32_t>(random());
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < count; ++j) {
      std::uint32_t &word = mask[index(i * words + j / 32)];
      const std::uint32_t bit = std::uint32_t{1} << j % 32;
      word = doesSee(parents, i, j) ? word | bit : word & ~bit;
    }
  return mask;
}

} // namespace deft::test
