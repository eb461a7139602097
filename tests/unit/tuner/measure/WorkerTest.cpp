#include "tuner/measure/Worker.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace deft::measure {
namespace {

using State = Worker::Answer::State;
using nlohmann::json;

/// Does what it is told.
class Obedient : public Service {
public:
  support::Result<Message> handle(const Message &request) override {
    const std::string op = request.head.at("op").get<std::string>();
    if (op == "add")
      return Message{{{"sum", sum_ += request.head.at("n").get<int>()}}, request.blobs};
    if (op == "refuse")
      return support::Error{support::ErrorCode::Diagnostics, "no", "because"};
    if (op == "throw")
      throw std::runtime_error("thrown");
    if (op == "fault") {
      std::signal(SIGSEGV, SIG_DFL); // sanitizers have handlers, which end a process otherwise
      ::raise(SIGSEGV);
    }
    if (op == "exit")
      ::_exit(7);
    if (op == "hang")
      std::this_thread::sleep_for(std::chrono::hours(1));
    if (op == "pid")
      return Message{{{"pid", ::getpid()}, {"parent", ::getppid()}}, {}};
    return Message{json::object(), {}};
  }

private:
  int sum_ = 0;
};

Worker start() {
  auto worker = Worker::start(
      []() -> support::Result<std::unique_ptr<Service>> { return std::unique_ptr<Service>(new Obedient); });
  EXPECT_TRUE(worker.ok());
  return std::move(*worker);
}

Message op(const char *name, int n = 0) { return {{{"op", name}, {"n", n}}, {}}; }

TEST(WorkerTest, AnswersInItsOwnProcessAndKeepsItsState) {
  Worker worker = start();
  EXPECT_EQ(worker.ask(op("add", 2), 10).message.head["sum"], 2);
  EXPECT_EQ(worker.ask(op("add", 3), 10).message.head["sum"], 5);
  const json pids = worker.ask(op("pid"), 10).message.head;
  EXPECT_NE(pids["pid"], ::getpid());
  EXPECT_EQ(pids["parent"], ::getpid());
}

TEST(WorkerTest, BlobsOfAnySizeArriveWhole) {
  Worker worker = start();
  Message message = op("add", 1);
  message.blobs = {"", std::string(3'000'000, 'x') + '\0' + "end", std::string("\0\n\xff", 3)};
  const auto answer = worker.ask(message, 30);
  ASSERT_EQ(answer.state, State::Done);
  EXPECT_EQ(answer.message.blobs, message.blobs);
}

TEST(WorkerTest, ARefusalLeavesItRunning) {
  Worker worker = start();
  const auto answer = worker.ask(op("refuse"), 10);
  EXPECT_EQ(answer.state, State::Refused);
  EXPECT_EQ(answer.error.message, "no");
  EXPECT_EQ(answer.error.hint, "because");
  EXPECT_EQ(answer.error.code, support::ErrorCode::Diagnostics);
  EXPECT_EQ(worker.ask(op("throw"), 10).error.message, "unexpected internal error");
  EXPECT_EQ(worker.ask(op("add", 1), 10).state, State::Done);
}

TEST(WorkerTest, AFaultEndsItAlone) {
  Worker worker = start();
  const auto answer = worker.ask(op("fault"), 10);
  EXPECT_EQ(answer.state, State::Died);
  EXPECT_NE(answer.error.message.find("the child process died: signal 11"), std::string::npos)
      << answer.error.message;
  EXPECT_FALSE(worker.isAlive());
  EXPECT_EQ(worker.ask(op("add"), 1).state, State::Died); // and goes on saying so
  Worker other = start();
  EXPECT_EQ(other.ask(op("exit"), 10).error.message, "the child process died: exit code 7");
}

TEST(WorkerTest, WhatEndsAGroupOfProcessesIsForTheParent) {
  Worker worker = start();
  const int pid = worker.ask(op("pid"), 10).message.head["pid"];
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
    ASSERT_EQ(::kill(pid, signal), 0);
  EXPECT_EQ(worker.ask(op("add", 1), 10).state, State::Done);
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  const auto answer = worker.ask(op("add", 1), 10);
  EXPECT_EQ(answer.state, State::Died);
  EXPECT_TRUE(answer.wasKilled);
  Worker other = start();
  EXPECT_FALSE(other.ask(op("fault"), 10).wasKilled) << "that is its own doing";
}

TEST(WorkerTest, AHangIsEnded) {
  Worker worker = start();
  const auto begin = std::chrono::steady_clock::now();
  const auto answer = worker.ask(op("hang"), 0.3);
  EXPECT_EQ(answer.state, State::TimedOut);
  EXPECT_FALSE(worker.isAlive());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(WorkerTest, AServiceThatCannotBeMadeSaysWhy) {
  auto worker = Worker::start([]() -> support::Result<std::unique_ptr<Service>> {
    return support::Error{support::ErrorCode::Environment, "no device", ""};
  });
  ASSERT_TRUE(worker.ok());
  const auto answer = worker->ask(op("add"), 10);
  EXPECT_EQ(answer.state, State::Refused);
  EXPECT_EQ(answer.error.message, "no device");
}

TEST(WorkerTest, EndsWithItsParent) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    Worker worker = start();
    const int pid = worker.ask(op("pid"), 10).message.head["pid"];
    (void)!::write(ends[1], &pid, sizeof pid);
    ::raise(SIGKILL);
  }
  int pid = 0;
  ASSERT_EQ(::read(ends[0], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
  // A killed child of a dead parent is init's to bury, which may take its time: gone or a zombie will do.
  const auto isGone = [&] {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    std::getline(stat, line);
    return line.empty() || line.find(") Z ") != std::string::npos;
  };
  for (int i = 0; i < 500 && !isGone(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(isGone());
  ::close(ends[0]);
  ::close(ends[1]);
}

} // namespace
} // namespace deft::measure
