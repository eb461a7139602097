#include "tests/device/Words.h"

#include "deft/merge_peers.cuh"
#include "deft/merge_slices.cuh"

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
using Lines = std::vector<Line>;

struct Shape {
  StateType type;
  int ranks, queries, heads, dim;

  std::size_t at(int rank) const { return static_cast<std::size_t>(rank); }
  long long rows(int heads_) const { return static_cast<long long>(queries) * heads_; }
  std::size_t outBytes(int heads_) const {
    return static_cast<std::size_t>(rows(heads_) * dim * exec::bytesOf(type));
  }
  std::size_t messageBytes(int heads_) const {
    return outBytes(heads_) + static_cast<std::size_t>((rows(heads_) + 1) / 2 * 8 + 8);
  }
  int lanesOfRow() const {
    int lanes = 1;
    while (lanes < dim * exec::bytesOf(type) / 16 && lanes < 32)
      lanes *= 2;
    return lanes;
  }
};

/// Ranks, their counters, and the messages between them, which a loop carries.
class Ranks {
public:
  Ranks(const Shape &shape, std::vector<abi::SlicesArgs::Slice> slices)
      : shape_(shape), slices(std::move(slices)), state(shape.at(shape.ranks)), watch(shape.at(shape.ranks)) {
    for (int rank = 0; rank < shape.ranks; ++rank) {
      sent_.emplace_back();
      received_.emplace_back();
      for (int other = 0; other < shape.ranks; ++other) {
        sent_.back().push_back(linesOf(shape.messageBytes(this->slices[shape.at(other)].count)));
        received_.back().push_back(linesOf(shape.messageBytes(this->slices[shape.at(rank)].count)));
      }
      outs.push_back(linesOf(shape.outBytes(shape.heads)));
      lses.emplace_back(static_cast<std::size_t>(shape.rows(shape.heads)));
    }
  }
  static Lines linesOf(std::size_t bytes) { return Lines(bytes / sizeof(Line) + 1); }

  void draw(std::mt19937 &random) {
    std::normal_distribution<float> normal;
    for (int rank = 0; rank < shape_.ranks; ++rank)
      for (long long row = 0; row < shape_.rows(shape_.heads); ++row) {
        const bool isEmpty = random() % 5 == 0;
        lses[shape_.at(rank)][static_cast<std::size_t>(row)] = isEmpty ? -kInfinity : 4 * normal(random);
        for (int d = 0; d < shape_.dim; ++d)
          set(outs[shape_.at(rank)], row * shape_.dim + d, normal(random));
      }
  }

  abi::SlicesArgs args(int rank) {
    abi::SlicesArgs args{};
    std::copy(slices.begin(), slices.end(), args.slices);
    args.count = shape_.ranks;
    args.queries = shape_.queries;
    args.dim = shape_.dim;
    args.lanesOfRow = shape_.lanesOfRow();
    args.state = &state[shape_.at(rank)];
    args.watch = &watch[shape_.at(rank)];
    return args;
  }
  abi::SlicesArgs packArgs(int rank) {
    abi::SlicesArgs args = this->args(rank);
    args.own = outs[shape_.at(rank)].data();
    args.ownLse = lses[shape_.at(rank)].data();
    args.heads = shape_.heads;
    for (int other = 0; other < shape_.ranks; ++other)
      args.messages[other] = other == rank ? received_[shape_.at(rank)][shape_.at(rank)].data()
                                           : sent_[shape_.at(rank)][shape_.at(other)].data();
    return args;
  }
  abi::SlicesArgs mergeArgs(int rank, int begin, int count, void *out, float *lse) {
    abi::SlicesArgs args = this->args(rank);
    args.heads = slices[shape_.at(rank)].count;
    args.headBegin = begin;
    args.headCount = count;
    args.out = out;
    args.lse = lse;
    for (int other = 0; other < shape_.ranks; ++other)
      args.messages[other] = received_[shape_.at(rank)][shape_.at(other)].data();
    return args;
  }
  void carry(int from, int to) {
    if (from != to)
      received_[shape_.at(to)][shape_.at(from)] = sent_[shape_.at(from)][shape_.at(to)];
  }

private:
  void set(Lines &values, long long at, float value) const {
    if (shape_.type == StateType::F32)
      reinterpret_cast<float *>(values.data())[at] = value;
    else
      reinterpret_cast<std::uint16_t *>(values.data())[at] =
          exec::fromFloat(value, shape_.type == StateType::F16 ? spec::DType::F16 : spec::DType::BF16);
  }

  const Shape shape_;
  std::vector<std::vector<Lines>> sent_, received_; ///< [rank][other]

public:
  std::vector<abi::SlicesArgs::Slice> slices;
  std::vector<Lines> outs;
  std::vector<std::vector<float>> lses;
  std::vector<abi::SlicesState> state;
  std::vector<abi::SlicesWatch> watch;
};

template <class Thread> void launch(unsigned blocks, unsigned seed, Thread thread) {
  EXPECT_EQ(test::runCluster({.threads = 128, .seed = seed}, blocks,
                             [&] {
                               test::place.blocks.x = blocks;
                               thread();
                             }),
            "");
}
template <class Element> void pack(const abi::SlicesArgs &args, unsigned blocks, unsigned seed) {
  launch(blocks, seed, [&] { SlicesExchange<Element>::pack(args); });
}
template <class Element> void merge(const abi::SlicesArgs &args, unsigned blocks, unsigned seed) {
  launch(blocks, seed, [&] { SlicesExchange<Element>::merge(args); });
}

/// What the kernel of mapped memory makes of the same results, on the rank.
template <class Element>
void mergeMapped(const Shape &shape, Ranks &ranks, abi::SlicesArgs wanted, int rank, void *out, float *lse) {
  const auto bufferBytes = (shape.outBytes(shape.heads) + shape.rows(shape.heads) * 4 + 127) / 128 * 128;
  std::vector<Lines> memories;
  abi::PeersArgs args{};
  for (int other = 0; other < shape.ranks; ++other) {
    memories.push_back(Ranks::linesOf(sizeof(abi::PeerMemory) + 2 * bufferBytes));
    auto *const memory = reinterpret_cast<abi::PeerMemory *>(memories.back().data());
    char *const buffer = reinterpret_cast<char *>(memory + 1) + bufferBytes; // of the first replay
    std::memcpy(buffer, ranks.outs[shape.at(other)].data(), shape.outBytes(shape.heads));
    std::memcpy(buffer + shape.outBytes(shape.heads), ranks.lses[shape.at(other)].data(),
                static_cast<std::size_t>(shape.rows(shape.heads)) * 4);
    args.ranks[other] = memory;
  }
  std::fill_n(args.ranks[rank]->flags, shape.ranks, 1ULL);
  args.bufferBytes = static_cast<long long>(bufferBytes);
  args.own = ranks.outs[shape.at(rank)].data();
  args.ownLse = ranks.lses[shape.at(rank)].data();
  args.out = out;
  args.lse = lse;
  args.count = shape.ranks;
  args.rank = rank;
  args.queries = shape.queries;
  args.heads = shape.heads;
  args.dim = shape.dim;
  args.headBegin = ranks.slices[shape.at(rank)].begin + wanted.headBegin;
  args.headCount = wanted.headCount;
  args.lanesOfRow = shape.lanesOfRow();
  args.mostNs = 1'000'000'000;
  unsigned long long late = 0;
  args.late = &late;
  launch(1, 1, [&] { PeersMerge<Element>::run(args); });
  EXPECT_EQ(late, 0U);
}

template <class Element> void compare(const Shape &shape, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<abi::SlicesArgs::Slice> slices;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const int begin = shape.heads * rank / shape.ranks;
    slices.push_back(random() % 3 == 0
                         ? abi::SlicesArgs::Slice{0, shape.heads}
                         : abi::SlicesArgs::Slice{begin, shape.heads * (rank + 1) / shape.ranks - begin});
  }
  Ranks ranks(shape, slices);
  for (unsigned run = 1; run <= 3; ++run) {
    ranks.draw(random);
    for (int rank = 0; rank < shape.ranks; ++rank)
      pack<Element>(ranks.packArgs(rank), static_cast<unsigned>(shape.ranks) * (1 + random() % 2),
                    seed + run);
    for (int from = 0; from < shape.ranks; ++from)
      for (int to = 0; to < shape.ranks; ++to)
        ranks.carry(from, to);
    for (int rank = 0; rank < shape.ranks; ++rank) {
      EXPECT_EQ(ranks.watch[shape.at(rank)].begun, run);
      const int most = slices[shape.at(rank)].count;
      const int begin = most > 0 ? static_cast<int>(random() % static_cast<unsigned>(most)) : 0;
      const int count = most - begin;
      Lines out = Ranks::linesOf(shape.outBytes(count)), expected(out.size());
      std::vector<float> lse(static_cast<std::size_t>(shape.rows(count)) + 1), expectedLse(lse);
      const auto args = ranks.mergeArgs(rank, begin, count, out.data(), lse.data());
      merge<Element>(args, 1 + random() % 3, seed + run);
      mergeMapped<Element>(shape, ranks, args, rank, expected.data(), expectedLse.data());
      ASSERT_EQ(std::memcmp(out.data(), expected.data(), shape.outBytes(count)), 0)
          << "rank " << rank << ", run " << run << ", seed " << seed;
      ASSERT_EQ(lse, expectedLse);
      EXPECT_EQ(ranks.watch[shape.at(rank)].ended, run);
      EXPECT_EQ(ranks.watch[shape.at(rank)].missing, 0U);
      EXPECT_EQ(ranks.state[shape.at(rank)].arrived, 0);
    }
  }
}

TEST(MergeSlicesTest, TheBitsAreThoseOfMappedMemory) {
  for (unsigned seed = 1; seed <= 9; ++seed) {
    std::mt19937 random(seed);
    Shape shape{StateType::F32, seed == 8 ? 9 : 1 + static_cast<int>(random() % 4),
                1 + static_cast<int>(random() % 5), std::array{1, 4, 6, 7}[random() % 4],
                std::array{16, 64, 128, 512}[random() % 4]};
    compare<float>(shape, seed);
    shape.type = StateType::F16;
    compare<f16>(shape, seed);
    shape.type = StateType::BF16;
    compare<bf16>(shape, seed);
  }
}

TEST(MergeSlicesTest, AMessageThatDoesNotComeIsNotedAndNothingIsWritten) {
  const Shape shape{StateType::F16, 3, 2, 6, 64};
  std::mt19937 random(1);
  Ranks ranks(shape, {{0, 2}, {2, 2}, {4, 2}});
  Lines out = Ranks::linesOf(shape.outBytes(2));
  const auto run = [&](const std::vector<int> &senders) {
    ranks.draw(random);
    for (const int rank : senders) {
      pack<f16>(ranks.packArgs(rank), 3, 1);
      ranks.carry(rank, 0);
    }
    std::memset(out.data(), 0x7b, out.size() * sizeof(Line));
    merge<f16>(ranks.mergeArgs(0, 0, 2, out.data(), nullptr), 2, 1);
    return out[0].bytes[0] == std::byte{0x7b} && out[1].bytes[0] == std::byte{0x7b};
  };
  EXPECT_FALSE(run({0, 1, 2}));
  // Rank 1 has not merged, so what it sends is run 1 again; rank 2 sends nothing.
  EXPECT_TRUE(run({0, 1}));
  EXPECT_EQ(ranks.watch[0].missing, 1ULL << 1 | 1ULL << 2);
  EXPECT_EQ(ranks.watch[0].missed, 2U);
  EXPECT_EQ(ranks.watch[0].ended, 2U);
  EXPECT_TRUE(run({0, 1, 2})) << "later runs do nothing";
  EXPECT_EQ(ranks.state[0].broken, 2U);
  EXPECT_EQ(ranks.watch[0].begun, 2U);
}

} // namespace
} // namespace deft
