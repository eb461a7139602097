#include "runtime/api/Sized.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::api {
namespace {

using testing::HasSubstr;

/// A struct as this library knows it, and as versions before and after it do.
struct Options {
  std::size_t size;
  std::int32_t width;
  std::int32_t height;
};
struct Older {
  std::size_t size;
};
struct Newer {
  Options known;
  std::int64_t depth;
};

const Options *asOptions(const void *given) { return static_cast<const Options *>(given); }

TEST(SizedTest, NullIsAllZero) {
  const auto read = readSized<Options>("options", nullptr);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->width, 0);
  EXPECT_EQ(read->size, sizeof(Options));
}

TEST(SizedTest, WhatAnOlderCallerDoesNotHaveIsZero) {
  struct {
    Older older = {sizeof(Older)};
    std::int32_t behind[2] = {7, 7};
  } memory;
  const auto read = readSized("options", asOptions(&memory));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->width, 0);
  EXPECT_EQ(read->height, 0);
}

TEST(SizedTest, WhatANewerCallerDoesNotUseIsNoMatter) {
  Newer newer{.known = {sizeof(Newer), 3, 4}, .depth = 0};
  ASSERT_TRUE(readSized("options", asOptions(&newer)));
  EXPECT_EQ(readSized("options", asOptions(&newer))->height, 4);
  newer.depth = 1LL << 40;
  const auto refused = readSized("options", asOptions(&newer));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, support::ErrorCode::Usage);
  EXPECT_EQ(refused.error().field, "options");
  EXPECT_EQ(refused.error().message, "has a value at byte 21 of 24, this library knows its first 16");
  EXPECT_THAT(refused.error().hint, HasSubstr("newer version than"));
}

TEST(SizedTest, ASizeThatNoVersionHasIsAnError) {
  for (const std::size_t size : {0UL, 4UL, 12UL, 4104UL, ~0UL}) {
    Options options{.size = size, .width = 1, .height = 1};
    const auto read = readSized("options", &options);
    ASSERT_FALSE(read) << size;
    EXPECT_EQ(read.error().field, "options::size");
    EXPECT_EQ(read.error().message, "is " + std::to_string(size) + ", which no version of it has");
    EXPECT_FALSE(writeSized("options", Options{}, &options));
    EXPECT_EQ(options.width, 1);
  }
}

TEST(SizedTest, WhatIsReservedIsZero) {
  struct Reserving {
    std::size_t size;
    std::int64_t reserved;
  };
  const Reserving good{sizeof(Reserving), 0}, bad{sizeof(Reserving), 5};
  EXPECT_TRUE(readSized("options", &good));
  EXPECT_EQ(readSized("options", &bad).error().field, "options::reserved");
  EXPECT_EQ(readSized("options", &bad).error().message, "is 5, not 0");
}

TEST(SizedTest, WritesWhatBothKnow) {
  struct {
    Older older = {sizeof(Older)};
    std::int32_t behind[2] = {7, 7};
  } small;
  ASSERT_TRUE(writeSized("options", Options{0, 1, 2}, reinterpret_cast<Options *>(&small)));
  EXPECT_EQ(small.older.size, sizeof(Older));
  EXPECT_EQ(small.behind[0], 7); // another's memory

  Newer large{.known = {sizeof(Newer), 9, 9}, .depth = 9};
  ASSERT_TRUE(writeSized("options", Options{0, 1, 2}, &large.known));
  EXPECT_EQ(large.known.size, sizeof(Newer));
  EXPECT_EQ(large.known.height, 2);
  EXPECT_EQ(large.depth, 0);
}

} // namespace
} // namespace deft::api
