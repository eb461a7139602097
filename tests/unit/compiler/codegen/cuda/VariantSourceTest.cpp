#include "compiler/codegen/cuda/VariantSource.h"

#include <gtest/gtest.h>

namespace deft::codegen::cuda {
namespace {

spec::Variant latent() {
  spec::Variant variant;
  variant.name = "latent";
  variant.queryHeads = 16;
  variant.kvHeads = 1;
  const spec::TensorType key{spec::DType::F8E4M3, 576}, value{spec::DType::F8E4M3, 512};
  variant.tensors = {{spec::DType::BF16, 576}, key, value, {spec::DType::F16, 512}, /*valueInKey=*/true, 128};
  return variant;
}

TEST(VariantSourceTest, TensorsKeepTheScalesThatTheIrDoesNotHave) {
  const spec::Variant variant = latent();
  EXPECT_EQ(VariantSource::of(variant).tensors, variant.tensors);
}

TEST(VariantSourceTest, ParametersAreInTheOrderOfTheirSlots) {
  spec::Variant variant = latent();
  variant.params.resize(2);
  variant.params[0].name = "window";
  variant.params[1].name = "bonus";
  variant.params[1].shape = spec::Param::Shape::PerToken;
  const VariantSource source = VariantSource::of(variant);
  EXPECT_EQ(source.params, (std::vector<std::string>{"window", "bonus"}));
  EXPECT_EQ(source.tokenParams, 1);
}

TEST(VariantSourceTest, GroupsAndListsAreThoseOfTheSelection) {
  spec::Variant variant = latent();
  variant.kvHeads = 4;
  EXPECT_FALSE(VariantSource::of(variant).selects());
  const struct {
    spec::SelectBy by;
    int groups, lists;
  } all[] = {{spec::SelectBy::KvHead, 4, 4},
             {spec::SelectBy::QueryHead, 16, 16},
             {spec::SelectBy::Query, 4, 1},
             {spec::SelectBy::Caller, 4, 1}};
  for (const auto &[by, groups, lists] : all) {
    variant.select = {.budget = {}, .by = by, .range = {}};
    const VariantSource source = VariantSource::of(variant);
    EXPECT_EQ(source.worthGroups, groups);
    EXPECT_EQ(source.lists, lists);
    EXPECT_EQ(source.listsAreGiven, by == spec::SelectBy::Caller);
  }
}

} // namespace
} // namespace deft::codegen::cuda
