#include "runtime/exec/MergeStates.h"

#include "runtime/exec/Half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace deft::exec {
namespace {

constexpr int kDim = 24;

/// Attention of one row over tokens [begin, end) in float64.
struct Exact {
  std::vector<double> out = std::vector<double>(kDim);
  double lse = -INFINITY;

  Exact(const std::vector<double> &scores, const std::vector<double> &values, int begin, int end) {
    double weights = 0;
    for (int t = begin; t < end; ++t) {
      const double weight = std::exp(scores[static_cast<std::size_t>(t)]);
      weights += weight;
      for (int d = 0; d < kDim; ++d)
        out[static_cast<std::size_t>(d)] += weight * values[static_cast<std::size_t>(t * kDim + d)];
    }
    for (double &value : out)
      value = weights > 0 ? value / weights : 0;
    lse = std::log(weights);
  }
};

void store(StateType type, void *memory, long long at, double value) {
  if (type == StateType::F32)
    static_cast<float *>(memory)[at] = static_cast<float>(value);
  else
    static_cast<std::uint16_t *>(memory)[at] =
        fromFloat(static_cast<float>(value), type == StateType::F16 ? spec::DType::F16 : spec::DType::BF16);
}
double load(StateType type, const void *memory, long long at) {
  return type == StateType::F32 ? static_cast<const float *>(memory)[at]
                                : toFloat(static_cast<const std::uint16_t *>(memory)[at],
                                          type == StateType::F16 ? spec::DType::F16 : spec::DType::BF16);
}

// The oracle: attention over all tokens at once. A state has been rounded once and the result once more, so
// twice that is allowed; and the logarithms, by which the states are weighted, are float32.
TEST(MergeStatesTest, PartsOfTheTokensBecomeTheAttentionOverAllOfThem) {
  std::mt19937 random(11);
  std::normal_distribution<double> normal;
  for (int round = 0; round < 300; ++round) {
    const StateType type = std::array{StateType::F32, StateType::F16, StateType::BF16}[round % 3];
    const int tokens = static_cast<int>(random() % 40), count = 1 + static_cast<int>(random() % 5);
    std::vector<double> scores(static_cast<std::size_t>(tokens)),
        values(static_cast<std::size_t>(tokens * kDim));
    for (double &score : scores)
      score = 3 * normal(random) + 50 * (round % 2);
    for (double &value : values)
      value = normal(random);
    std::vector<std::vector<float>> outs(static_cast<std::size_t>(count), std::vector<float>(kDim));
    std::vector<float> lses(static_cast<std::size_t>(count));
    abi::StatesArgs args{};
    double largest = 0;
    for (int i = 0, begin = 0; i < count; ++i) {
      const int end = i + 1 == count
                          ? tokens
                          : begin + static_cast<int>(random() % static_cast<unsigned>(tokens - begin + 1));
      const Exact part(scores, values, begin, end);
      const auto at = static_cast<std::size_t>(i);
      for (int d = 0; d < kDim; ++d) {
        store(type, outs[at].data(), d, part.out[static_cast<std::size_t>(d)]);
        largest = std::max(largest, std::abs(part.out[static_cast<std::size_t>(d)]));
      }
      lses[at] = static_cast<float>(part.lse);
      args.outs[i] = outs[at].data();
      args.lses[i] = &lses[at];
      begin = end;
    }
    std::vector<float> out(kDim, NAN);
    float lse = NAN;
    args.count = count;
    args.dim = kDim;
    args.rows = 1;
    args.out = out.data();
    args.lse = &lse;
    mergeStates(args, type);
    const Exact all(scores, values, 0, tokens);
    const double rounding = type == StateType::F32 ? 0x1p-22 : type == StateType::F16 ? 0x1p-11 : 0x1p-8;
    const double weighting = tokens == 0 ? 0 : 0x1p-24 * std::abs(all.lse);
    for (int d = 0; d < kDim; ++d)
      ASSERT_NEAR(load(type, out.data(), d), all.out[static_cast<std::size_t>(d)],
                  2 * (rounding + weighting) * largest)
          << "round " << round;
    if (tokens == 0)
      ASSERT_EQ(lse, -INFINITY);
    else
      ASSERT_NEAR(lse, all.lse, 0x1p-22 * std::max(1.0, std::abs(all.lse)));
  }
}

TEST(MergeStatesTest, AnEmptyStateIsNotReadAndNaNIsPassedOn) {
  const float empty[] = {NAN, NAN}, full[] = {3, 4};
  const float minusInfinity = -INFINITY, one = 1, nan = NAN;
  float out[2] = {}, lse = 0;
  abi::StatesArgs args{};
  args.outs[0] = empty;
  args.lses[0] = &minusInfinity;
  args.outs[1] = full;
  args.lses[1] = &one;
  args.count = 2;
  args.dim = 2;
  args.rows = 1;
  args.out = out;
  args.lse = &lse;
  mergeStates(args, StateType::F32);
  EXPECT_EQ(out[0], 3);
  EXPECT_EQ(out[1], 4);
  EXPECT_EQ(lse, 1);
  args.lses[1] = &minusInfinity;
  mergeStates(args, StateType::F32);
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(lse, -INFINITY);
  args.lses[1] = &nan;
  mergeStates(args, StateType::F32);
  EXPECT_TRUE(std::isnan(out[0]) && std::isnan(lse));
  args.lse = nullptr;
  mergeStates(args, StateType::F32);
}

} // namespace
} // namespace deft::exec
