#include "runtime/nvrtc/Nvrtc.h"

#include "compiler/target/Target.h"

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <functional>
#include <sys/wait.h>
#include <unistd.h>

namespace deft::nvrtc {
namespace {

/// NVRTC, or a skip with the reason: a build without CUDA has none.
#define REQUIRE_NVRTC(variable)                                                                              \
  const auto variable = Nvrtc::load();                                                                       \
  if (!variable)                                                                                             \
  GTEST_SKIP() << variable.error().message

TEST(NvrtcTest, CompilesToACubinForEveryTarget) {
  REQUIRE_NVRTC(nvrtc);
  const std::string source = "extern \"C\" __global__ void kernel(float *x) { x[threadIdx.x] += 1.f; }\n";
  for (const target::Target &target : target::targets()) {
    ASSERT_TRUE((*nvrtc)->supports(target.arch)) << target.arch;
    const auto compiled = (*nvrtc)->compile("kernel.cu", source, target.arch);
    ASSERT_TRUE(compiled) << compiled.error().message;
    EXPECT_EQ(compiled->cubin.substr(0, 4), "\x7f"
                                            "ELF");
    EXPECT_TRUE(compiled->ptx.empty());
    ASSERT_EQ(compiled->resources.size(), 1u) << compiled->log;
    EXPECT_EQ(compiled->resources[0].entry, "kernel");
    EXPECT_GT(compiled->resources[0].registers, 0);
    EXPECT_FALSE(compiled->resources[0].spills());
  }
}

// Beside a wheel's libnvrtc lie builtins that the loader's own path does not lead to.
TEST(NvrtcTest, LoadsTheBuiltinsThatLieBesideIt) {
  REQUIRE_NVRTC(nvrtc);
  const std::string name = "libnvrtc-builtins.so." + (*nvrtc)->version().text();
  EXPECT_NE(::dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD), nullptr) << (*nvrtc)->path();
}

// An unnamed namespace gets a name that differs between processes unless a seed is given.
TEST(NvrtcTest, TheSameTextGivesTheSameBytesInEveryProcess) {
  REQUIRE_NVRTC(nvrtc);
  const auto hashOfCubin = [&] {
    const auto compiled =
        (*nvrtc)->compile("kernel.cu",
                          "#include \"deft/merge.cuh\"\n"
                          "namespace { __device__ __noinline__ int local(int x) { return x * x; } }\n"
                          "extern \"C\" __global__ void kernel(int *x) { *x = local(*x); }\n",
                          "sm_90a");
    return compiled ? std::hash<std::string>()(compiled->cubin) : 0;
  };
  std::size_t hashes[2] = {0, 1};
  for (std::size_t &hash : hashes) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    if (::fork() == 0) {
      const std::size_t value = hashOfCubin();
      ::_exit(::write(ends[1], &value, sizeof value) == sizeof value ? 0 : 1);
    }
    ::close(ends[1]);
    EXPECT_EQ(::read(ends[0], &hash, sizeof hash), static_cast<ssize_t>(sizeof hash));
    ::close(ends[0]);
    ::wait(nullptr);
  }
  EXPECT_NE(hashes[0], 0u);
  EXPECT_EQ(hashes[0], hashes[1]);
}

TEST(NvrtcTest, PtxComesWhenAskedFor) {
  REQUIRE_NVRTC(nvrtc);
  const auto compiled = (*nvrtc)->compile("kernel.cu", "extern \"C\" __global__ void kernel() {}\n", "sm_80",
                                          {.lineInfo = false, .ptx = true});
  ASSERT_TRUE(compiled) << compiled.error().message;
  EXPECT_NE(compiled->ptx.find(".visible .entry kernel"), std::string::npos);
}

TEST(NvrtcTest, ASpillIsSeen) {
  REQUIRE_NVRTC(nvrtc);
  // 160 values live across a barrier, with 64 registers a thread: 1024 threads share an SM.
  const std::string source =
      "extern \"C\" __global__ void __launch_bounds__(1024) spiller(float *x) {\n"
      "  float v[160];\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < 160; ++i) v[i] = x[i * 1024 + threadIdx.x];\n"
      "  __syncthreads();\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < 160; ++i) x[i * 1024 + threadIdx.x] = v[159 - i] * v[i];\n"
      "}\n";
  const auto compiled = (*nvrtc)->compile("spiller.cu", source, "sm_80");
  ASSERT_TRUE(compiled) << compiled.error().message;
  ASSERT_EQ(compiled->resources.size(), 1u) << compiled->log;
  EXPECT_TRUE(compiled->resources[0].spills()) << compiled->log;
  EXPECT_LE(compiled->resources[0].registers, 64);
  EXPECT_GT(compiled->resources[0].stackBytes, 0);
}

TEST(NvrtcTest, AnErrorCarriesTheLogAndTheFileName) {
  REQUIRE_NVRTC(nvrtc);
  const auto compiled =
      (*nvrtc)->compile("bad.cu", "extern \"C\" __global__ void k() { nonsense; }\n", "sm_80");
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.error().code, support::ErrorCode::Internal);
  EXPECT_NE(compiled.error().message.find("bad.cu(1): error: identifier \"nonsense\" is undefined"),
            std::string::npos)
      << compiled.error().message;
}

TEST(NvrtcTest, IncludesResolveToTheTemplatesAlone) {
  REQUIRE_NVRTC(nvrtc);
  const auto compiled = (*nvrtc)->compile("bad.cu", "#include \"NvrtcTest.cpp\"\n", "sm_80");
  ASSERT_FALSE(compiled);
  EXPECT_NE(compiled.error().message.find("NvrtcTest.cpp"), std::string::npos);
}

TEST(NvrtcTest, AnUnknownArchitectureNamesTheVersion) {
  REQUIRE_NVRTC(nvrtc);
  const auto compiled = (*nvrtc)->compile("k.cu", "", "sm_999");
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.error().message, "NVRTC " + (*nvrtc)->version().text() + " does not know sm_999");
}

TEST(NvrtcTest, AMissingLibraryIsAnEnvironmentErrorWithAHint) {
  const auto nvrtc = Nvrtc::load({.path = "/nonexistent/libnvrtc.so"});
  ASSERT_FALSE(nvrtc);
  EXPECT_EQ(nvrtc.error().code, support::ErrorCode::Environment);
  EXPECT_EQ(nvrtc.error().message.find("no NVRTC at `/nonexistent/libnvrtc.so`"), 0u)
      << nvrtc.error().message;
  EXPECT_NE(nvrtc.error().hint.find("nvidia-cuda-nvrtc"), std::string::npos);
}

TEST(NvrtcTest, ALibraryThatIsNotNvrtcIsRefused) {
  const auto nvrtc = Nvrtc::load({.path = "libm.so.6"});
  ASSERT_FALSE(nvrtc);
  EXPECT_NE(nvrtc.error().message.find("is not NVRTC; version 12.8 or later is needed"), std::string::npos)
      << nvrtc.error().message;
}

} // namespace
} // namespace deft::nvrtc
