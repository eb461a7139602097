#include "runtime/config_cache/SetAside.h"

#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gtest/gtest.h>

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

} // namespace
} // namespace deft::config_cache
