#include "compiler/kernels/KernelShape.h"

#include "tests/support/LatentTensors.h"

#include <gtest/gtest.h>

namespace deft::kernels {
namespace {

KernelShape latent(int queryHeads) { return {{queryHeads, 1, test::latentTensors()}}; }

TEST(KernelShapeTest, AnItemHasAUnitForEachKvHead) {
  const KernelShape shape{{32, 8, spec::Tensors::alike(128)}};
  EXPECT_EQ(shape.headGroups(), 1);
  EXPECT_EQ(shape.unitsOfItem(), 8);
  EXPECT_EQ(shape.rowsOfQuery(), 4);
  const KernelShape ofOne{{128, 1, spec::Tensors::alike(128)}}; // whose V is beside K
  EXPECT_EQ(ofOne.headGroups(), 1);
  EXPECT_EQ(ofOne.rowsOfQuery(), 128);
}

TEST(KernelShapeTest, HeadsOfALatentCacheAreSplitIntoEqualGroups) {
  struct Split {
    int queryHeads, groups, rows;
  };
  for (const Split &split : {Split{1, 1, 1},
                             {12, 1, 12},
                             {64, 1, 64},
                             {66, 2, 33},
                             {96, 2, 48},
                             {128, 2, 64},
                             {129, 3, 43},
                             {130, 5, 26}}) {
    const KernelShape shape = latent(split.queryHeads);
    EXPECT_EQ(shape.headGroups(), split.groups) << split.queryHeads;
    EXPECT_EQ(shape.unitsOfItem(), split.groups) << split.queryHeads;
    EXPECT_EQ(shape.rowsOfQuery(), split.rows) << split.queryHeads;
  }
  EXPECT_EQ(latent(67).headGroups(), 67) << "a prime number of heads has no other groups";
}

TEST(KernelShapeTest, TheFewestRowsAreAMultipleOf16) {
  for (const auto &[queryHeads, rows] : {std::pair(1, 16), {16, 16}, {17, 32}, {71, 80}})
    EXPECT_EQ((KernelShape{{queryHeads, 1, spec::Tensors::alike(128)}}).fewestRows(), rows);
}

} // namespace
} // namespace deft::kernels
