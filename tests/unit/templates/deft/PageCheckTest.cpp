#include "tests/device/Words.h"

#include "deft/page_check.cuh"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace deft {
namespace {

struct Entry {
  int entry, page;
  bool operator<(const Entry &other) const { return entry < other.entry; }
};

// Items of few and of many runs, some of no tokens between them as at the end of a phase's list.
TEST(PageCheckTest, EntriesThatAreNoPageOfTheCacheAreTold) {
  int told = 0;
  for (unsigned seed = 1; seed <= 80; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
    const int pageSize = std::array{1, 3, 16, 64}[random() % 4], pages = 1 + below(40);
    std::vector<int> table(200);
    for (int &page : table)
      page = below(pages);
    for (int wrong = below(3); wrong > 0; --wrong)
      table[random() % table.size()] = std::array{-1, pages, 1 << 30, -(1 << 30)}[random() % 4];
    std::vector<abi::Item> items;
    std::vector<abi::Run> runs;
    std::set<Entry> expected;
    for (int i = 1 + below(9); i > 0; --i) {
      abi::Item item{};
      item.runBegin = static_cast<int>(runs.size());
      if (below(4) > 0) {
        item.runCount = std::array{1, 2, 7}[random() % 3];
        for (int r = 0; r < item.runCount; ++r) {
          const int location = below(100 * pageSize), tokens = below(90 * pageSize);
          runs.push_back({item.tokens, tokens, location, 0, 0, 0, 1, 0, 0});
          item.tokens += tokens;
          for (int t = location; t < location + tokens; ++t)
            if (const int page = table[static_cast<std::size_t>(t / pageSize)]; page < 0 || page >= pages)
              expected.insert({t / pageSize, page});
        }
      }
      items.push_back(item);
    }
    unsigned long long wrong = 0;
    const abi::PageCheckArgs args{items.data(), runs.data(), table.data(), static_cast<int>(items.size()),
                                  pageSize,     pages,       &wrong};
    constexpr unsigned kThreads = PageCheck::kThreads;
    const auto blocks = (32 * static_cast<unsigned>(items.size()) + kThreads - 1) / kThreads;
    for (unsigned block = 0; block < blocks; ++block)
      EXPECT_EQ(test::runBlock({.threads = kThreads, .block = block, .blocks = blocks, .seed = seed},
                               [&] { PageCheck(args).check(); }),
                "");
    ASSERT_EQ(wrong != 0, !expected.empty()) << "seed " << seed;
    if (wrong == 0)
      continue;
    ++told;
    const auto entry = expected.find({static_cast<int>(wrong & 0xffffffff) - 1, 0});
    ASSERT_NE(entry, expected.end()) << "seed " << seed;
    EXPECT_EQ(static_cast<int>(wrong >> 32), entry->page);
  }
  EXPECT_GT(told, 15);
}

} // namespace
} // namespace deft
