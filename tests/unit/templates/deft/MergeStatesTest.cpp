#include "tests/device/Words.h"

#include "deft/merge_states.cuh"

#include "runtime/exec/Half.h"
#include "runtime/exec/MergeStates.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace deft {
namespace {

using exec::StateType;

struct alignas(16) Sixteen {
  std::byte bytes[16];
};
using Memory = std::vector<Sixteen>;

/// States of random rows, some of them empty.
struct States {
  StateType type;
  int dim;
  long long rows;
  std::vector<Memory> outs;
  std::vector<std::vector<float>> lses;

  States(StateType of, int dim, long long rows, int count, std::mt19937 &random)
      : type(of), dim(dim), rows(rows) {
    std::normal_distribution<float> normal;
    const auto bytes = static_cast<std::size_t>(rows * dim * exec::bytesOf(type));
    for (int i = 0; i < count; ++i) {
      outs.emplace_back(bytes / 16);
      for (long long at = 0; at < rows * dim; ++at)
        set(outs.back(), at, normal(random));
      lses.emplace_back();
      for (long long row = 0; row < rows; ++row) {
        const bool isEmpty = random() % 5 == 0;
        lses.back().push_back(isEmpty ? -kInfinity
                                      : 4 * normal(random) + static_cast<float>(random() % 3) * 20);
        for (int d = 0; isEmpty && d < dim; ++d) // nobody is to read it
          set(outs.back(), row * dim + d, std::numeric_limits<float>::quiet_NaN());
      }
    }
  }

  void set(Memory &memory, long long at, float value) const {
    if (type == StateType::F32)
      reinterpret_cast<float *>(memory.data())[at] = value;
    else
      reinterpret_cast<std::uint16_t *>(memory.data())[at] = exec::fromFloat(value, dtype());
  }
  float get(const Memory &memory, long long at) const {
    return type == StateType::F32
               ? reinterpret_cast<const float *>(memory.data())[at]
               : exec::toFloat(reinterpret_cast<const std::uint16_t *>(memory.data())[at], dtype());
  }
  spec::DType dtype() const { return type == StateType::F16 ? spec::DType::F16 : spec::DType::BF16; }

  abi::StatesArgs args(Memory &out, std::vector<float> &lse) const {
    abi::StatesArgs args{};
    for (std::size_t i = 0; i < outs.size(); ++i) {
      args.outs[i] = outs[i].data();
      args.lses[i] = lses[i].data();
    }
    args.count = static_cast<int>(outs.size());
    args.dim = dim;
    args.rows = rows;
    args.out = out.data();
    args.lse = lse.data();
    const int pieces = dim * exec::bytesOf(type) / 16;
    args.lanesOfRow = 1;
    while (args.lanesOfRow < pieces && args.lanesOfRow < 32)
      args.lanesOfRow *= 2;
    return args;
  }
};

template <class Element> void launch(const abi::StatesArgs &args, unsigned seed) {
  constexpr unsigned kThreads = StatesMerge<Element>::kThreads;
  const auto blocks = static_cast<unsigned>((args.rows * args.lanesOfRow + kThreads - 1) / kThreads);
  for (unsigned block = 0; block < blocks; ++block)
    EXPECT_EQ(test::runBlock({.threads = kThreads, .block = block, .blocks = blocks, .seed = seed},
                             [&] { StatesMerge<Element>(args).merge(); }),
              "");
}

void launch(StateType type, const abi::StatesArgs &args, unsigned seed) {
  if (type == StateType::F32)
    launch<float>(args, seed);
  else if (type == StateType::F16)
    launch<f16>(args, seed);
  else
    launch<bf16>(args, seed);
}

TEST(MergeStatesTest, EveryRowIsWhatTheHostsTwinMakesOfIt) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    const StateType type = std::array{StateType::F32, StateType::F16, StateType::BF16}[seed % 3];
    const int dim = std::array{8, 16, 64, 72, 128, 256, 512}[random() % 7];
    const States states(type, dim, 1 + static_cast<long long>(random() % 40),
                        1 + static_cast<int>(random() % 5), random);
    Memory out(states.outs[0].size()), expected(out.size());
    std::vector<float> lse(static_cast<std::size_t>(states.rows)), expectedLse(lse.size());
    launch(type, states.args(out, lse), seed);
    exec::mergeStates(states.args(expected, expectedLse), type);
    const double ulp = type == StateType::F32 ? 0x1p-20 : type == StateType::F16 ? 0x1p-10 : 0x1p-7;
    for (long long at = 0; at < states.rows * dim; ++at) {
      const float own = states.get(out, at), other = states.get(expected, at);
      ASSERT_NEAR(own, other, ulp * std::max(1.f, std::abs(other))) << "seed " << seed << " at " << at;
    }
    for (std::size_t row = 0; row < lse.size(); ++row)
      ASSERT_TRUE(lse[row] == expectedLse[row] ||
                  std::abs(lse[row] - expectedLse[row]) < 1e-5 * std::max(1.f, std::abs(lse[row])))
          << "seed " << seed << " row " << row << ": " << lse[row] << ", " << expectedLse[row];
  }
}

TEST(MergeStatesTest, TheBitsAreTheSameInAnyOrderOfLanesAndInPlace) {
  std::mt19937 random(7);
  States states(StateType::BF16, 128, 21, 3, random);
  Memory out(states.outs[0].size());
  std::vector<float> lse(21);
  launch<bf16>(states.args(out, lse), 1);
  for (unsigned seed = 2; seed < 8; ++seed) {
    Memory again(out.size());
    std::vector<float> againLse(21);
    launch<bf16>(states.args(again, againLse), seed);
    EXPECT_EQ(std::memcmp(again.data(), out.data(), out.size() * sizeof(Sixteen)), 0);
    EXPECT_EQ(std::memcmp(againLse.data(), lse.data(), lse.size() * sizeof(float)), 0);
  }
  for (unsigned seed = 1; seed < 8; ++seed) {
    States own = states;
    launch<bf16>(own.args(own.outs[1], own.lses[1]), seed);
    EXPECT_EQ(std::memcmp(own.outs[1].data(), out.data(), out.size() * sizeof(Sixteen)), 0);
    EXPECT_EQ(std::memcmp(own.lses[1].data(), lse.data(), lse.size() * sizeof(float)), 0);
  }
}

TEST(MergeStatesTest, WhatNobodySawIsZeroAndNaNIsPassedOn) {
  std::mt19937 random(3);
  States states(StateType::F32, 8, 3, 2, random);
  states.lses = {{-kInfinity, 1, std::numeric_limits<float>::quiet_NaN()}, {-kInfinity, -kInfinity, 2}};
  for (int d = 0; d < 8; ++d)
    states.set(states.outs[0], 8 + d, 5);
  Memory out(states.outs[0].size());
  std::vector<float> lse(3);
  launch<float>(states.args(out, lse), 1);
  EXPECT_EQ(lse[0], -kInfinity);
  EXPECT_EQ(lse[1], 1);
  EXPECT_TRUE(std::isnan(lse[2]));
  for (int d = 0; d < 8; ++d) {
    EXPECT_EQ(states.get(out, d), 0);
    EXPECT_EQ(states.get(out, 8 + d), 5);
    EXPECT_TRUE(std::isnan(states.get(out, 16 + d)));
  }
}

} // namespace
} // namespace deft
