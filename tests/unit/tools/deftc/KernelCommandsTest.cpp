// build, doctor and emit --as cuda|ptx|cubin, called as the program calls them.
#include "compiler/package/Package.h"
#include "runtime/config_cache/SparseFiles.h"
#include "tests/support/RunDeftc.h"
#include "tests/unit/runtime/config_cache/ConfigTesting.h"
#include "tests/unit/runtime/config_cache/SparseTesting.h"
#include "tools/deftc/common/Context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

namespace deft::cli {
namespace {

using test::Outcome;

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

/// Commands run in a folder of their own, with a cache of their own.
class KernelCommandsTest : public testing::Test {
protected:
  void SetUp() override {
    folder_ = (fs::temp_directory_path() / "deft-cli-XXXXXX").string();
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    ::setenv("DEFT_CACHE_DIR", path("cache").c_str(), 1);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string &name) const { return folder_ + "/" + name; }

  static Outcome run(std::vector<std::string> arguments, bool terminal = false) {
    return test::runDeftc(std::move(arguments), {.isOutput = terminal});
  }

  static bool hasNvrtc() {
    return nlohmann::json::parse(run({"doctor", "--json"}).out).at("nvrtc").at("ok").get<bool>();
  }

private:
  std::string folder_;
};

TEST_F(KernelCommandsTest, DoctorFindsThisMachineUsable) {
  const Outcome text = run({"doctor"});
  EXPECT_EQ(text.code, kExitOk) << text.out;
  for (const char *name : {"compiler", "cpu", "gpu", "nvrtc", "cache"})
    EXPECT_THAT(text.out, HasSubstr(name));
  EXPECT_THAT(text.out, HasSubstr(path("cache") + "/cubin-v1, writable, 0 kernels"));

  const Outcome json = run({"doctor", "--json"});
  EXPECT_EQ(json.code, kExitOk);
  const auto report = nlohmann::json::parse(json.out);
  EXPECT_TRUE(report.at("usable").get<bool>());
  EXPECT_GE(report.at("cpu").at("isa_level").get<int>(), 3);
  EXPECT_TRUE(report.at("cache").at("writable").get<bool>());
}

TEST_F(KernelCommandsTest, DoctorSaysHowToMendTheCache) {
  std::ofstream(path("file")) << "in the way";
  ::setenv("DEFT_CACHE_DIR", path("file").c_str(), 1);
  const Outcome outcome = run({"doctor"});
  EXPECT_EQ(outcome.code, kExitOk) << "a cache is not needed";
  EXPECT_THAT(outcome.out,
              HasSubstr("--  cache     no kernel cache in `" + path("file") + "/cubin-v1`: Not a directory"));
  EXPECT_THAT(outcome.out,
              HasSubstr("= hint: set DEFT_CACHE_DIR to a folder of your own on a writable disk"));
}

TEST_F(KernelCommandsTest, EmitCudaShowsThePhaseAndTheArchitectureAskedFor) {
  const Outcome first = run({"emit", "llama3_8b", "--as", "cuda"});
  EXPECT_EQ(first.code, kExitOk) << first.err;
  EXPECT_THAT(first.out, StartsWith("// deft_llama3_8b_tiles: attention `llama3_8b`, phase tiles."));
  EXPECT_THAT(run({"emit", "llama3_8b", "--as", "cuda", "--arch", "sm_80"}).out,
              StartsWith("// deft_llama3_8b_wide"));
  EXPECT_THAT(run({"emit", "llama3_8b", "--as", "cuda", "--arch", "sm_80", "--phase", "narrow"}).out,
              StartsWith("// deft_llama3_8b_narrow"));
  EXPECT_THAT(run({"emit", "llama3_8b", "--as", "cuda", "--phase", "merge"}).out,
              StartsWith("// deft_llama3_8b_merge"));
  EXPECT_NE(run({"emit", "llama3_8b", "--as", "cuda", "--arch", "sm_86", "--phase", "narrow"}).out,
            run({"emit", "llama3_8b", "--as", "cuda", "--arch", "sm_100", "--phase", "narrow"}).out)
      << "less shared memory";
}

TEST_F(KernelCommandsTest, EmitShowsSparseLayersByTheRulesTileWhateverWasTuned) {
  const std::vector<std::string> sparse{"emit", "llama3_8b_sparse", "--as", "cuda", "--phase", "sparse"};
  config_cache::SparseEntry tuned = config_cache::someSparseEntry(); // of the same attention
  ASSERT_EQ(tuned.tileKv, 128);
  ASSERT_TRUE(saveSparse(config_cache::defaultPlaces(), config_cache::h200(), {tuned}).ok());
  const Outcome shown = run(sparse);
  EXPECT_EQ(shown.code, kExitOk) << shown.err;
  EXPECT_THAT(shown.out, StartsWith("// deft_llama3_8b_sparse_sparse: "));
  EXPECT_THAT(shown.out, HasSubstr("kTileKv = 64;"));
  std::string help = run({"emit", "--help"}).out;
  help = std::regex_replace(help, std::regex("\\s+"), " ");
  EXPECT_THAT(help, HasSubstr("Kernels have the untuned config"));
}

TEST_F(KernelCommandsTest, EmitCudaShowsTheKernelOfAConfig) {
  const auto emit = [&](const std::string &warps) {
    std::ofstream(path("config.json")) << R"({"partition": "union", "chunk_tokens": 0, "order": "mixed",
      "phases": [{"name": "light", "rows_above": -1, "family": "sm90", "tile_q": 64, "tile_kv": 64, "stages": 2,
                  "warps": )" << warps << "}]}";
    return run({"emit", "llama3_8b", "--as", "cuda", "--config", path("config.json")});
  };
  const Outcome light = emit("8");
  EXPECT_EQ(light.code, kExitOk) << light.err;
  EXPECT_THAT(light.out, StartsWith("// deft_llama3_8b_light: attention `llama3_8b`, phase light."));
  EXPECT_THAT(light.out, HasSubstr("kIsDealt = true;"));
  EXPECT_THAT(emit("5").err, HasSubstr("phase `light`: warps is 5; a block of family sm90 has 12, 8 or 16"));
  const Outcome absent = run({"emit", "llama3_8b", "--as", "cuda", "--config", path("absent.json")});
  EXPECT_NE(absent.code, kExitOk);
  EXPECT_THAT(absent.err, HasSubstr("absent.json"));
  std::ofstream(path("list.json")) << "[]";
  EXPECT_THAT(run({"emit", "llama3_8b", "--as", "cuda", "--config", path("list.json")}).err,
              HasSubstr("list.json` is no file with one config"));
}

TEST_F(KernelCommandsTest, AnOptionThatAKindDoesNotKnowIsRefused) {
  const Outcome stage = run({"emit", "llama3_8b", "--as", "json", "--stage", "imported"});
  EXPECT_EQ(stage.code, kExitUsage);
  EXPECT_THAT(stage.err, HasSubstr("`--stage` is for ir, not for json"));
  EXPECT_THAT(run({"emit", "llama3_8b", "--as", "llvm", "--arch", "sm_80"}).err,
              HasSubstr("`--arch` is for cuda, ptx, cubin, sass, not for llvm"));
  EXPECT_THAT(run({"emit", "llama3_8b", "--as", "cuda", "--cpu", "v3"}).err,
              HasSubstr("`--cpu` is for llvm, asm, not for cuda"));
}

TEST_F(KernelCommandsTest, EmitRefusesWhatDoesNotExist) {
  const Outcome phase = run({"emit", "llama3_8b", "--as", "cuda", "--phase", "tall"});
  EXPECT_EQ(phase.code, kExitUsage);
  EXPECT_EQ(phase.err, "error: `llama3_8b` has no phase `tall`\n  = hint: it is one of tiles, merge\n");
  const Outcome arch = run({"emit", "llama3_8b", "--as", "ptx", "--arch", "sm_90"});
  EXPECT_EQ(arch.code, kExitUsage);
  EXPECT_EQ(arch.err, "error: unknown architecture `sm_90`\n  = hint: did you mean `sm_90a`?\n");
}

TEST_F(KernelCommandsTest, BinaryOutputIsNotForATerminal) {
  const Outcome outcome = run({"emit", "llama3_8b", "--as", "cubin"}, /*terminal=*/true);
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_EQ(outcome.err,
            "error: `cubin` is binary and not for a terminal\n  = hint: write it to a file with -o FILE\n");
  EXPECT_EQ(outcome.out, "");
}

TEST_F(KernelCommandsTest, EmitPtxAndCubin) {
  if (!hasNvrtc())
    GTEST_SKIP() << "no NVRTC";
  const Outcome ptx = run({"emit", "llama3_8b", "--as", "ptx", "--phase", "merge", "--arch", "sm_80"});
  EXPECT_EQ(ptx.code, kExitOk) << ptx.err;
  EXPECT_THAT(ptx.out, HasSubstr(".target sm_80"));
  EXPECT_THAT(ptx.out, HasSubstr(".entry deft_llama3_8b_merge"));
  const Outcome cubin = run({"emit", "llama3_8b", "--as", "cubin", "--phase", "merge"});
  EXPECT_EQ(cubin.code, kExitOk) << cubin.err;
  EXPECT_THAT(cubin.out, StartsWith("\x7f"
                                    "ELF"));
}

TEST_F(KernelCommandsTest, BuildMakesTheSamePackageEachTimeAndItHoldsEverything) {
  if (!hasNvrtc())
    GTEST_SKIP() << "no NVRTC";
  const Outcome first = run({"build", "head_dims", "--variant", "heads_64", "--arch", "sm_80,sm_90a,sm_80",
                             "--cpu", "-o", path("one.deftpkg")});
  ASSERT_EQ(first.code, kExitOk) << first.err;
  EXPECT_THAT(first.out, HasSubstr("heads_64: sm_90a, items of up to 64 rows, "));
  EXPECT_THAT(first.out, HasSubstr("heads_64: sm_90a, items of up to 128 rows, "));
  EXPECT_THAT(first.out, HasSubstr("cpu: x86-64-v4, "));
  const Outcome second = run({"build", "head_dims", "--variant", "heads_64", "--arch", "sm_80,sm_90a",
                              "--cpu", "-o", path("two.deftpkg")});
  EXPECT_THAT(second.out, HasSubstr("from the cache"));

  const auto package = package::openPackage(path("one.deftpkg"));
  ASSERT_TRUE(package) << package.error().message;
  ASSERT_EQ(package->variants.size(), 1u);
  const package::PackagedVariant &variant = package->variants[0];
  EXPECT_EQ(variant.source.name, "heads_64");
  ASSERT_EQ(variant.kernels.size(), 3u); // for sm_90a there are two to choose from
  EXPECT_EQ(variant.kernels[1].arch, "sm_90a");
  EXPECT_NE(variant.kernels[1].attend.at(0).cubin, variant.kernels[2].attend.at(0).cubin);
  EXPECT_THAT(variant.kernels[1].attend.at(0).cubin, StartsWith("\x7f"
                                                                "ELF"));
  ASSERT_EQ(package->cpu.size(), 2u);
  EXPECT_THAT(package->cpu[0].sharedObject, StartsWith("\x7f"
                                                       "ELF"));
  EXPECT_THAT(package->specFiles.at(0).text, HasSubstr("heads_64"));
  EXPECT_EQ(package::writePackage(*package),
            package::writePackage(*package::openPackage(path("two.deftpkg"))));
}

TEST_F(KernelCommandsTest, ShowSaysWhatAPackageHolds) {
  if (!hasNvrtc())
    GTEST_SKIP() << "no NVRTC";
  ASSERT_EQ(run({"build", "llama3_8b", "--arch", "sm_90a", "-o", path("one.deftpkg")}).code, kExitOk);
  const Outcome shown = run({"show", path("one.deftpkg")});
  EXPECT_EQ(shown.code, kExitOk) << shown.err;
  EXPECT_THAT(shown.out,
              HasSubstr("llama3_8b: 32 query heads, 8 kv heads, head dim 128, bf16, pages of 16\n"));
  for (const char *name : {"rows_128", "rows_64", "rows_64_dealt", "rows_192"})
    EXPECT_THAT(shown.out, HasSubstr(std::string("  sm_90a ") + name + ": "));
  EXPECT_THAT(shown.out, testing::ContainsRegex("deft_llama3_8b_merge: [0-9]+ registers, 128 threads"));
  const nlohmann::json json = nlohmann::json::parse(run({"show", "--json", path("one.deftpkg")}).out);
  EXPECT_EQ(json["attentions"][0]["kernels"].size(), 4u);
  EXPECT_GT(json["attentions"][0]["kernels"][0]["attend"][0]["registers"], 0);
  EXPECT_THAT(run({"show", "--spec", path("one.deftpkg")}).out, HasSubstr("attention llama3_8b {"));
  EXPECT_EQ(run({"show", path("none.deftpkg")}).code, kExitEnvironment);
}

TEST_F(KernelCommandsTest, WithoutAPurposeAPackageIsForThisMachine) {
  const Outcome built = run({"build", "llama3_8b", "-o", path("here.deftpkg")});
  ASSERT_EQ(built.code, kExitOk) << built.err;
  EXPECT_THAT(built.out,
              testing::ContainsRegex("^for this machine: .*cpu; --arch, --cpu or --source chooses\n"));
  EXPECT_EQ(package::openPackage(path("here.deftpkg"))->cpu.size(), 2u);
  EXPECT_EQ(run({"build", "llama3_8b", "--source", "--cpu", "-o", path("p")}).code, kExitUsage);
}

TEST_F(KernelCommandsTest, EachOfTheDefaultKernelsCanBeShown) {
  const std::string wide = run({"emit", "llama3_8b", "--as", "cuda", "--kernel", "rows_128"}).out;
  EXPECT_EQ(wide, run({"emit", "llama3_8b", "--as", "cuda"}).out);
  EXPECT_NE(wide, run({"emit", "llama3_8b", "--as", "cuda", "--kernel", "rows_64_dealt"}).out);
  const Outcome none = run({"emit", "llama3_8b", "--as", "cuda", "--kernel", "wide"});
  EXPECT_EQ(none.code, kExitUsage);
  EXPECT_THAT(none.err, HasSubstr("it has rows_128, rows_64, rows_64_dealt, rows_192"));
}

TEST_F(KernelCommandsTest, IrIsShownAfterAPass) {
  const Outcome after = run({"emit", "mistral_7b", "--as", "ir", "--print-after", "deft-tile-analysis"});
  EXPECT_EQ(after.code, kExitOk) << after.err;
  EXPECT_THAT(after.out, HasSubstr("deft.attention @mistral_7b"));
  EXPECT_NE(after.out, run({"emit", "mistral_7b", "--as", "ir", "--stage", "imported"}).out);
  EXPECT_THAT(run({"emit", "mistral_7b", "--as", "ir", "--print-after", "ces"}).err,
              HasSubstr("no pass is called `ces`\n  = hint: did you mean `cse`?"));
}

/// Stands where nvdisasm is looked for, and says what it was given.
TEST_F(KernelCommandsTest, MachineCodeIsShownByNvdisasm) {
  if (!hasNvrtc())
    GTEST_SKIP() << "no NVRTC";
  fs::create_directories(path("bin"));
  std::ofstream(path("bin/nvdisasm")) << "#!/bin/sh\nhead -c 4 \"$1\" | tail -c 3\n";
  fs::permissions(path("bin/nvdisasm"), fs::perms::owner_all);
  const char *before = std::getenv("CUDA_HOME");
  const std::string kept = before ? before : "";
  ::setenv("CUDA_HOME", path("").c_str(), 1);
  const Outcome sass = run({"emit", "llama3_8b", "--as", "sass", "--phase", "merge"});
  std::ofstream(path("bin/nvdisasm")) << "#!/bin/sh\nexit 3\n";
  const Outcome broken = run({"emit", "llama3_8b", "--as", "sass", "--phase", "merge"});
  before ? ::setenv("CUDA_HOME", kept.c_str(), 1) : ::unsetenv("CUDA_HOME");
  EXPECT_EQ(sass.out, "ELF") << sass.err;
  EXPECT_EQ(broken.code, kExitEnvironment);
  EXPECT_THAT(broken.err, HasSubstr("could not read the cubin"));
}

TEST_F(KernelCommandsTest, APackageInTheSpecsPlaceIsCalledOne) {
  ASSERT_EQ(run({"build", "llama3_8b", "--source", "-o", path("a.deftpkg")}).code, kExitOk);
  for (const std::vector<std::string> &command : {std::vector<std::string>{"check", path("a.deftpkg")},
                                                  {"emit", path("a.deftpkg"), "--as", "json"},
                                                  {"build", path("a.deftpkg")}}) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, kExitUsage);
    EXPECT_THAT(outcome.err, HasSubstr("a.deftpkg` is a package, not the text of a spec"));
  }
}

TEST_F(KernelCommandsTest, BuildSaysWhatIsWrong) {
  const Outcome arch = run({"build", "llama3_8b", "--arch", "sm_75", "-o", path("p")});
  EXPECT_EQ(arch.code, kExitUsage);
  EXPECT_EQ(arch.err, "error: unknown architecture `sm_75`\n  = hint: it is one of sm_80, sm_86, sm_89, "
                      "sm_90a, sm_100, sm_120\n");
  const Outcome spec = run({"build", "no_such_spec", "-o", path("p")});
  EXPECT_EQ(spec.code, kExitEnvironment);
  const Outcome output = run({"build", "llama3_8b", "--source", "-o", "-"});
  EXPECT_EQ(output.code, kExitUsage) << "no file is called `-`";
  EXPECT_THAT(output.err, HasSubstr("a package cannot be written to standard output\n  = hint: name a file"));
  std::istringstream text("attention a { query_heads = 8; kv_heads = 4; head_dim = 64; }");
  const Outcome piped = test::runDeftc({"build", "-", "--source"}, {.input = &text});
  EXPECT_EQ(piped.code, kExitUsage);
  EXPECT_THAT(piped.err, HasSubstr("a piped spec has no name for a package"));
  const Outcome folder = run({"build", "llama3_8b", "-o", path("none/p")});
  EXPECT_EQ(folder.code, kExitEnvironment);
  EXPECT_THAT(folder.err, HasSubstr("cannot write `" + path("none/p") + "`"));
  EXPECT_FALSE(fs::exists(path("p")));
}

} // namespace
} // namespace deft::cli
