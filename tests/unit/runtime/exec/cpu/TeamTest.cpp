#include "runtime/exec/cpu/Team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace deft::exec {

namespace {

/// Adds the numbers below `count`, taken one by one, in a sum a slot.
struct Counting final : Team::Job {
  Counting(int count, int slots) : count(count), sums(static_cast<std::size_t>(slots)) {}
  void run(int slot) noexcept override {
    for (int i = next++; i < count; i = next++)
      sums[static_cast<std::size_t>(slot)] += i;
  }
  long long total() const {
    long long total = 0;
    for (long long sum : sums)
      total += sum;
    return total;
  }
  const int count;
  std::atomic<int> next = 0;
  std::vector<long long> sums;
};

Team team(int helpers) {
  auto team = Team::create(helpers);
  EXPECT_TRUE(team.ok());
  return std::move(*team);
}

} // namespace

TEST(TeamTest, DoesAllWorkWithAnyNumberOfHelpers) {
  for (int helpers : {0, 1, 3, 8}) {
    Team some = team(helpers);
    EXPECT_EQ(some.helpers(), helpers);
    for (int wanted : {0, 1, helpers, helpers + 5}) {
      Counting job(1000, helpers + 1);
      some.run(wanted, job);
      EXPECT_EQ(job.total(), 999 * 1000 / 2);
    }
  }
}

TEST(TeamTest, HelpersTakePart) {
  struct Meeting final : Team::Job {
    void run(int slot) noexcept override {
      slots |= 1 << slot;
      ++members;
      while (members < 3) // all three must be inside at once
        std::this_thread::yield();
    }
    std::atomic<int> members = 0, slots = 0;
  } job;
  Team some = team(2);
  some.run(2, job);
  EXPECT_EQ(job.slots, 0b111);
}

TEST(TeamTest, LateHelpersLeaveAFinishedCallAlone) {
  Team some = team(1);
  for (int i = 0; i < 2000; ++i) { // the caller alone needs less than a helper takes to wake
    Counting job(1, 2);
    some.run(1, job);
    EXPECT_EQ(job.total(), 0);
    EXPECT_GE(job.next, 1);
  }
}

TEST(TeamTest, HostThreadsShareOneTeamAndTeamsAreApart) {
  Team shared = team(2), own = team(1);
  auto calls = [](Team &some) {
    for (int i = 0; i < 300; ++i) {
      Counting job(50, some.helpers() + 1);
      some.run(some.helpers(), job);
      EXPECT_EQ(job.total(), 49 * 50 / 2);
    }
  };
  std::vector<std::thread> hosts;
  for (Team *some : {&shared, &shared, &own})
    hosts.emplace_back([&calls, some] { calls(*some); });
  for (std::thread &host : hosts)
    host.join();
}

} // namespace deft::exec
