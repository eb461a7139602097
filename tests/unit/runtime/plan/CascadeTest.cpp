#include "runtime/plan/Partitions.h"
#include "tests/unit/runtime/plan/PlanTesting.h"

namespace deft::plan {
namespace {

using ::testing::ElementsAre;
using tree::KvTree;

TEST(CascadePartitionTest, LevelsAreCutOneByOne) {
  // Alone on 4 blocks, the root is worth splitting and the leaves, which fill them, are not.
  KvTree tree = test::levelTree({1, 8}, {4096, 1024});
  const Plan plan = planOf(tree, spec::Partition::Cascade, 0);
  std::vector<abi::Item> items = itemsInOrder(plan);
  EXPECT_EQ(items.size(), 4u + 8u);
  EXPECT_EQ(items[0].tokens, 1024);
  EXPECT_EQ(items[0].queryCount, 8);
  EXPECT_EQ(items.back().tokens, 1024);
  EXPECT_EQ(items.back().queryCount, 1);
}

TEST(CascadePartitionTest, TilesStandLevelByLevel) {
  TreeView view;
  view.build(smallTree());
  PartitionScratch scratch;
  TileList list;
  makeCascadeTiles(view, 16, 64, VariantFacts{}, {}, 4, scratch, list);
  std::vector<int> depths;
  for (const Tile &tile : list.tiles)
    depths.push_back(view.places[static_cast<std::size_t>(list.runs[tile.runBegin].place)].depth);
  EXPECT_THAT(depths, ElementsAre(0, 1, 1, 2, 2, 2, 2));
}

} // namespace
} // namespace deft::plan
