#include "runtime/api/Made.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace deft::api {
namespace {

struct Answer {
  const char *name;
  const char **notes;
};

Answer *makeAnswer(int notes, bool fails = false) {
  Made<Answer> made;
  made->name = made.text("an answer");
  made->notes = made.add<const char *>(static_cast<std::size_t>(notes));
  for (int i = 0; i < notes; ++i)
    made->notes[i] = made.text(std::string(static_cast<std::size_t>(i), 'n'));
  if (fails)
    throw std::runtime_error("half done");
  return made.release();
}

// That nothing of it is left behind or given back twice is what the address sanitizer sees here.
TEST(MadeTest, OneCallGivesAllOfItBack) {
  Answer *const answer = makeAnswer(5);
  EXPECT_STREQ(answer->name, "an answer");
  EXPECT_STREQ(answer->notes[0], "");
  EXPECT_STREQ(answer->notes[4], "nnnn");
  giveBack(answer);
  EXPECT_THROW((void)makeAnswer(5, /*fails=*/true), std::runtime_error);
  giveBack(nullptr);
}

TEST(MadeTest, MemoryIsAlignedForAllTypesAndZero) {
  Made<char> made(3);
  for (std::size_t count = 1; count < 20; ++count) {
    const auto *values = made.add<double>(count);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(values) % alignof(std::max_align_t), 0U);
    for (std::size_t i = 0; i < count; ++i)
      EXPECT_EQ(values[i], 0);
  }
}

TEST(MadeTest, TextsAreCopies) {
  std::string text = "a text";
  char *const copy = makeText(text);
  text = "another";
  EXPECT_STREQ(copy, "a text");
  giveBack(copy);
}

} // namespace
} // namespace deft::api
