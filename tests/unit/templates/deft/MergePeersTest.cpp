#include "tests/device/Words.h"

#include "deft/merge_peers.cuh"

#include "runtime/exec/Half.h"
#include "runtime/exec/MergeStates.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace deft {
namespace {

using exec::StateType;

struct alignas(128) Line {
  std::byte bytes[128];
};

struct Shape {
  StateType type;
  int ranks, queries, heads, dim;

  long long rows() const { return static_cast<long long>(queries) * heads; }
  std::size_t outBytes() const { return static_cast<std::size_t>(rows() * dim * exec::bytesOf(type)); }
  long long bufferBytes() const {
    return (static_cast<long long>(outBytes()) + rows() * 4 + 127) / 128 * 128;
  }
};

/// Ranks with a memory each, and what each has computed in a step.
class Ranks {
public:
  explicit Ranks(const Shape &shape) : shape_(shape), late(static_cast<std::size_t>(shape.ranks), 0) {
    const auto lines =
        (sizeof(abi::PeerMemory) + 2 * static_cast<std::size_t>(shape.bufferBytes())) / sizeof(Line);
    for (int rank = 0; rank < shape.ranks; ++rank)
      memory_.emplace_back(lines + 1, Line{});
  }

  void draw(std::mt19937 &random) {
    std::normal_distribution<float> normal;
    outs.assign(static_cast<std::size_t>(shape_.ranks),
                std::vector<Line>(shape_.outBytes() / sizeof(Line) + 1));
    lses.assign(static_cast<std::size_t>(shape_.ranks), {});
    for (std::size_t rank = 0; rank < outs.size(); ++rank)
      for (long long row = 0; row < shape_.rows(); ++row) {
        const bool isEmpty = random() % 5 == 0;
        lses[rank].push_back(isEmpty ? -kInfinity : 4 * normal(random));
        for (int d = 0; d < shape_.dim; ++d)
          set(outs[rank], row * shape_.dim + d,
              isEmpty ? std::numeric_limits<float>::quiet_NaN() : normal(random));
      }
  }

  abi::PeersArgs args(int rank, int headBegin, int headCount, void *out, float *lse) {
    abi::PeersArgs args{};
    for (int r = 0; r < shape_.ranks; ++r)
      args.ranks[r] = reinterpret_cast<abi::PeerMemory *>(memory_[static_cast<std::size_t>(r)].data());
    args.bufferBytes = shape_.bufferBytes();
    args.own = outs[static_cast<std::size_t>(rank)].data();
    args.ownLse = lses[static_cast<std::size_t>(rank)].data();
    args.out = out;
    args.lse = lse;
    args.count = shape_.ranks;
    args.rank = rank;
    args.queries = shape_.queries;
    args.heads = shape_.heads;
    args.dim = shape_.dim;
    args.headBegin = headBegin;
    args.headCount = headCount;
    args.lanesOfRow = 1;
    while (args.lanesOfRow < shape_.dim * exec::bytesOf(shape_.type) / 16 && args.lanesOfRow < 32)
      args.lanesOfRow *= 2;
    args.mostNs = 1'000'000'000;
    args.late = &late[static_cast<std::size_t>(rank)];
    return args;
  }

  exec::PartsOfRows parts(int headBegin, int headCount) const {
    exec::PartsOfRows parts;
    for (std::size_t rank = 0; rank < outs.size(); ++rank) {
      parts.outs.push_back(outs[rank].data());
      parts.lses.push_back(lses[rank].data());
    }
    parts.queries = shape_.queries;
    parts.heads = shape_.heads;
    parts.dim = shape_.dim;
    parts.headBegin = headBegin;
    parts.headCount = headCount;
    return parts;
  }

  float get(const std::vector<Line> &values, long long at) const {
    return shape_.type == StateType::F32
               ? reinterpret_cast<const float *>(values.data())[at]
               : exec::toFloat(reinterpret_cast<const std::uint16_t *>(values.data())[at], dtype());
  }
  abi::PeerMemory &memory(int rank) {
    return *reinterpret_cast<abi::PeerMemory *>(memory_[static_cast<std::size_t>(rank)].data());
  }

private:
  spec::DType dtype() const { return shape_.type == StateType::F16 ? spec::DType::F16 : spec::DType::BF16; }
  void set(std::vector<Line> &values, long long at, float value) const {
    if (shape_.type == StateType::F32)
      reinterpret_cast<float *>(values.data())[at] = value;
    else
      reinterpret_cast<std::uint16_t *>(values.data())[at] = exec::fromFloat(value, dtype());
  }

  const Shape shape_;
  std::vector<std::vector<Line>> memory_;

public:
  std::vector<std::vector<Line>> outs;
  std::vector<std::vector<float>> lses;
  std::vector<unsigned long long> late;
};

/// What a rank does in a launch: it comes late by so many looks at the clock.
struct Launch {
  abi::PeersArgs args;
  int delay = 0;
};

/// All launches at once: blocks of all ranks take turns, in an order that the seed gives.
template <class Element> void run(const std::vector<Launch> &ranks, unsigned blocks, unsigned seed) {
  const auto count = static_cast<unsigned>(ranks.size()) * blocks;
  EXPECT_EQ(test::runCluster({.threads = PeersMerge<Element>::kThreads, .seed = seed}, count,
                             [&] {
                               const unsigned block = test::place.block.x;
                               const Launch &own = ranks[block / blocks];
                               test::place.block.x = block % blocks;
                               test::place.blocks.x = blocks;
                               for (int i = 0; i < own.delay; ++i)
                                 test::Block::now().giveWay();
                               PeersMerge<Element>::run(own.args);
                             }),
            "");
}
void run(StateType type, const std::vector<Launch> &ranks, unsigned blocks, unsigned seed) {
  if (type == StateType::F32)
    run<float>(ranks, blocks, seed);
  else if (type == StateType::F16)
    run<f16>(ranks, blocks, seed);
  else
    run<bf16>(ranks, blocks, seed);
}

TEST(MergePeersTest, EachRankHasItsHeadsOfEverybodysResults) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    std::mt19937 random(seed);
    Shape shape{std::array{StateType::F32, StateType::F16, StateType::BF16}[seed % 3],
                seed % 8 == 0 ? 9 : 1 + static_cast<int>(random() % 4), 1 + static_cast<int>(random() % 5),
                std::array{1, 4, 6, 7}[random() % 4], std::array{16, 64, 128, 512}[random() % 4]};
    Ranks ranks(shape);
    const bool takesAll = random() % 3 == 0;
    const double ulp = shape.type == StateType::F32   ? 0x1p-20
                       : shape.type == StateType::F16 ? 0x1p-10
                                                      : 0x1p-7;
    for (int replay = 1; replay <= 4; ++replay) { // the buffers are used twice
      SCOPED_TRACE("seed " + std::to_string(seed) + ", replay " + std::to_string(replay));
      ranks.draw(random);
      std::vector<Launch> launches;
      std::vector<std::vector<Line>> outs;
      std::vector<std::vector<float>> merged(static_cast<std::size_t>(shape.ranks));
      for (int rank = 0; rank < shape.ranks; ++rank) {
        const int begin = takesAll ? 0 : shape.heads * rank / shape.ranks;
        const int count = takesAll ? shape.heads : shape.heads * (rank + 1) / shape.ranks - begin;
        outs.emplace_back(shape.outBytes() / sizeof(Line) + 1);
        merged[static_cast<std::size_t>(rank)].resize(static_cast<std::size_t>(shape.rows()));
        launches.push_back({ranks.args(rank, begin, count, outs.back().data(),
                                       merged[static_cast<std::size_t>(rank)].data()),
                            static_cast<int>(random() % 200)});
      }
      ASSERT_NO_FATAL_FAILURE(
          run(shape.type, launches, 1 + random() % 3, seed + static_cast<unsigned>(replay)));
      for (int rank = 0; rank < shape.ranks; ++rank) {
        const abi::PeersArgs &args = launches[static_cast<std::size_t>(rank)].args;
        std::vector<Line> expected(outs[static_cast<std::size_t>(rank)].size());
        std::vector<float> lse(static_cast<std::size_t>(shape.rows()));
        exec::mergeHeads(ranks.parts(args.headBegin, args.headCount), shape.type, expected.data(),
                         lse.data());
        const long long rows = static_cast<long long>(shape.queries) * args.headCount;
        for (long long at = 0; at < rows * shape.dim; ++at) {
          const float own = ranks.get(outs[static_cast<std::size_t>(rank)], at),
                      other = ranks.get(expected, at);
          ASSERT_NEAR(own, other, ulp * std::max(1.f, std::abs(other))) << "rank " << rank << " at " << at;
        }
        for (long long row = 0; row < rows; ++row) {
          const float own = merged[static_cast<std::size_t>(rank)][static_cast<std::size_t>(row)],
                      other = lse[static_cast<std::size_t>(row)];
          ASSERT_TRUE(own == other || std::abs(own - other) < 1e-5 * std::max(1.f, std::abs(other)));
        }
        EXPECT_EQ(ranks.late[static_cast<std::size_t>(rank)], 0U);
        EXPECT_EQ(ranks.memory(rank).replays, static_cast<unsigned long long>(replay));
        EXPECT_EQ(ranks.memory(rank).arrived, 0);
      }
    }
  }
}

/// Of one step, whoever comes when.
TEST(MergePeersTest, TheBitsDoNotDependOnTiming) {
  const Shape shape{StateType::BF16, 3, 3, 4, 64};
  std::vector<Line> first;
  for (unsigned seed = 1; seed <= 8; ++seed) {
    std::mt19937 random(5);
    Ranks ranks(shape);
    ranks.draw(random);
    random.seed(seed);
    std::vector<std::vector<Line>> outs(3, std::vector<Line>(shape.outBytes() / sizeof(Line) + 1));
    std::vector<Launch> launches;
    for (int rank = 0; rank < 3; ++rank)
      launches.push_back({ranks.args(rank, 0, 4, outs[static_cast<std::size_t>(rank)].data(), nullptr),
                          static_cast<int>(random() % 300)});
    run(shape.type, launches, 1 + seed % 3, seed);
    if (first.empty())
      first = outs[0];
    for (const std::vector<Line> &out : outs)
      ASSERT_EQ(std::memcmp(out.data(), first.data(), shape.outBytes()), 0) << "seed " << seed;
  }
}

TEST(MergePeersTest, ARankThatDoesNotComeIsMarkedAndNothingHangs) {
  const Shape shape{StateType::F16, 3, 2, 4, 64};
  std::mt19937 random(1);
  Ranks ranks(shape);
  std::vector<std::vector<Line>> outs(3, std::vector<Line>(shape.outBytes() / sizeof(Line) + 1));
  const auto launch = [&](std::vector<int> who, unsigned long long mostNs) {
    std::vector<Launch> launches;
    for (const int rank : who) {
      launches.push_back({ranks.args(rank, 0, 4, outs[static_cast<std::size_t>(rank)].data(), nullptr)});
      launches.back().args.mostNs = mostNs;
    }
    run(shape.type, launches, 2, 3);
  };
  ranks.draw(random);
  launch({0, 1, 2}, 1'000'000'000);
  EXPECT_EQ(ranks.late, (std::vector<unsigned long long>{0, 0, 0}));
  launch({0, 1}, 1'000'000);                      // rank 2 has died
  const unsigned long long mark = 2ULL << 32 | 3; // the second replay, rank 2
  EXPECT_EQ(ranks.late, (std::vector<unsigned long long>{mark, mark, 0}));
  EXPECT_EQ(ranks.memory(0).arrived, 0);
  // Later replays neither wait nor publish, so whoever still waits for this rank ends, too.
  ranks.late = {0, 0, 0};
  launch({0}, 1'000'000'000);
  EXPECT_EQ(ranks.late, (std::vector<unsigned long long>{0, 0, 0}));
  EXPECT_EQ(ranks.memory(0).replays, 3U);
  EXPECT_EQ(ranks.memory(0).arrived, 0);
  EXPECT_EQ(ranks.memory(1).flags[0], 2U);
}

} // namespace
} // namespace deft
