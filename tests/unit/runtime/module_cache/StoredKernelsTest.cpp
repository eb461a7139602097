#include "runtime/module_cache/StoredKernels.h"

#include "runtime/module_cache/CubinCache.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sys/stat.h>

namespace deft::module_cache {
namespace {

const std::string kFirst(64, 'a'), kSecond(64, 'b');

TEST(StoredKernelsTest, EntriesAreListedWithWhatTheyAre) {
  const TestFolder folder;
  const auto cache = CubinCache::open(folder.path());
  cache->store(kFirst, "// k: attention `a\x1b`, phase tiles.\n#include\n",
               {"cubin", {.entry = "k", .registers = 168}});
  cache->store(kSecond, "", {"other", {}});
  std::filesystem::create_directory(cache->folder() + "/.new-123456");
  writeText(cache->folder() + "/" + std::string(64, 'c'), "a file");
  EXPECT_EQ(cache->folder(), kernelsFolder(folder.path()));
  auto kernels = storedKernels(cache->folder());
  ASSERT_EQ(kernels.size(), 2u);
  if (kernels[0].key != kFirst)
    std::swap(kernels[0], kernels[1]);
  EXPECT_EQ(kernels[0].key, kFirst);
  EXPECT_EQ(kernels[0].what, "k: attention `a`, phase tiles.");
  EXPECT_EQ(kernels[0].registers, 168);
  EXPECT_GT(kernels[0].bytes, 200);
  EXPECT_EQ(kernels[1].what, "");
}

TEST(StoredKernelsTest, PipesAndLinksInThePlaceOfFilesAreNotRead) {
  const TestFolder folder;
  const auto cache = CubinCache::open(folder.path());
  cache->store(kFirst, "// what it is\n", {"cubin", {.entry = "k", .registers = 168}});
  const std::string entry = cache->folder() + "/" + kFirst, source = entry + "/kernel.cu";
  std::filesystem::rename(source, folder.path("theirs"));
  std::filesystem::create_symlink(folder.path("theirs"), source);
  std::filesystem::remove(entry + "/report.json");
  ASSERT_EQ(::mkfifo((entry + "/report.json").c_str(), 0600), 0); // nobody writes into it
  const auto kernels = storedKernels(cache->folder());
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].what, "");
  EXPECT_EQ(kernels[0].registers, 0);
}

TEST(StoredKernelsTest, WhatIsRemovedIsCompiledAgain) {
  const TestFolder folder;
  const auto cache = CubinCache::open(folder.path());
  cache->store(kFirst, "", {"cubin", {}});
  cache->store(kSecond, "", {"cubin", {}});
  ASSERT_TRUE(removeKernel(cache->folder(), kFirst));
  EXPECT_FALSE(cache->find(kFirst));
  EXPECT_TRUE(cache->find(kSecond));
  EXPECT_FALSE(removeKernel(cache->folder(), "..")) << "only entries go";
}

TEST(StoredKernelsTest, AFolderThatIsNotThereIsEmpty) {
  EXPECT_TRUE(storedKernels("/nowhere/at/all").empty());
}

} // namespace
} // namespace deft::module_cache
