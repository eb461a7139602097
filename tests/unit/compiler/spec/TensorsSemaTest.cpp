#include "tests/unit/compiler/spec/SpecTesting.h"

#include <cmath>

namespace deft::spec::testing {
namespace {

// Rule A2.
TEST(TensorsSemaTest, EveryRatioUpToTheLimitIsTaken) {
  for (int ratio : {1, 2, 3, 5, 6, 7, 16, 71, 128}) {
    Compiled compiled = compile("attention a { query_heads = " + std::to_string(2 * ratio) +
                                "; kv_heads = 2; head_dim = 64; }");
    EXPECT_EQ(compiled.only().ratio(), ratio);
  }
}

// Rule A3.
TEST(TensorsSemaTest, HeadDimsAreMultiplesOfEight) {
  for (int dim = -16; dim <= 300; ++dim) {
    Compiled compiled =
        compile("attention a { query_heads = 2; kv_heads = 2; head_dim = " + std::to_string(dim) + "; }");
    bool isLegal = dim >= 8 && dim <= 256 && dim % 8 == 0;
    EXPECT_EQ(compiled.errors == 0, isLegal) << dim;
    EXPECT_EQ(compiled.variants.empty() ? dim : compiled.only().tensors.k.dim, dim);
  }
}

// Rules A4 and A5.
TEST(TensorsSemaTest, ACacheHasADtypeOfItsOwn) {
  const auto tensorsOf = [](const char *text) { return compile(attention(text)).only().tensors; };
  for (const auto &[word, dtype] : {std::pair("fp8_e4m3", DType::F8E4M3),
                                    std::pair("fp8_e5m2", DType::F8E5M2), std::pair("bf16", DType::BF16)}) {
    const std::string text =
        std::string("dtype = f16; kv_cache = paged(page_size = 4, dtype = ") + word + ");";
    const Tensors tensors = tensorsOf(text.c_str());
    EXPECT_EQ(tensors.q.dtype, DType::F16);
    EXPECT_EQ(tensors.k.dtype, dtype);
    EXPECT_EQ(tensors.v.dtype, dtype);
    EXPECT_EQ(tensors.out.dtype, DType::F16);
  }
  EXPECT_EQ(tensorsOf("dtype = f16; kv_cache = paged(page_size = 4);").k.dtype, DType::F16);
}

// Rules A4, A7.
TEST(TensorsSemaTest, TheOutputFollowsTheDtypeUnlessItIsGiven) {
  EXPECT_EQ(compile(attention("dtype = f16;")).only().tensors.out.dtype, DType::F16);
  Compiled compiled = compile(attention("dtype = f16; output = bf16 with lse;"));
  EXPECT_EQ(compiled.only().tensors.v.dtype, DType::F16);
  EXPECT_EQ(compiled.only().tensors.out.dtype, DType::BF16);
  EXPECT_TRUE(compiled.only().withLse);
}

// Rule A5.
TEST(TensorsSemaTest, CacheLayouts) {
  auto cache = [](const std::string &text) {
    return compile(attention("kv_cache = " + text + ";")).only().cache;
  };
  CacheSpec contiguous = cache("contiguous");
  EXPECT_FALSE(contiguous.isPaged());
  EXPECT_EQ(contiguous.pageSize, 0);
  EXPECT_EQ(cache("paged").pageSize, 16);
  EXPECT_EQ(cache("paged(page_size = 1)").pageSize, 1);
  EXPECT_EQ(cache("paged(page_size = 7)").pageSize, 7);
  EXPECT_EQ(cache("paged(order = hnd)").order, PageOrder::Hnd);
  EXPECT_EQ(cache("paged(order = nhd, page_size = 1048576)").pageSize, 1048576);
}

/// What is wrong and how is in diagnostics/latents.deft and diagnostics/dims.deft.
std::string latent(const std::string &arguments, const std::string &items = "scale = 0.5;") {
  return "attention a { query_heads = 16; kv_cache = latent(" + arguments + "); " + items + " }";
}

// Rule A9.
TEST(TensorsSemaTest, KeysOfALatentCacheHoldTheValues) {
  const Compiled compiled = compile(
      latent("dim = 512, rope = 64, page_size = 64", "scale = 1 / sqrt(192); output = f16 with lse;"));
  const Variant &v = compiled.only();
  const TensorType key{DType::BF16, 576}, value{DType::BF16, 512};
  EXPECT_EQ(v.tensors, (Tensors{key, key, value, {DType::F16, 512}, /*valueInKey=*/true}));
  EXPECT_EQ(v.kvHeads, 1);
  EXPECT_EQ(v.queryHeads, 16);
  EXPECT_TRUE(v.cache.isPaged());
  EXPECT_EQ(v.cache.pageSize, 64);
  EXPECT_EQ(v.cache.order, PageOrder::Nhd);
  EXPECT_DOUBLE_EQ(v.scale, 1 / std::sqrt(192.0));
  EXPECT_EQ(compile(latent("rope = 16, dim = 64")).only().cache.pageSize, 16);
  EXPECT_EQ(compile(latent("dim = 64, rope = 16", "scale = 1; kv_heads = 1;")).only().kvHeads, 1);
}

TEST(TensorsSemaTest, ALatentCacheMayBeOf8BitFloats) {
  const Tensors tensors =
      compile(latent("dim = 64, rope = 32, dtype = fp8_e5m2", "scale = 1; dtype = f16;")).only().tensors;
  EXPECT_EQ(tensors.q, (TensorType{DType::F16, 96}));
  EXPECT_EQ(tensors.k, (TensorType{DType::F8E5M2, 96}));
  EXPECT_EQ(tensors.v, (TensorType{DType::F8E5M2, 64}));
  EXPECT_EQ(tensors.out, (TensorType{DType::F16, 64}));
}

// Rule A11.
TEST(TensorsSemaTest, RowsOfALatentCacheMayHaveScales) {
  const Tensors tensors =
      compile(latent("dim = 512, rope = 64, dtype = fp8_e4m3, scales = 128")).only().tensors;
  EXPECT_EQ(tensors.scaleColumns, 128);
  EXPECT_EQ(tensors.keyRow().dim, 656);
  EXPECT_EQ(
      compile(latent("scales = 2 * 8, dtype = fp8_e5m2, rope = 16, dim = 64")).only().tensors.scaleColumns,
      16);
  EXPECT_EQ(compile(latent("dim = 64, rope = 16, dtype = fp8_e4m3")).only().tensors.scaleColumns, 0);
}

// Rule A12.
TEST(TensorsSemaTest, ProductsAreOf8BitFloatsWhereASpecSaysSo) {
  const std::string cached = "attention a { query_heads = 8; kv_heads = 2; head_dim = 64; kv_cache = "
                             "paged(dtype = fp8_e4m3); ",
                    heir = " attention b : a { products = fp8_e4m3; }";
  EXPECT_FALSE(compile(cached + "}").only().tensors.byteProducts);
  const Tensors tensors = compile(cached + "products = fp8_e4m3; }").only().tensors;
  EXPECT_TRUE(tensors.byteProducts);
  EXPECT_EQ(tensors.q.dtype, DType::BF16);
  for (const char *beside :
       {"param k : f32[tokens, kv_heads]; score = s * k[token, kv_head];", "query = x * 2.0;",
        "output = x * 2.0 as f16 with lse;", "mask = kv_pos > q_pos - 64;",
        "param products : f32; score = s * products;", "normalize = softmax with sink(0.5);"})
    EXPECT_EQ(compile(cached + beside + "}" + heir).errors, 0) << beside;
  for (const char *beside :
       {"key = x * 2.0;", "value = x * 2.0;", "normalize = sigmoid;", "select { budget = 64; }",
        "kv_cache = paged;", "kv_cache = paged(dtype = fp8_e5m2);", "kv_cache = contiguous;",
        "kv_cache = latent(dim = 64, rope = 16, dtype = fp8_e4m3); scale = 1.0;"})
    EXPECT_GT(compile("attention a { query_heads = 8; kv_heads = 1; head_dim = 64; " + std::string(beside) +
                      "}" + heir)
                  .errors,
              0)
        << beside;
}

TEST(TensorsSemaTest, PartsOfALatentAreMultiplesOfSixteen) {
  for (int n = -16; n <= 600; n += 4) {
    const std::string text = std::to_string(n);
    const bool isMultiple = n > 0 && n % 16 == 0;
    EXPECT_EQ(compile(latent("dim = " + text + ", rope = 64")).errors == 0, isMultiple && n <= 512) << n;
    EXPECT_EQ(compile(latent("dim = 64, rope = " + text)).errors == 0, isMultiple && n <= 128) << n;
  }
}

TEST(TensorsSemaTest, WhatHoldsForOtherCachesHoldsForLatentOnes) {
  const Compiled compiled = compile(
      latent("dim = 64, rope = 16",
             "scale = 1; param gain : f32[tokens, kv_heads]; param sinks : f32[query_heads]; mask = kv_pos > "
             "q_pos - 8;"
             "query = dim < value_dim ? x : x + x_pair; key = x; value = x * gain[token, kv_head];"
             "score = 30 * tanh(s / 30); output = x * dim; normalize = softmax with sink(sinks[head]);"
             "select { budget = 16; by = query_head; }"));
  EXPECT_EQ(compiled.findings, "");
  const Variant &v = compiled.only();
  EXPECT_TRUE(v.query && v.valueFactor && v.score && v.output && v.sink && v.mask && v.select && !v.key);
  EXPECT_EQ(describe(v, *v.query), "(select:f32 (lt:bool dim 64) x (add:f32 x x_pair))");
}

// Rules A8, A9.
TEST(TensorsSemaTest, AnHeirMayHaveAnotherCache) {
  const Compiled compiled = compile(
      latent("dim = 64, rope = 16") +
      "attention b : a { kv_heads = query_heads; key_dim = 48; value_dim = 32; kv_cache = contiguous; }"
      "attention c : b { query_heads = 4; head_dim = 64; }"
      "attention d : c { value_dim = 32; }");
  ASSERT_EQ(compiled.findings, "");
  ASSERT_EQ(compiled.variants.size(), 4u);
  const auto dims = [&](int i) { return dimText(compiled.variants[static_cast<std::size_t>(i)].tensors); };
  EXPECT_EQ(dims(0), "80 (v 64, in k)");
  EXPECT_EQ(dims(1), "48 (v 32)");
  EXPECT_EQ(compiled.variants[1].kvHeads, 16);
  EXPECT_EQ(dims(2), "64");
  EXPECT_EQ(compiled.variants[2].kvHeads, 4);
  EXPECT_EQ(dims(3), "64 (v 32)");
}

// Rule A10.
TEST(TensorsSemaTest, KeysAndValuesMayHaveDimsOfTheirOwn) {
  const Variant v =
      compile("attention a { query_heads = 4; kv_heads = 2; key_dim = 192; value_dim = 128; }").only();
  const TensorType key{DType::BF16, 192}, value{DType::BF16, 128};
  EXPECT_EQ(v.tensors, (Tensors{key, key, value, value, /*valueInKey=*/false}));
  EXPECT_DOUBLE_EQ(v.scale, 1 / std::sqrt(192.0));
  for (int dim = -16; dim <= 300; ++dim)
    for (const char *key : {"key_dim", "value_dim"}) {
      const std::string other = key[0] == 'k' ? "value_dim" : "key_dim";
      const bool isLegal = dim >= 8 && dim <= 256 && dim % 8 == 0;
      EXPECT_EQ(compile("attention a { query_heads = 2; kv_heads = 2; " + other + " = 64; " + key + " = " +
                        std::to_string(dim) + "; }")
                        .errors == 0,
                isLegal)
          << key << " = " << dim;
    }
}

// Rules E1, F6.
TEST(TensorsSemaTest, DimsAreNamesInExpressions) {
  const auto score = [](const std::string &items) {
    const Compiled compiled = compile("attention a { query_heads = 4; kv_heads = 2; " + items +
                                      " score = s * key_dim + value_dim; }");
    return compiled.variants.empty() ? compiled.findings : describe(compiled.only(), *compiled.only().score);
  };
  EXPECT_EQ(score("head_dim = 64;"), "(add:f32 (mul:f32 s 64f) 64f)");
  EXPECT_EQ(score("key_dim = 96; value_dim = 64;"), "(add:f32 (mul:f32 s 96f) 64f)");
  // They came later than many specs: what is declared hides them.
  EXPECT_EQ(score("head_dim = 64; param key_dim : f32; let value_dim = 2;"),
            "(add:f32 (mul:f32 s key_dim) 2f)");
  // `head_dim` is both, where they are one.
  EXPECT_EQ(compile("attention a { query_heads = 4; kv_heads = 2; key_dim = 64; value_dim = 64; "
                    "score = s * head_dim; }")
                .errors,
            0u);
}

} // namespace
} // namespace deft::spec::testing
