#include "runtime/peers/Peers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <functional>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace deft::peers {
namespace {

using exec::StateType;

std::string freshName() {
  static int count = 0;
  return "peers_test." + std::to_string(getpid()) + "." + std::to_string(count++);
}

PeersOptions optionsOf(const std::string &name, int count, int rank, double timeoutSeconds = 20) {
  return {.name = name, .count = count, .rank = rank, .bytes = 1 << 16, .timeoutSeconds = timeoutSeconds};
}

/// Each rank in a thread of its own.
void asThreads(int count, const std::function<void(int)> &rank) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&rank, i] { rank(i); });
  for (std::thread &thread : threads)
    thread.join();
}

/// Each rank as a process; those that `rank` returns true for succeed. Gives the exit status of each.
std::vector<int> asProcesses(int count, const std::function<bool(int)> &rank) {
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0)
      _exit(rank(i) ? 0 : 1);
    children.push_back(child);
  }
  std::vector<int> statuses;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    statuses.push_back(status);
  }
  return statuses;
}

constexpr int kQueries = 3, kHeads = 4, kDim = 8, kRows = kQueries * kHeads;

/// What a rank computes in a step: the same wherever it is asked. Some rows saw nothing.
struct Results {
  std::vector<float> out = std::vector<float>(kRows * kDim), lse = std::vector<float>(kRows);

  Results(int rank, int step) {
    std::mt19937 random(static_cast<unsigned>(rank * 1000 + step));
    std::normal_distribution<float> normal;
    for (std::size_t row = 0; row < kRows; ++row) {
      const bool isEmpty = random() % 4 == 0;
      lse[row] = isEmpty ? -std::numeric_limits<float>::infinity() : 3 * normal(random);
      for (std::size_t d = 0; d < kDim; ++d)
        out[row * kDim + d] = isEmpty ? std::nanf("") : normal(random);
    }
  }
  RankResults view() const { return {out.data(), lse.data(), StateType::F32, kQueries, kHeads, kDim}; }
};

/// In float64.
bool isMerged(int count, int step, const MergedHeads &heads) {
  std::vector<Results> all;
  for (int rank = 0; rank < count; ++rank)
    all.emplace_back(rank, step);
  for (int query = 0; query < kQueries; ++query)
    for (int head = 0; head < heads.count; ++head) {
      const auto row = static_cast<std::size_t>(query * kHeads + heads.begin + head);
      const auto to = static_cast<std::size_t>(query * heads.count + head);
      double total = 0;
      for (const Results &one : all)
        total += std::exp(static_cast<double>(one.lse[row]));
      const double lse = std::log(total);
      if (!(heads.lse[to] == lse || std::abs(heads.lse[to] - lse) < 1e-5))
        return false;
      for (std::size_t d = 0; d < kDim; ++d) {
        double sum = 0;
        for (const Results &one : all)
          if (std::isfinite(one.lse[row]))
            sum += std::exp(static_cast<double>(one.lse[row])) * one.out[row * kDim + d];
        const double expected = total == 0 ? 0 : sum / total;
        if (std::abs(static_cast<const float *>(heads.out)[to * kDim + d] - expected) > 1e-5)
          return false;
      }
    }
  return true;
}

/// Some steps of one rank, which comes late by turns.
bool takeSteps(const std::string &name, int count, int rank, int steps) {
  auto peers = Peers::meet(optionsOf(name, count, rank));
  if (!peers)
    return false;
  for (int step = 0; step < steps; ++step) {
    if (step % count == rank)
      std::this_thread::sleep_for(std::chrono::milliseconds(step % 3));
    const Results own(rank, step);
    const int begin = step % 2 == 0 ? 0 : kHeads * rank / count;
    const int heads = step % 2 == 0 ? kHeads : kHeads * (rank + 1) / count - begin;
    std::vector<float> out(kRows * kDim), lse(kRows);
    const MergedHeads to{begin, heads, out.data(), lse.data()};
    if (auto merged = peers->merge(own.view(), to); !merged || !isMerged(count, step, to))
      return false;
  }
  return true;
}

TEST(PeersTest, ProcessesMergeWhatTheyHave) {
  for (const int count : {1, 2, 3, 4}) {
    const std::string name = freshName();
    for (const int status : asProcesses(count, [&](int rank) { return takeSteps(name, count, rank, 60); }))
      EXPECT_EQ(status, 0) << count << " ranks";
  }
}

TEST(PeersTest, ThreadsMergeWhatTheyHave) {
  const std::string name = freshName();
  asThreads(3, [&](int rank) { EXPECT_TRUE(takeSteps(name, 3, rank, 60)); });
}

/// The bits of a merge are those of its parts in the order of ranks, whoever merges and comes when.
TEST(PeersTest, AllRanksHaveTheSameBits) {
  const std::string name = freshName();
  std::vector<std::vector<float>> outs(3, std::vector<float>(kRows * kDim));
  asThreads(3, [&](int rank) {
    auto peers = Peers::meet(optionsOf(name, 3, rank));
    ASSERT_TRUE(peers) << peers.error().message;
    const Results own(rank, 7);
    std::this_thread::sleep_for(std::chrono::milliseconds(5 * (2 - rank)));
    ASSERT_TRUE(peers->merge(own.view(), {0, kHeads, outs[static_cast<std::size_t>(rank)].data(), nullptr}));
  });
  EXPECT_EQ(std::memcmp(outs[0].data(), outs[1].data(), kRows * kDim * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(outs[0].data(), outs[2].data(), kRows * kDim * sizeof(float)), 0);
}

std::string failureOf(const support::Result<void> &result) { return result ? "" : result.error().message; }

TEST(PeersTest, ARankThatIsKilledEndsTheOthersCalls) {
  const std::string name = freshName();
  const pid_t victim = fork();
  if (victim == 0) {
    (void)takeSteps(name, 2, 1, 2);
    raise(SIGKILL);
  }
  std::thread reaper([&] { waitpid(victim, nullptr, 0); });
  auto peers = Peers::meet(optionsOf(name, 2, 0));
  ASSERT_TRUE(peers) << peers.error().message;
  const Results own(0, 0);
  std::vector<float> out(kRows * kDim);
  const MergedHeads to{0, kHeads, out.data(), nullptr};
  ASSERT_TRUE(peers->merge(own.view(), to));
  ASSERT_TRUE(peers->merge(own.view(), to));
  const auto begin = std::chrono::steady_clock::now();
  const auto third = peers->merge(own.view(), to);
  reaper.join();
  // It may have left as a rank that gives up, before it was killed.
  EXPECT_THAT(failureOf(third),
              testing::AnyOf("rank 1 of `" + name + "` has given up",
                             testing::StartsWith("rank 1 of `" + name + "` has ended, it was process ")));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));
  EXPECT_EQ(failureOf(peers->merge(own.view(), to)), "a call of `" + name + "` has failed before");
}

TEST(PeersTest, ARankThatLagsIsAnErrorInTime) {
  const std::string name = freshName();
  asThreads(2, [&](int rank) {
    auto peers = Peers::meet(optionsOf(name, 2, rank, 1.5));
    ASSERT_TRUE(peers) << peers.error().message;
    const Results own(rank, 0);
    std::vector<float> out(kRows * kDim);
    if (rank == 1)
      std::this_thread::sleep_for(std::chrono::milliseconds(4000));
    const auto merged = peers->merge(own.view(), {0, kHeads, out.data(), nullptr});
    EXPECT_EQ(failureOf(merged), rank == 0 ? "rank 1 of `" + name + "` did not give its results within 1.5 s"
                                           : failureOf(merged));
  });
}

TEST(PeersTest, ARankThatDoesNotComeIsNamed) {
  const std::string name = freshName();
  const auto peers = Peers::meet(optionsOf(name, 3, 1, 0.2));
  ASSERT_FALSE(peers);
  EXPECT_EQ(peers.error().message, "rank 0 of `" + name + "` did not come within 0.2 s");
}

TEST(PeersTest, WrongGroupsAreNamed) {
  const auto errorOf = [](const PeersOptions &options) {
    const auto met = Peers::meet(options);
    return met ? "" : met.error().message;
  };
  EXPECT_EQ(errorOf(optionsOf("a", 0, 0)), "a group of 0 ranks, not 1 to 64");
  EXPECT_EQ(errorOf(optionsOf("a", 65, 0)), "a group of 65 ranks, not 1 to 64");
  EXPECT_EQ(errorOf(optionsOf("a", 4, 4)), "rank 4 of a group of 4 ranks");
  EXPECT_EQ(errorOf(optionsOf("", 1, 0)),
            "`` is no name of a group: it has letters, digits, `_`, `-` and `.`");
  EXPECT_EQ(errorOf(optionsOf("a/b", 1, 0)),
            "`a/b` is no name of a group: it has letters, digits, `_`, `-` and `.`");
  EXPECT_EQ(errorOf(optionsOf("a", 1, 0, -1)), "a rank may be late by -1 s, which is not above 0");
}

TEST(PeersTest, ARankThatIsThereTwiceIsNamed) {
  const std::string name = freshName();
  std::thread first([&] { (void)Peers::meet(optionsOf(name, 2, 0, 4)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(1000));
  const auto second = Peers::meet(optionsOf(name, 2, 0, 0.2));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message,
            "rank 0 of `" + name + "` is there already, as process " + std::to_string(getpid()));
  first.join();
}

TEST(PeersTest, RanksThatCountDifferentlyAreNamed) {
  const std::string name = freshName();
  asThreads(2, [&](int rank) {
    const auto peers = Peers::meet(optionsOf(name, 2 + rank, rank, 3));
    ASSERT_FALSE(peers);
    if (rank == 0) {
      EXPECT_EQ(peers.error().message, "rank 1 of `" + name + "` says that there are 3 ranks, rank 0 says 2");
    }
  });
}

/// What a process left behind that was killed before all had met.
TEST(PeersTest, WhatADeadProcessLeftIsReplaced) {
  const std::string name = freshName();
  const pid_t dead = fork();
  if (dead == 0) {
    (void)Peers::meet(optionsOf(name, 2, 0, 30));
    _exit(0);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  kill(dead, SIGKILL);
  waitpid(dead, nullptr, 0);
  asThreads(2, [&](int rank) { EXPECT_TRUE(takeSteps(name, 2, rank, 5)); });
}

TEST(PeersTest, RanksAgreeOrAreNamed) {
  const std::string name = freshName();
  asThreads(3, [&](int rank) {
    auto peers = Peers::meet(optionsOf(name, 3, rank));
    ASSERT_TRUE(peers) << peers.error().message;
    Agreement own;
    own.hashes = {1, 2, 3, 4};
    const std::vector<int> holders{0, 1, 2, rank == 2 ? 2 : 0};
    EXPECT_EQ(failureOf(peers->agree(own, "page", holders)), "") << "hashes say who differs";
    own.hashes[Agreement::Tree] = rank == 2 ? 5 : 4;
    EXPECT_EQ(
        failureOf(peers->agree(own, "page", holders)),
        rank == 0 ? "rank 2 has another tree or layout than rank 0: page 3 is claimed by rank 0 and by rank 2"
        : rank == 1
            ? "rank 2 has another tree or layout than rank 1"
            : "rank 0 has another tree or layout than rank 2: page 3 is claimed by rank 0 and by rank 2");
  });
}

TEST(PeersTest, RanksInDifferentCallsOrOfDifferentShapesAreNamed) {
  for (const bool isOtherCall : {false, true}) {
    const std::string name = freshName();
    asThreads(2, [&](int rank) {
      auto peers = Peers::meet(optionsOf(name, 2, rank));
      ASSERT_TRUE(peers) << peers.error().message;
      const Results own(rank, 0);
      RankResults results = own.view();
      std::vector<float> out(kRows * kDim);
      if (rank == 1 && !isOtherCall)
        results.queries = 2;
      const auto done = rank == 1 && isOtherCall ? peers->agree({}, "page", {})
                                                 : peers->merge(results, {0, kHeads, out.data(), nullptr});
      if (rank != 0) {
        EXPECT_FALSE(done);
      } else {
        EXPECT_EQ(failureOf(done),
                  isOtherCall ? "rank 1 is in another call than rank 0: one of them asks for agreement, the "
                                "other one merges"
                              : "rank 1 gives results of 2 queries of 4 heads and 8 columns, rank 0 of 3 "
                                "queries of 4 heads and 8 columns");
      }
    });
  }
}

TEST(PeersTest, ResultsThatDoNotFitAreNamed) {
  auto peers = Peers::meet({.name = freshName(), .count = 1, .rank = 0, .bytes = 100, .timeoutSeconds = 1});
  ASSERT_TRUE(peers);
  const Results own(0, 0);
  std::vector<float> out(kRows * kDim);
  EXPECT_EQ(failureOf(peers->merge(own.view(), {0, kHeads, out.data(), nullptr})),
            "results of 432 bytes, and the group was made for 128");
  EXPECT_EQ(failureOf(peers->merge({}, {0, 1, out.data(), nullptr})), "heads 0 to 1 of 0");
}

} // namespace
} // namespace deft::peers
