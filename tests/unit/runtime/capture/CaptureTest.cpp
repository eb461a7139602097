#include "runtime/capture/Capture.h"

#include "compiler/support/Log.h"
#include "runtime/capture/StepFile.h"
#include "tests/unit/runtime/capture/Steps.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace deft::capture {
namespace {

using module_cache::namesIn;
using testing::HasSubstr;

class CaptureTest : public testing::Test {
protected:
  CaptureTest() {
    support::setLog([this](const support::LogMessage &message) { told_.push_back(message.text); });
  }
  ~CaptureTest() override {
    stop();
    support::setLog(nullptr);
  }
  static std::string writeOne(const WriteTensors &tensors = {}, std::int64_t bytes = 0) {
    return write(test::branches(), tensors, bytes);
  }

  module_cache::TestFolder folder_;
  std::vector<std::string> told_;
};

TEST_F(CaptureTest, TheVariableNamesAFolderAndWhatIsRead) {
  const Settings plain = settingsOf("steps").value();
  EXPECT_EQ(plain.folder, "steps");
  EXPECT_FALSE(plain.readsDevice || plain.hasTensors);
  EXPECT_TRUE(settingsOf("a/b:device")->readsDevice);
  EXPECT_TRUE(settingsOf("steps:tensors")->hasTensors);
  EXPECT_EQ(settingsOf("one:two:")->folder, "one:two");
  EXPECT_EQ(settingsOf("steps:tensor").error().message, "`tensor` is neither `device` nor `tensors`");
  EXPECT_EQ(settingsOf(":device").error().message, "no folder is named");
}

TEST_F(CaptureTest, TheFirstStepsAndPowersOfTwoAreWanted) {
  std::vector<long long> wanted;
  for (long long step = 0; step <= 40; ++step)
    if (isWanted(step))
      wanted.push_back(step);
  EXPECT_THAT(wanted, testing::ElementsAre(1, 2, 3, 4, 8, 16, 32));
}

TEST_F(CaptureTest, StepsAreFilesThatCanBeRead) {
  ASSERT_TRUE(start({.folder = folder_.path("deep/steps")}));
  const std::string path = writeOne();
  EXPECT_TRUE(readStep(path)) << path;
  EXPECT_EQ(writeOne() == path, false);
  EXPECT_EQ(written().steps, 2);
  EXPECT_EQ(namesIn(folder_.path("deep/steps")).size(), 2u);
  EXPECT_THAT(told_.back(), HasSubstr("a step of `a` is in "));
}

TEST_F(CaptureTest, NothingIsWrittenWhenItIsOff) {
  EXPECT_FALSE(isOn());
  EXPECT_EQ(writeOne(), "");
  ASSERT_TRUE(start({.folder = folder_.path("steps")}));
  stop();
  EXPECT_EQ(writeOne(), "");
  EXPECT_TRUE(namesIn(folder_.path("steps")).empty());
}

TEST_F(CaptureTest, AFolderThatCannotBeHadIsAnErrorAtOnce) {
  module_cache::writeText(folder_.path("file"), "");
  EXPECT_FALSE(start({.folder = folder_.path("file/steps")}));
  EXPECT_FALSE(isOn());
}

TEST_F(CaptureTest, LimitsEndItAndAreToldOnce) {
  ASSERT_TRUE(start({.folder = folder_.path(), .mostSteps = 2}));
  for (int i = 0; i < 5; ++i)
    (void)writeOne();
  EXPECT_EQ(written().steps, 2);
  EXPECT_EQ(written().ended, "the limit of 2 steps is reached");
  EXPECT_EQ(std::count(told_.begin(), told_.end(), "capturing has ended: the limit of 2 steps is reached"),
            1);

  ASSERT_TRUE(start({.folder = folder_.path(), .mostBytes = 100}));
  EXPECT_EQ(writeOne(), "");
  EXPECT_EQ(written().ended, "the next step would make the files larger than the limit of 100 bytes");
}

TEST_F(CaptureTest, WhereThereIsNoRoomNothingFailsAndNothingIsLeft) {
  ASSERT_TRUE(start({.folder = folder_.path("gone"), .hasTensors = true}));
  std::filesystem::remove_all(folder_.path("gone"));
  EXPECT_EQ(writeOne(), "");
  EXPECT_FALSE(isOn());
  EXPECT_THAT(written().ended, HasSubstr("No such file or directory"));

  ASSERT_TRUE(start({.folder = folder_.path("full"), .hasTensors = true}));
  const auto fails = [](const std::string &folder) -> support::Result<std::int64_t> {
    module_cache::writeText(folder + "/q.npy", "a part");
    return support::Error{support::ErrorCode::Environment, "no space left", ""};
  };
  EXPECT_EQ(writeOne(fails), "");
  EXPECT_EQ(written().ended, "no space left");
  EXPECT_TRUE(namesIn(folder_.path("full")).empty());
}

TEST_F(CaptureTest, ADiskThatFillsUpEndsIt) {
  std::filesystem::create_directory(folder_.path("small"));
  const int result = module_cache::inChild([&] {
    if (!module_cache::mountSmallDisk(folder_.path("small"), 16))
      return module_cache::kNotAllowed;
    if (!start({.folder = folder_.path("small")}))
      return 1;
    for (int i = 0; i < 20; ++i)
      (void)writeOne();
    return !isOn() && written().steps > 0 && written().ended.find("No space left") != std::string::npos ? 0
                                                                                                        : 2;
  });
  if (result == module_cache::kNotAllowed)
    GTEST_SKIP() << "no file system can be mounted here";
  EXPECT_EQ(result, 0);
}

TEST_F(CaptureTest, TensorsLieBesideTheStep) {
  ASSERT_TRUE(start({.folder = folder_.path(), .hasTensors = true}));
  const auto writes = [](const std::string &folder) -> support::Result<std::int64_t> {
    module_cache::writeText(folder + "/q.npy", "values");
    return 6;
  };
  const auto step = readStep(writeOne(writes, 6));
  ASSERT_TRUE(step) << step.error().message;
  EXPECT_EQ(module_cache::readText(folder_.path(step->tensors + "/q.npy")), "values");
}

} // namespace
} // namespace deft::capture
