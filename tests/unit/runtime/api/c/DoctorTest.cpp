#include "tests/unit/runtime/api/c/TestHandles.h"

#include <gmock/gmock.h>

namespace deft::c_test {
namespace {

using testing::HasSubstr;

TEST(DoctorTest, TheReportIsJson) {
  const auto report = made<Owned<char>>(deft_doctor);
  for (const char *key : {"\"usable\"", "\"compiler\"", "\"cpu\"", "\"gpu\"", "\"nvrtc\"", "\"cache\""})
    EXPECT_THAT(report.get(), HasSubstr(key));
  EXPECT_EQ(deft_doctor(nullptr), DEFT_USAGE);
}

TEST(DoctorTest, TheSupportTableIsJson) {
  const auto table = made<Owned<char>>(deft_support);
  for (const char *key : {"\"attention\"", "\"interfaces\"", "\"engines\""})
    EXPECT_THAT(table.get(), HasSubstr(key));
  EXPECT_EQ(deft_support(nullptr), DEFT_USAGE);
}

} // namespace
} // namespace deft::c_test
