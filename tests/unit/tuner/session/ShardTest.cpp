#include "tuner/session/Shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::session {
namespace {

using testing::HasSubstr;

TEST(ShardTest, IsWrittenAsItIsRead) {
  for (const char *text : {"0/1", "3/4", "99999/100000"}) {
    const auto shard = parseShard(text);
    ASSERT_TRUE(shard.ok()) << shard.error().message;
    EXPECT_EQ(shard->text(), text);
  }
}

TEST(ShardTest, WhatIsNoShardIsNamed) {
  for (const char *text : {"", "1", "1/", "/2", "a/2", "1/b", "1/2/3", " 1/2", "1.0/2", "99999999999/2"}) {
    const auto shard = parseShard(text);
    ASSERT_FALSE(shard.ok()) << text;
    EXPECT_EQ(shard.error().message, "`" + std::string(text) + "` is no shard");
  }
  const auto last = parseShard("4/4");
  ASSERT_FALSE(last.ok());
  EXPECT_EQ(last.error().message, "there is no shard 4/4");
  EXPECT_EQ(last.error().hint, "shards count from 0: 0/4 to 3/4");
  EXPECT_EQ(parseShard("-1/4").error().message, "there is no shard -1/4");
  EXPECT_EQ(parseShard("1/1").error().hint, "shards count from 0: 0/1");
  for (const char *text : {"0/0", "0/-3", "0/100001"})
    EXPECT_THAT(parseShard(text).error().message, HasSubstr("a session has 1 to 100000 shards, not "));
}

TEST(ShardTest, EachClassHasOneOwner) {
  const std::vector<int> classes{10, 11, 12, 13, 14};
  EXPECT_EQ(ownClasses(classes, std::nullopt), classes);
  EXPECT_EQ(ownClasses(classes, Shard{0, 2}), (std::vector<int>{10, 12, 14}));
  EXPECT_EQ(ownClasses(classes, Shard{1, 2}), (std::vector<int>{11, 13}));
  EXPECT_TRUE(ownClasses(classes, Shard{6, 7}).empty());
  for (int count = 1; count < 8; ++count) {
    std::vector<int> all;
    for (int i = 0; i < count; ++i)
      for (const int one : ownClasses(classes, Shard{i, count}))
        all.push_back(one);
    EXPECT_THAT(all, testing::UnorderedElementsAreArray(classes)) << count;
  }
}

} // namespace
} // namespace deft::session
