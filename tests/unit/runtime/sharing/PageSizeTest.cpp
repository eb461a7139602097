#include "runtime/sharing/PageSize.h"

#include <gtest/gtest.h>

namespace deft::sharing {
namespace {

TEST(PageSizeTest, DividesByAnySize) {
  for (const int size : {1, 2, 3, 16, 24, 1 << 20})
    for (const int tokens : {0, 1, 2, 3, 15, 16, 17, 95, 96, 97, (1 << 30) - 1, 1 << 30}) {
      EXPECT_EQ(PageSize(size).pageOf(tokens), tokens / size);
      EXPECT_EQ(PageSize(size).pagesFor(tokens), tokens / size + (tokens % size > 0));
    }
}

} // namespace
} // namespace deft::sharing
