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
