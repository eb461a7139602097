#include "runtime/config_cache/VariantSignature.h"

#include "tests/support/VariantBuilder.h"

#include <gtest/gtest.h>

namespace deft::config_cache {
namespace {

spec::Variant plain() { return test::VariantBuilder(32, 8, 128).variant; }

std::string textOf(const spec::Variant &variant) { return VariantSignature::of(variant).text(); }

TEST(VariantSignatureTest, EveryFactIsInTheText) {
  EXPECT_EQ(textOf(plain()), "q32-kv8-d128-bf16-p16nhd-plain");
  spec::Variant variant = plain();
  variant.tensors = spec::Tensors::alike(128, spec::DType::F16);
  EXPECT_EQ(textOf(variant), "q32-kv8-d128-f16-p16nhd-plain");
  variant = plain();
  variant.cache = {1, spec::PageOrder::Hnd};
  EXPECT_EQ(textOf(variant), "q32-kv8-d128-bf16-p1hnd-plain");
  variant.cache = {0, spec::PageOrder::Hnd};
  EXPECT_EQ(textOf(variant), "q32-kv8-d128-bf16-contiguous-plain");
  variant = plain();
  variant.normalize = spec::Normalize::Sigmoid;
  EXPECT_EQ(textOf(variant), "q32-kv8-d128-bf16-p16nhd-sigmoid");
}

/// Shipped entries and journals are found by these texts.
TEST(VariantSignatureTest, OnlyTensorsOfTheirOwnSayMore) {
  spec::Variant variant = plain();
  variant.tensors.out.dtype = spec::DType::F16;
  EXPECT_EQ(textOf(variant), "q32-kv8-d128-bf16-p16nhd-plain") << "the output's type does not matter";
  variant.tensors.k.dtype = spec::DType::F16;
  EXPECT_EQ(textOf(variant), "q32-kv8-d128-bf16_f16_bf16-p16nhd-plain");
  variant = plain();
  variant.tensors.v.dim = variant.tensors.out.dim = 64;
  EXPECT_EQ(textOf(variant), "q32-kv8-d128v64-bf16-p16nhd-plain");
  variant.tensors.valueInKey = true;
  EXPECT_EQ(textOf(variant), "q32-kv8-d128k64-bf16-p16nhd-plain");
  variant.tensors.k.dtype = variant.tensors.v.dtype = spec::DType::F8E4M3;
  variant.tensors.scaleColumns = 16;
  EXPECT_EQ(textOf(variant), "q32-kv8-d128k64s16-bf16_fp8_e4m3_fp8_e4m3-p16nhd-plain");
  variant = plain();
  variant.tensors.k.dtype = variant.tensors.v.dtype = spec::DType::F8E4M3;
  variant.tensors.byteProducts = true;
  EXPECT_EQ(textOf(variant), "q32-kv8-d128-bf16_fp8_e4m3_fp8_e4m3_fp8_e4m3-p16nhd-plain");
}

TEST(VariantSignatureTest, WhatDoesNotChangeTimesIsLeftOut) {
  spec::Variant variant = plain();
  variant.name = "other";
  variant.scale = 0.3;
  variant.withLse = true;
  variant.schedule.emplace();
  EXPECT_EQ(textOf(variant), textOf(plain()));
}

TEST(VariantSignatureTest, HooksAreToldApartByWhatTheyCompute) {
  const auto windowed = [](int window, const char *name) {
    test::VariantBuilder builder(32, 8, 128);
    builder.variant.mask =
        builder.op(spec::ExprOp::Gt, spec::ScalarType::Bool,
                   {builder.read(spec::Builtin::KvPos),
                    builder.op(spec::ExprOp::Sub, spec::ScalarType::I32,
                               {builder.read(spec::Builtin::QPos), builder.integer(window)})});
    builder.variant.name = name;
    return textOf(builder.variant);
  };
  // Kept in users' files: by the numbers of operations, names and types, which must not change.
  EXPECT_EQ(windowed(4096, "a"), "q32-kv8-d128-bf16-p16nhd-ce320b50");
  EXPECT_EQ(windowed(4096, "a"), windowed(4096, "b"));
  EXPECT_NE(windowed(4096, "a"), windowed(1024, "a"));
  EXPECT_NE(windowed(4096, "a"), textOf(plain()));
  EXPECT_TRUE(VariantSignature::parse(windowed(4096, "a")));

  test::VariantBuilder sunk(32, 8, 128);
  sunk.variant.sink = sunk.constant(1);
  EXPECT_NE(textOf(sunk.variant), textOf(plain()));

  test::VariantBuilder wide(32, 8, 128);
  wide.variant.bound = spec::MaskBound::Path;
  EXPECT_NE(textOf(wide.variant), textOf(plain()));

  test::VariantBuilder scored(32, 8, 128);
  scored.variant.score = scored.read(spec::Builtin::S);
  test::VariantBuilder biased(32, 8, 128);
  biased.variant.normalize = spec::Normalize::Sigmoid;
  biased.variant.sigmoidBias = biased.read(spec::Builtin::S);
  EXPECT_NE(textOf(scored.variant), textOf(biased.variant));
}

TEST(VariantSignatureTest, TheTextIsCanonicalAndReadBack) {
  for (const char *text : {"q32-kv8-d128-bf16-p16nhd-plain", "q64-kv8-d80-f16-p1hnd-sigmoid",
                           "q16-kv1-d64-bf16-contiguous-0123abcd", "q32-kv8-d192v128-bf16-p16nhd-plain",
                           "q16-kv1-d576k512-f16-p16nhd-plain", "q32-kv8-d64k64-bf16_f16_f16-p16nhd-plain"}) {
    const auto signature = VariantSignature::parse(text);
    ASSERT_TRUE(signature) << text;
    EXPECT_EQ(signature->text(), text);
  }
  for (const char *text : {"",
                           "q32",
                           "q32-kv8-d128-bf16-p16nhd",
                           "q32-kv8-d128-bf16-p16nhd-",
                           "q32-kv8-d128-bf16-p16-plain",
                           "q32-kv8-d128-bf16-p0nhd-plain",
                           "q032-kv8-d128-bf16-p16nhd-plain",
                           "q32-kv0-d128-bf16-p16nhd-plain",
                           "q32-kv5-d128-bf16-p16nhd-plain",
                           "q32-kv8-d128-f32-p16nhd-plain",
                           "q32-kv8-d128-bf16-p16nhd-PLAIN",
                           "q32-kv8-d128-bf16-p16nhd-plain-",
                           "q32-kv8-d128-bf16-p-16nhd-plain",
                           "q32-kv8-d128-bf16-contiguoushnd-plain",
                           "q32-kv8-d128v128-bf16-p16nhd-plain",
                           "q32-kv8-d128k144-bf16-p16nhd-plain",
                           "q32-kv8-d128k128-bf16_bf16_f16-p16nhd-plain",
                           "q32-kv8-d128-bf16_bf16_bf16-p16nhd-plain",
                           "q32-kv8-d128-bf16_f16-p16nhd-plain",
                           "q32-kv8-d128w64-bf16-p16nhd-plain",
                           "q32-kv8-d100-bf16-p16nhd-plain"})
    EXPECT_FALSE(VariantSignature::parse(text)) << text;
}

TEST(VariantSignatureTest, ItsVariantHasTheSameSignature) {
  for (const char *text :
       {"q32-kv8-d128-bf16-p16nhd-plain", "q16-kv1-d64-f16-contiguous-sigmoid",
        "q32-kv8-d128-bf16_fp8_e4m3_fp8_e4m3-p16nhd-plain", "q32-kv8-d128-f16_fp8_e5m2_f16-p16nhd-plain",
        "q16-kv1-d576k512-bf16-p64nhd-plain", "q16-kv1-d576k512s128-bf16_fp8_e4m3_fp8_e4m3-p64nhd-plain"})
    EXPECT_EQ(textOf(VariantSignature::parse(text)->variant()), text);
}

TEST(VariantSignatureTest, OnlyVariantsOfOneShapeAreComparable) {
  const VariantSignature base = VariantSignature::of(plain());
  EXPECT_EQ(distance(base, base), 0);
  for (int VariantSignature::*member : {&VariantSignature::queryHeads, &VariantSignature::kvHeads}) {
    VariantSignature other = base;
    other.*member *= 2;
    EXPECT_EQ(distance(base, other), std::nullopt);
  }
  VariantSignature other = base;
  for (spec::TensorType spec::Tensors::*tensor : {&spec::Tensors::q, &spec::Tensors::k, &spec::Tensors::v}) {
    other = base;
    (other.tensors.*tensor).dim *= 2;
    EXPECT_EQ(distance(base, other), std::nullopt);
  }
  other = base;
  other.tensors.valueInKey = true;
  EXPECT_EQ(distance(base, other), std::nullopt);
  other = base;
  other.tensors.scaleColumns = 16;
  EXPECT_EQ(distance(base, other), std::nullopt);
  other = base;
  other.tensors.byteProducts = true;
  EXPECT_EQ(distance(base, other), std::nullopt);
  other = base;
  other.tensors = spec::Tensors::alike(128, spec::DType::F16);
  EXPECT_GT(*distance(base, other), 0);
  other = base;
  other.cache.pageSize = 1;
  EXPECT_GT(*distance(base, other), 0);
  other = base;
  other.cache.order = spec::PageOrder::Hnd;
  EXPECT_GT(*distance(base, other), 0);
  other = base;
  other.hooks = "01234567";
  EXPECT_GT(*distance(base, other), 0);
  VariantSignature third = base;
  third.hooks = "89abcdef";
  EXPECT_GT(*distance(third, other), *distance(base, other)) << "plain is nearer than other hooks";
  EXPECT_EQ(distance(third, other), distance(other, third));
}

} // namespace
} // namespace deft::config_cache
