#include "runtime/doctor/Doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::doctor {
namespace {

TEST(DoctorTest, EveryFindingSaysSomethingAndWhatIsMissingHowToMendIt) {
  const Report report = examine();
  std::vector<std::string> names;
  for (const Finding &finding : report.findings) {
    names.push_back(finding.name);
    EXPECT_NE(finding.text, "") << finding.name;
    EXPECT_TRUE(finding.ok || !finding.mend.empty()) << finding.name;
  }
  EXPECT_THAT(names, testing::ElementsAre("compiler", "cpu", "gpu", "nvrtc", "cache"));
}

TEST(DoctorTest, TheReportIsUsableWhereOneOfTheTwoRuns) {
  Report report{{{"cpu", false, "too old", "another machine"}, {"gpu", true, "one", ""}}, false, true};
  EXPECT_TRUE(report.isUsable());
  EXPECT_EQ(toJson(report)["usable"], true);
  EXPECT_EQ(toJson(report)["cpu"]["mend"], "another machine");
  EXPECT_FALSE(toJson(report)["gpu"].contains("mend"));
  report.runsOnGpu = false;
  EXPECT_FALSE(report.isUsable());
}

} // namespace
} // namespace deft::doctor
