#include "compiler/spec/Tensors.h"

#include <gtest/gtest.h>

namespace deft::spec {
namespace {

/// As of latent attention: 64 dims of position behind 512 that are the value, too.
Tensors latent() {
  Tensors tensors = Tensors::alike(576);
  tensors.v.dim = tensors.out.dim = 512;
  tensors.valueInKey = true;
  return tensors;
}

TEST(TensorsTest, EachCountsItsOwnBytes) {
  EXPECT_EQ(Tensors::alike(128).k.rowBytes(), 256);
  EXPECT_EQ(Tensors::alike(128).cacheBytes(), 512);
  EXPECT_EQ(Tensors::alike(128).pairFlops(), 512);
  EXPECT_EQ(latent().cacheBytes(), 1152) << "v has none of its own";
  EXPECT_EQ(latent().pairFlops(), 2 * (576 + 512));
  Tensors apart = latent();
  apart.valueInKey = false;
  EXPECT_EQ(apart.cacheBytes(), 1152 + 1024);
}

TEST(TensorsTest, CachesOf8BitsHaveHalfTheBytes) {
  for (const DType cache : {DType::F8E4M3, DType::F8E5M2}) {
    Tensors tensors = Tensors::alike(128);
    tensors.k.dtype = tensors.v.dtype = cache;
    EXPECT_EQ(faultOf(tensors), std::nullopt);
    EXPECT_EQ(tensors.cacheBytes(), 256);
    EXPECT_FALSE(tensors.areAlike());
    Tensors all = Tensors::alike(128, cache);
    EXPECT_NE(faultOf(all).value_or("none").find("q is fp8_e"), std::string::npos);
    all.q.dtype = DType::F16;
    EXPECT_NE(faultOf(all).value_or("none").find("out is fp8_e"), std::string::npos);
  }
}

/// As of DeepSeek V3.2: 512 bytes, four scales, 64 elements of two bytes.
TEST(TensorsTest, ARowMayHaveScalesInIt) {
  Tensors tensors = latent();
  tensors.k.dtype = tensors.v.dtype = DType::F8E4M3;
  EXPECT_EQ(tensors.keyRow(), (TensorType{DType::F8E4M3, 576}));
  EXPECT_EQ(tensors.ropeOffset(), 512);
  EXPECT_EQ(tensors.scaled(), tensors);
  tensors.scaleColumns = 128;
  EXPECT_EQ(faultOf(tensors), std::nullopt);
  EXPECT_EQ(tensors.keyRow(), (TensorType{DType::F8E4M3, 656}));
  EXPECT_EQ(tensors.ropeOffset(), 528);
  EXPECT_EQ(tensors.cacheBytes(), 656);
  EXPECT_EQ(tensors.scaled(), latent());
  EXPECT_EQ(latent().ropeOffset(), 1024) << "in bytes";
  EXPECT_EQ(latent().keyRow(), latent().k);
  EXPECT_EQ(dtypeText(tensors), "bf16 (k fp8_e4m3, v fp8_e4m3, a scale for 128)");

  const auto faultWith = [&](auto change) {
    Tensors changed = tensors;
    change(changed);
    return faultOf(changed).value_or("none");
  };
  const std::string rest = " columns of v, which has 512: it must be for a multiple of 16 columns, and their "
                           "number a multiple of 4";
  EXPECT_EQ(faultWith([](Tensors &t) { t.scaleColumns = 8; }), "a scale is for 8" + rest);
  EXPECT_EQ(faultWith([](Tensors &t) { t.scaleColumns = 256; }), "a scale is for 256" + rest);
  EXPECT_EQ(faultWith([](Tensors &t) { t.scaleColumns = -128; }),
            "a scale is for -128 columns of v, it must be for 1 at least");
  const std::string none = "only latent caches of 8-bit floats have scales";
  EXPECT_EQ(faultWith([](Tensors &t) { t.valueInKey = false; }), none);
  EXPECT_EQ(faultWith([](Tensors &t) { t.k.dtype = t.v.dtype = DType::BF16; }), none);
}

TEST(TensorsTest, ProductsMayBeOfBytes) {
  Tensors tensors = Tensors::alike(128);
  tensors.k.dtype = tensors.v.dtype = DType::F8E4M3;
  tensors.byteProducts = true;
  EXPECT_EQ(faultOf(tensors), std::nullopt);
  EXPECT_EQ(dtypeText(tensors), "bf16 (k fp8_e4m3, v fp8_e4m3, products fp8_e4m3)");
  EXPECT_TRUE(tensors.scaled().byteProducts);
  Tensors other = tensors;
  other.v.dtype = DType::F8E5M2;
  EXPECT_EQ(faultOf(other), "products are of fp8_e4m3, k of fp8_e4m3 and v of fp8_e5m2");
  other = tensors;
  other.valueInKey = true;
  EXPECT_EQ(faultOf(other), "products are of fp8_e4m3, and v is in k's memory");
}

TEST(TensorsTest, AlikeIsAllButTheOutputsType) {
  Tensors tensors = Tensors::alike(64);
  EXPECT_TRUE(tensors.areAlike());
  tensors.out.dtype = DType::F16;
  EXPECT_TRUE(tensors.areAlike());
  for (TensorType Tensors::*tensor : {&Tensors::q, &Tensors::k, &Tensors::v, &Tensors::out}) {
    Tensors other = tensors;
    (other.*tensor).dim = 80;
    EXPECT_FALSE(other.areAlike());
  }
  for (TensorType Tensors::*tensor : {&Tensors::q, &Tensors::k, &Tensors::v}) {
    Tensors other = tensors;
    (other.*tensor).dtype = DType::F16;
    EXPECT_FALSE(other.areAlike());
  }
  tensors.valueInKey = true;
  EXPECT_FALSE(tensors.areAlike());
}

TEST(TensorsTest, FaultsSayWhatIsWrong) {
  EXPECT_EQ(faultOf(Tensors::alike(16)), std::nullopt);
  EXPECT_EQ(faultOf(latent()), std::nullopt);
  const auto faultWith = [](auto change) {
    Tensors tensors = latent();
    change(tensors);
    return faultOf(tensors).value_or("none");
  };
  EXPECT_EQ(faultWith([](Tensors &t) { t.k.dim = 0; }),
            "the dim of k is 0, it must be a positive multiple of 8");
  EXPECT_EQ(faultWith([](Tensors &t) { t.out.dim = 100; }),
            "the dim of out is 100, it must be a positive multiple of 8");
  EXPECT_EQ(faultOf(Tensors::alike(40)), std::nullopt);
  EXPECT_EQ(faultOf(Tensors{{DType::F16, 40}, {DType::F8E4M3, 40}, {DType::F8E4M3, 40}, {DType::F16, 40}}),
            "the dim of k is 40, as fp8_e4m3 it must be a multiple of 16");
  EXPECT_EQ(faultWith([](Tensors &t) { t.q.dim = 512; }),
            "q has dim 512 and k 576, their product is over one");
  EXPECT_EQ(faultWith([](Tensors &t) { t.out.dim = 256; }),
            "v has dim 512 and out 256, which is a sum of it");
  EXPECT_EQ(faultWith([](Tensors &t) { t.k.dtype = DType::F16; }), "v is in k's memory and of another dtype");
  EXPECT_EQ(faultWith([](Tensors &t) { t.v.dim = t.out.dim = 592; }),
            "v is in k's memory and has dim 592, more than k's 576");
}

TEST(TensorsTest, TextSaysWhatIsUnlike) {
  EXPECT_EQ(dimText(Tensors::alike(128)), "128");
  EXPECT_EQ(dimText(latent()), "576 (v 512, in k)");
  Tensors tensors = Tensors::alike(192);
  tensors.v.dim = tensors.out.dim = 128;
  EXPECT_EQ(dimText(tensors), "192 (v 128)");
  EXPECT_EQ(dtypeText(tensors), "bf16");
  tensors.v.dtype = DType::F16;
  EXPECT_EQ(dtypeText(tensors), "bf16 (k bf16, v f16)");
}

} // namespace
} // namespace deft::spec
