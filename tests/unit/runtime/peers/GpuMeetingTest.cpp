#include "runtime/peers/GpuMeeting.h"

#include "tests/unit/runtime/peers/GpuRanks.h"

#include <sys/wait.h>

namespace deft::peers {
namespace {

/// A driver that lets no GPU map another's memory, in this process.
class WithoutMapping {
public:
  WithoutMapping() { fake_cuda::failAt("cuMemImportFromShareableHandle", 1); }
  ~WithoutMapping() { fake_cuda::failAt("cuMemImportFromShareableHandle", 0); }
};

class GpuMeetingTest : public GpuRanks {
protected:
  Exchange meetAs(int count, int rank, const std::string &name, Transport wanted,
                  const std::string &library = DEFT_FAKE_NCCL, double patience = 20) const {
    return meet(device_, groupOf(count, rank, patience), name, wanted, library);
  }
  void expectMerges(GpuExchange &exchange, int count, int rank) const {
    for (int turn = 1; turn <= 3; ++turn) {
      const Results own = resultsOf(rank, turn);
      Results to = roomFor(2);
      ASSERT_TRUE(exchange.merge(mergeOf(own, to, 1, 2), nullptr));
      EXPECT_TRUE(to == mergedOf(count, 1, 2, turn));
    }
    EXPECT_FALSE(exchange.takeFault());
  }
  static std::string saidBy(const Exchange &met) {
    return met ? "" : met.error().message + "\n" + met.error().hint;
  }
};

TEST_F(GpuMeetingTest, RanksMapMemoryWhereTheyCanAndUseNcclWhereTheyAreAsked) {
  for (const Transport wanted : {Transport::Auto, Transport::Mapped, Transport::Nccl}) {
    const std::string name = newName();
    run(3, [&](int rank) {
      const auto met = meetAs(3, rank, name, wanted);
      ASSERT_TRUE(met) << saidBy(met);
      EXPECT_EQ((*met)->transport(), wanted == Transport::Nccl ? Transport::Nccl : Transport::Mapped);
      EXPECT_TRUE((*met)->agree({}, "", {}));
      expectMerges(**met, 3, rank);
    });
  }
}

/// One process cannot map what the others have, and all of them go another way.
TEST_F(GpuMeetingTest, AllRanksUseNcclWhereOneCannotMapTheOthers) {
  for (const Transport wanted : {Transport::Auto, Transport::Mapped}) {
    const std::string name = newName();
    const pid_t other = fork();
    if (other == 0) {
      const WithoutMapping without;
      auto met = meetAs(2, 1, name, wanted);
      if (wanted == Transport::Auto && met)
        expectMerges(**met, 2, 1);
      const bool isRight =
          wanted == Transport::Auto
              ? met.ok() && (*met)->transport() == Transport::Nccl && !HasFailure()
              : saidBy(met).starts_with("cannot take the results of rank 0 on Fake Hopper: made to fail");
      if (met)
        (*met).reset();
      _exit(isRight ? 0 : 1);
    }
    const auto met = meetAs(2, 0, name, wanted);
    if (wanted == Transport::Auto) {
      ASSERT_TRUE(met) << saidBy(met);
      EXPECT_EQ((*met)->transport(), Transport::Nccl);
      expectMerges(**met, 2, 0);
    } else {
      EXPECT_EQ(saidBy(met), "rank 1 cannot map the memory of all other GPUs\nits own error says why");
    }
    int status = 0;
    waitpid(other, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

TEST_F(GpuMeetingTest, AMissingNcclIsNamedByTheRankThatLacksItAndByOthers) {
  const std::string missing = "libthere_is_no_such_nccl.so";
  std::string name = newName();
  run(2, [&](int rank) {
    const auto met = meetAs(2, rank, name, Transport::Nccl, rank == 1 ? missing : DEFT_FAKE_NCCL);
    EXPECT_THAT(saidBy(met), testing::StartsWith(rank == 1 ? "no NCCL: `" + missing + "` cannot be loaded"
                                                           : "rank 1 has no NCCL that it can use"));
  });
  name = newName();
  const WithoutMapping without;
  run(2, [&](int rank) {
    EXPECT_THAT(
        saidBy(meetAs(2, rank, name, Transport::Auto, missing)),
        testing::AllOf(testing::StartsWith("no NCCL: `" + missing),
                       testing::HasSubstr("memory cannot be mapped: cannot take the results of rank")));
  });
}

TEST_F(GpuMeetingTest, RanksThatAreLateOrDifferAreNamed) {
  EXPECT_THAT(saidBy(meetAs(2, 0, newName(), Transport::Auto, DEFT_FAKE_NCCL, 0.1)),
              testing::HasSubstr("did not come within 0.1 s"));
  const std::string name = newName();
  run(2, [&](int rank) {
    EXPECT_THAT(saidBy(meetAs(2, rank, name, rank == 0 ? Transport::Nccl : Transport::Auto)),
                testing::StartsWith("rank " + std::to_string(1 - rank) + " asks for another transport"));
  });
  const std::string other = newName();
  run(2, [&](int rank) {
    GpuGroup group = groupOf(2, rank);
    group.dim = rank == 0 ? kDim : 2 * kDim;
    EXPECT_THAT(saidBy(meet(device_, group, other, Transport::Auto, DEFT_FAKE_NCCL)),
                testing::StartsWith("rank " + std::to_string(1 - rank) + " makes a group for other results"));
  });
}

} // namespace
} // namespace deft::peers
