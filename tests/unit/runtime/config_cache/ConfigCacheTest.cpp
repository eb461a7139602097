#include "runtime/config_cache/ConfigCache.h"

#include "tests/unit/runtime/config_cache/ConfigTesting.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <chrono>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace deft::config_cache {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

/// A user's folder with one file, and what is laid in its place.
class ConfigCacheTest : public testing::Test {
protected:
  ConfigCacheTest() {
    places_.userFolder = folder_.path("configs");
    EXPECT_TRUE(mergeWrite(path(), Owner::Deftc, h200(), {someEntry()}));
  }
  std::string path() const { return places_.userFolder + "/" + h200().fileName(); }
  ConfigCache load() const { return ConfigCache::load(places_, h200()); }
  void expectNotUsed(const std::string &where, const std::string &why) const {
    const ConfigCache cache = load();
    EXPECT_TRUE(cache.entries().empty());
    EXPECT_THAT(cache.notes(), ElementsAre("`" + where + "`: " + why + "; it is not used"));
  }

  module_cache::TestFolder folder_;
  Places places_;
};

TEST_F(ConfigCacheTest, WhatIsTheUsersAloneIsUsed) { EXPECT_EQ(load().entries().size(), 1U); }

TEST_F(ConfigCacheTest, AFolderThatOthersMayWriteIsNotUsed) {
  for (const mode_t mode : {0777, 0775}) {
    ASSERT_EQ(::chmod(places_.userFolder.c_str(), mode), 0);
    expectNotUsed(places_.userFolder, "other users may write it");
  }
}

TEST_F(ConfigCacheTest, AFileThatOthersMayWriteIsNotUsed) {
  ASSERT_EQ(::chmod(path().c_str(), 0666), 0);
  expectNotUsed(path(), "other users may write it");
}

TEST_F(ConfigCacheTest, AFileOfAnotherUserIsNotUsed) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only root can give a file away";
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(::chown(path().c_str(), kNobody, kNobody), 0);
  expectNotUsed(path(), "it belongs to user 65534, not to 0");
  ASSERT_EQ(::chown(places_.userFolder.c_str(), kNobody, kNobody), 0);
  expectNotUsed(places_.userFolder, "it belongs to user 65534, not to 0");
}

TEST_F(ConfigCacheTest, APipeInThePlaceOfAFileIsNotWaitedFor) {
  fs::remove(path());
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  const int status = module_cache::inChild([&] {
    ::alarm(20); // the child dies of it where it waits for a writer
    return load().entries().empty() && load().notes().size() == 1 ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  expectNotUsed(path(), "it is a pipe, not a file");
}

TEST_F(ConfigCacheTest, ALinkInThePlaceOfAFileOrOfTheFolderIsNotFollowed) {
  const std::string theirs = folder_.path("theirs.json");
  fs::rename(path(), theirs);
  fs::create_symlink(theirs, path());
  expectNotUsed(path(), "it is a link, which is not followed here");
  fs::rename(places_.userFolder, folder_.path("elsewhere"));
  fs::create_symlink(folder_.path("elsewhere"), places_.userFolder);
  expectNotUsed(places_.userFolder, "it is a link, which is not followed here");
}

TEST_F(ConfigCacheTest, AFileBeyondTheLimitIsNotRead) {
  fs::resize_file(path(), (std::uintmax_t{64} << 20) + 1);
  expectNotUsed(path(), "it has 67108865 bytes, more than the limit of 67108864");
}

// What somebody names may be anybody's, but is no more waited for, nor read without end.
TEST_F(ConfigCacheTest, AnOverrideThatNeverEndsIsNotRead) {
  fs::remove_all(places_.userFolder);
  const std::string pipe = folder_.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string &endless : {std::string("/dev/zero"), pipe}) {
    places_.overridePath = endless;
    const int status = module_cache::inChild([&] {
      ::alarm(20);
      return load().entries().empty() && !checkOverride(endless) && !readConfig(endless, DeviceKey::Kind::Gpu)
                 ? 0
                 : 1;
    });
    EXPECT_EQ(status, 0) << endless;
    expectNotUsed(endless, endless == pipe ? "it is a pipe, not a file" : "it is a device, not a file");
  }
  places_.overridePath = folder_.path("large.json");
  module_cache::writeText(places_.overridePath, "{");
  fs::resize_file(places_.overridePath, std::uintmax_t{1} << 40);
  EXPECT_FALSE(readConfig(places_.overridePath, DeviceKey::Kind::Gpu));
  expectNotUsed(places_.overridePath, "it has 1099511627776 bytes, more than the limit of 67108864");
}

TEST_F(ConfigCacheTest, AConfigThatIsNoJsonSaysWhereAndWhy) {
  const std::string torn = folder_.path("torn.json");
  module_cache::writeText(torn, "{\n \"partition\"");
  const std::string reason = "`" + torn + "`: not valid JSON at 2:13: unexpected end of input, expected `:`";
  EXPECT_EQ(readConfig(torn, DeviceKey::Kind::Gpu).error().message, reason);
  EXPECT_EQ(checkOverride(torn).error().message, reason);
}

TEST_F(ConfigCacheTest, AnOverrideMayBelongToAnybody) {
  fs::rename(path(), folder_.path("theirs.json"));
  places_.overridePath = folder_.path("theirs.json");
  ASSERT_EQ(::chmod(places_.overridePath.c_str(), 0666), 0);
  EXPECT_EQ(load().entries().size(), 1U);
}

} // namespace
} // namespace deft::config_cache
