#include "runtime/config_cache/Provenance.h"

#include "tests/support/LatentTensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace deft::config_cache {
namespace {

TEST(ProvenanceTest, ComesBackAsItWasWrittenAndWholeOnly) {
  const Provenance provenance{"0.2.0", "0123456789abcdef", "2026-11-27T08:30:00Z", "CUDA 13.0", "a note"};
  const nlohmann::json object = toJson(provenance);
  const auto read = provenanceFromJson(object);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, provenance);
  for (const auto &[key, value] : object.items()) {
    nlohmann::json broken = object;
    broken.erase(key);
    EXPECT_FALSE(provenanceFromJson(broken)) << key;
    broken = object;
    broken[key] = 7;
    EXPECT_FALSE(provenanceFromJson(broken)) << key;
  }
}

TEST(ProvenanceTest, KernelsOfACpuAndOfAGpuHaveHashesOfTheirOwn) {
  const std::string gpu = kernelHash(DeviceKey::Kind::Gpu, {}), cpu = kernelHash(DeviceKey::Kind::Cpu, {});
  EXPECT_EQ(gpu.size(), 16U);
  EXPECT_EQ(gpu, kernelHash(DeviceKey::Kind::Gpu, spec::Tensors::alike(128)));
  EXPECT_NE(gpu, cpu);
  EXPECT_EQ(sparseKernelHash().size(), 16U);
  EXPECT_NE(sparseKernelHash(), gpu); // which has family sm90, too
}

TEST(ProvenanceTest, KernelsOfLatentCachesHaveAHashOfTheirOwnOnGpus) {
  const spec::Tensors latent = test::latentTensors();
  const std::string hash = kernelHash(DeviceKey::Kind::Gpu, latent);
  EXPECT_EQ(hash.size(), 16U);
  EXPECT_NE(hash, kernelHash(DeviceKey::Kind::Gpu, {}));
  EXPECT_EQ(kernelHash(DeviceKey::Kind::Cpu, latent), kernelHash(DeviceKey::Kind::Cpu, {}));
}

TEST(ProvenanceTest, KernelsThatMultiplyBytesHaveAHashOfTheirOwnOnGpus) {
  spec::Tensors bytes = spec::Tensors::alike(128);
  bytes.k.dtype = bytes.v.dtype = spec::DType::F8E4M3;
  EXPECT_EQ(kernelHash(DeviceKey::Kind::Gpu, bytes), kernelHash(DeviceKey::Kind::Gpu, {}));
  bytes.byteProducts = true;
  EXPECT_NE(kernelHash(DeviceKey::Kind::Gpu, bytes), kernelHash(DeviceKey::Kind::Gpu, {}));
  EXPECT_EQ(kernelHash(DeviceKey::Kind::Cpu, bytes), kernelHash(DeviceKey::Kind::Cpu, {}));
}

TEST(ProvenanceTest, CommentsAndLayoutAreNoCode) {
  EXPECT_EQ(codeOf("int a = b / c; // why\n\n  return a;//"), codeOf("int a=b/c;return a;"));
  EXPECT_NE(codeOf("int a = b / c;"), codeOf("int a = b / d;"));
}

TEST(ProvenanceTest, ATimestampSortsAsItReads) {
  EXPECT_THAT(timestamp(),
              testing::MatchesRegex("20[0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z"));
}

} // namespace
} // namespace deft::config_cache
