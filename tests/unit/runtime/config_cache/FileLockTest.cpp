#include "runtime/config_cache/FileLock.h"

#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>

namespace deft::config_cache {
namespace {

using module_cache::TestFolder;

TEST(FileLockTest, OneHoldsItAtATimeInAnyProcess) {
  const TestFolder folder;
  const std::string path = folder.path("lock");
  {
    const auto held = FileLock::take(path);
    ASSERT_TRUE(held) << held.error().message;
    const auto refused = FileLock::take(path, 20);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, support::ErrorCode::Environment);
    EXPECT_EQ(refused.error().message, "`" + path + "` is locked by another process since 20 ms");
    EXPECT_EQ(module_cache::inChild([&] { return FileLock::take(path, 0) ? 1 : 0; }), 0);
  }
  EXPECT_TRUE(FileLock::take(path, 0)) << "the file stays, the lock does not";
  EXPECT_EQ(module_cache::inChild([&] { return FileLock::take(path, 0) ? 0 : 1; }), 0);
  EXPECT_EQ(module_cache::namesIn(folder.path()), std::vector<std::string>{"lock"});
}

TEST(FileLockTest, WhoWaitsGetsItWhenItIsFree) {
  const TestFolder folder;
  std::optional held = FileLock::take(folder.path("lock"));
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    held.reset();
  });
  const auto waited = FileLock::take(folder.path("lock"));
  other.join();
  EXPECT_TRUE(waited);
}

TEST(FileLockTest, ItMovesWithItsHolder) {
  const TestFolder folder;
  std::optional<FileLock> kept;
  {
    auto taken = FileLock::take(folder.path("lock"));
    ASSERT_TRUE(taken);
    kept.emplace(std::move(*taken));
  }
  EXPECT_FALSE(FileLock::take(folder.path("lock"), 0)) << "what was moved from lets nothing go";
  kept.reset();
  EXPECT_TRUE(FileLock::take(folder.path("lock"), 0));
}

TEST(FileLockTest, NothingIsLockedThroughALinkOrWhereNoFolderIs) {
  const TestFolder folder;
  module_cache::writeText(folder.path("other"), "");
  std::filesystem::create_symlink(folder.path("other"), folder.path("link"));
  for (const std::string &name : {std::string("link"), std::string("no/lock")}) {
    const auto refused = FileLock::take(folder.path(name), 0);
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().message.find("cannot lock `" + folder.path(name) + "`: "), 0U);
  }
}

} // namespace
} // namespace deft::config_cache
