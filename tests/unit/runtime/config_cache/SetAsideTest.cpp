#include "runtime/config_cache/SetAside.h"

#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace deft::config_cache {
namespace {

TEST(SetAsideTest, EachTimeItIsAnotherCopyAndTheFileStays) {
  const module_cache::TestFolder folder;
  const std::string path = folder.path("file.json");
  for (const std::string text : {"one", "two"}) {
    module_cache::writeText(path, text);
    const auto aside = setAside(path);
    ASSERT_TRUE(aside) << aside.error().message;
    EXPECT_EQ(*aside, path + (text == "one" ? ".broken-1" : ".broken-2"));
    EXPECT_EQ(module_cache::readText(*aside), text);
    EXPECT_EQ(module_cache::readText(path), text);
  }
  EXPECT_FALSE(setAside(folder.path("none.json")));
}

TEST(SetAsideTest, NothingIsReadOrWrittenThroughALink) {
  const module_cache::TestFolder folder;
  const std::string path = folder.path("file.json"), theirs = folder.path("theirs");
  module_cache::writeText(path, "one");
  std::filesystem::create_symlink(theirs, path + ".broken-1"); // which leads nowhere yet
  EXPECT_EQ(*setAside(path), path + ".broken-2");
  EXPECT_FALSE(std::filesystem::exists(theirs));
  std::filesystem::rename(path, theirs);
  std::filesystem::create_symlink(theirs, path);
  EXPECT_FALSE(setAside(path));
}

} // namespace
} // namespace deft::config_cache
