/// The processes of a session, with a device that does what its test says.

#include "tuner/session/ChildProcesses.h"

#include "tests/unit/runtime/config_cache/ConfigTesting.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <unistd.h>

namespace deft::session {
namespace {

using measure::Message;
using nlohmann::json;
using support::Error;
using support::ErrorCode;

/// What happens to a candidate is in its name. `once` is a file that outlives the process.
class Device : public measure::Service {
public:
  explicit Device(std::string once) : once_(std::move(once)) {}

  support::Result<Message> handle(const Message &request) override {
    const std::string op = request.head.at("op"), id = request.head.value("id", "");
    if (op == "device")
      return Message{{{"key", config_cache::toJson(config_cache::h200())}, {"driver", "580"}}, {}};
    if (op == "class")
      class_ = request.head.at("class");
    if (op == "prepare")
      ++prepared_;
    if (op == "forget")
      ++forgotten_;
    if (id == op + " dies")
      ::_exit(3);
    if (id == op + " is killed once" && !std::filesystem::exists(once_)) {
      module_cache::writeText(once_, "");
      ::raise(SIGKILL);
    }
    if (id == op + " has no plan")
      return Error{ErrorCode::Diagnostics, "no plan", ""};
    if (id == op + " breaks the device")
      return Error{ErrorCode::Environment, "illegal address", ""};
    if (op == "check")
      return Message{{{"right", id != "wrong"}, {"why", "one row"}}, {}};
    if (op == "time")
      return Message{{{"us", {double(class_), double(prepared_), double(forgotten_), double(::getpid())}}},
                     {}};
    return Message{json::object(), {}};
  }

private:
  std::string once_;
  int class_ = -1, prepared_ = 0, forgotten_ = 0;
};

class ChildProcessesTest : public testing::Test {
protected:
  /// "right", or what is wrong and where.
  std::string admit(const std::string &id, bool isChecked = false) {
    const auto fault = processes.admit(id, config_cache::someConfig(), isChecked);
    return fault ? fault->stage + ": " + fault->reason : "right";
  }
  /// {class, prepared, forgotten, process} as the device's process has them.
  std::vector<double> time(const std::string &id) {
    std::vector<double> us;
    const auto fault = processes.time(id, 0, 1, us);
    EXPECT_FALSE(fault) << fault->reason;
    return fault ? std::vector<double>(4) : us;
  }

  module_cache::TestFolder folder;
  ChildProcesses processes{[this]() -> support::Result<std::unique_ptr<measure::Service>> {
                             return std::unique_ptr<measure::Service>(new Device(folder.path("once")));
                           },
                           nullptr,
                           {}};
};

TEST_F(ChildProcessesTest, TheDeviceSaysWhatItIs) {
  const auto device = processes.device();
  ASSERT_TRUE(device) << device.error().message;
  EXPECT_EQ(device->key, config_cache::h200());
  EXPECT_EQ(device->driver, "580");
}

TEST_F(ChildProcessesTest, ACandidateIsPreparedOnceUntilItIsForgotten) {
  ASSERT_TRUE(processes.openClass(2));
  EXPECT_EQ(admit("a"), "right");
  EXPECT_EQ(admit("a", true), "right");
  const std::vector<double> first = time("a");
  EXPECT_EQ(first[0], 2);
  EXPECT_EQ(first[1], 1);
  processes.forget("a");
  processes.forget("a");
  const std::vector<double> second = time("a");
  EXPECT_EQ(second[1], 2) << "it is made anew";
  EXPECT_EQ(second[2], 1) << "and was forgotten once";
  EXPECT_EQ(second[3], first[3]);
  EXPECT_EQ(processes.restarts(), 0);
}

TEST_F(ChildProcessesTest, WhatEndsTheProcessCostsANewOneThatKnowsItsClass) {
  ASSERT_TRUE(processes.openClass(1));
  EXPECT_EQ(admit("good"), "right");
  EXPECT_EQ(admit("check dies").substr(0, 7), "check: ");
  EXPECT_EQ(admit("prepare dies").substr(0, 9), "prepare: ");
  const std::vector<double> after = time("good");
  EXPECT_EQ(after[0], 1);
  EXPECT_EQ(after[1], 1) << "prepared in the new process";
  EXPECT_EQ(processes.restarts(), 2);
}

/// By the system, when memory is short: that says little about the candidate.
TEST_F(ChildProcessesTest, WhatWasKilledIsTriedOnceMore) {
  ASSERT_TRUE(processes.openClass(0));
  EXPECT_EQ(admit("check is killed once"), "right");
  EXPECT_EQ(processes.restarts(), 1);
  std::filesystem::remove(folder.path("once"));
  EXPECT_EQ(admit("time is killed once"), "right");
  EXPECT_EQ(time("time is killed once")[1], 1);
  EXPECT_EQ(processes.restarts(), 2);
}

TEST_F(ChildProcessesTest, ADeviceIsNotTrustedAfterAnErrorOfItsOwn) {
  ASSERT_TRUE(processes.openClass(0));
  EXPECT_EQ(admit("prepare has no plan"), "prepare: no plan");
  EXPECT_EQ(admit("wrong"), "check: wrong result: one row");
  EXPECT_EQ(admit("wrong", /*isChecked=*/true), "right") << "it was found right before";
  EXPECT_EQ(processes.restarts(), 0) << "which are no errors of the device";
  EXPECT_EQ(admit("check breaks the device"), "check: illegal address");
  EXPECT_EQ(admit("good"), "right");
  EXPECT_EQ(processes.restarts(), 1);
}

} // namespace
} // namespace deft::session
